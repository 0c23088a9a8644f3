"""Native CUDA kernels for CuPy arrays, hand-written: what the IR does not reach.

=================  ===================================================================
element.cuh        what every source stands on: numbers, threads, shared memory
potrf.cu           Cholesky: a thread, a thread per row, or a block per matrix
jacobi.cu          eigenvalues and singular values of tiny matrices, a thread each
householder.cu     reductions to tridiagonal and bidiagonal matrices
accumulate.cu      the product of their reflectors
sweeps.cuh         what the next two agree on
values.cu          implicit QR, which writes its rotations down
rotations.cu       those rotations, applied to the vectors
plans              which sizes a kernel takes and how it is launched; imports no CuPy
reductions         the same for the decompositions by reduction
launch             compiles and launches, on CuPy's current stream
launch_reductions  the same for the decompositions by reduction
=================  ===================================================================
"""
