"""The four dtypes that LAPACK computes in."""

# dtype.name builds its text anew at every call, which costs as much as a whole
# decision; dtype.char is there already.
NAME_OF = {"f": "float32", "d": "float64", "F": "complex64", "D": "complex128"}
REAL_OF = {"f": "f", "d": "d", "F": "f", "D": "d"}
