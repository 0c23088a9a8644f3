"""Which dtypes are computed, in which type, and how the others are refused."""

from __future__ import annotations

import numpy as np
import pytest
from calls import CALLS
from families import DTYPES, definite

REAL_OF = dict(zip(DTYPES, ("float32", "float64") * 2, strict=True))
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def is_real(call, place):
    """Whether a result holds eigenvalues or singular values."""
    if call.name == "cholesky":
        return False
    if call.name == "eigh":
        return place == 0
    return place == 1 or call.name != "svd" or not call.options.get("compute_uv", True)


@pytest.mark.parametrize("call", CALLS, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_results_have_the_type_of_the_input(library, dtype, call):
    results = call(library.asarray(definite(2, 3, 3, dtype=dtype)))
    for place, result in enumerate(results):
        expected = REAL_OF[dtype] if is_real(call, place) else dtype
        assert result.dtype == expected


@pytest.mark.parametrize("call", CALLS, ids=str)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_are_computed_in_float64(library, dtype, call):
    stack = (np.eye(3) * 5 + np.ones((2, 3, 3))).astype(dtype)
    array = library.asarray(stack)
    expected = call.on_host(library.asarray(stack.astype("float64")))
    for one, other in zip(call.on_host(array), expected, strict=True):
        assert one.dtype == np.float64
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_booleans_are_computed_in_float64(library, call):
    results = call.on_host(library.asarray(np.eye(3, dtype=bool)))
    expected = call.on_host(library.asarray(np.eye(3)))
    for one, other in zip(results, expected, strict=True):
        assert one.dtype == np.float64
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_half_precision_is_refused_by_name(library, call):
    array = library.asarray(np.eye(3, dtype="float32"))
    try:
        half = array.astype("float16")
    except Exception as error:  # noqa: BLE001 - dpnp says it in its own way
        pytest.skip(f"the device has no float16: {error}")
    with pytest.raises(TypeError, match="array type float16 is unsupported in linalg"):
        call(half)
