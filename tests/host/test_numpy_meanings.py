"""NumPy's own functions as the oracle: shapes, dtypes, types, errors and texts."""

from __future__ import annotations

import numpy as np
import pytest
from calls import CALLS
from checks import assert_same_bits
from families import DTYPES, definite, general

import batchlas
from batchlas import linalg

NUMPY_2 = int(np.__version__.partition(".")[0]) >= 2
SHAPES = (
    *((0, 0), (3, 0, 0), (2, 0, 3, 4, 4), (0, 2, 2)),
    *((1, 1), (2, 2), (3, 2, 2), (2, 1, 3, 3), (1, 0, 2, 2)),
)
RECTANGLES = ((0, 2), (2, 0), (2, 0, 3), (0, 2, 3), (2, 3), (4, 3, 2), (1, 2, 0, 5))
TAKEN = (*DTYPES, "int8", "uint16", "int32", "int64", "bool", ">f8", ">f4", ">c16")

pytestmark = pytest.mark.skipif(not NUMPY_2, reason="NumPy 2 is the model")


def numpys(call):
    """Return numpy.linalg's function of the same name and options."""
    function = vars(np.linalg)[call.name]

    def run(a):
        result = function(a, **call.options)
        return result if isinstance(result, tuple) else (result,)

    return run


def assert_like_numpy(call, a):
    """Check types, dtypes, shapes and bits against NumPy's, vendor pinned."""
    with batchlas.scoped_env(
        BATCHLAS_POTRF_ROUTE="vendor",
        BATCHLAS_SYEV_ROUTE="vendor",
        BATCHLAS_GESVD_ROUTE="vendor",
    ):
        found = call(a)
    expected = numpys(call)(a)
    for one, other in zip(found, expected, strict=True):
        assert type(one) is type(other)
        assert one.dtype == other.dtype
        assert one.dtype.isnative
        if call.options.get("hermitian"):
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)
        else:
            assert_same_bits(one, other)


@pytest.mark.parametrize("call", CALLS, ids=str)
@pytest.mark.parametrize("dtype", TAKEN)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_square_stacks(shape, dtype, call):
    stack = definite(*shape) + np.eye(shape[-1])
    if dtype == "bool":
        stack = stack > 1.5  # the identity is the only definite one
        stack &= np.eye(shape[-1], dtype=bool)
    assert_like_numpy(call, stack.astype(dtype))


@pytest.mark.parametrize("call", CALLS[-4:], ids=str)
@pytest.mark.parametrize("dtype", TAKEN)
@pytest.mark.parametrize("shape", RECTANGLES, ids=str)
def test_rectangular_stacks(shape, dtype, call):
    assert_like_numpy(call, general(*shape).astype(dtype))


@pytest.mark.parametrize("call", CALLS, ids=str)
@pytest.mark.parametrize(
    "a",
    [
        [[2, 1], [1, 2]],
        [[[2.0, 1], [1, 2]], [[3, 0], [0, 3]]],
        ((2 + 0j, 1j), (-1j, 2)),
        [np.array([2.0, 1]), np.array([1.0, 2])],
        memoryview(np.array([[2.0, 1], [1, 2]])),
    ],
    ids=["ints", "floats", "complex-tuples", "rows", "buffer"],
)
def test_whatever_asarray_takes(a, call):
    assert_like_numpy(call, a)


class Plain(np.ndarray):
    """A subclass as users write them."""


class Labelled(np.ndarray):
    """A subclass that carries something from array to array."""

    label = "none"

    def __array_finalize__(self, other):
        self.label = getattr(other, "label", "none")


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize("call", CALLS, ids=str)
@pytest.mark.parametrize(
    "wrap",
    [
        np.matrix,
        np.ma.masked_array,
        lambda a: a.view(Plain),
        lambda a: a.view(Labelled),
        lambda a: a.view(np.recarray),
        np.asarray,
    ],
    ids=["matrix", "masked", "subclass", "labelled", "recarray", "ndarray"],
)
def test_subclasses_are_kept_where_numpy_keeps_them(wrap, call):
    assert_like_numpy(call, wrap(definite(3, 3)))


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_masked_stacks_keep_numpys_type(call):
    stack = np.ma.masked_array(definite(2, 3, 3), mask=np.zeros((2, 3, 3), bool))
    assert_like_numpy(call, stack)


def test_a_subclass_carries_its_attributes():
    a = definite(2, 3, 3).view(Labelled)
    a.label = "mine"
    assert linalg.cholesky(a).label == "mine"
    assert linalg.eigh(a).eigenvectors.label == "mine"
    assert linalg.svd(a).U.label == "mine"


def test_results_are_numpys_own_types():
    a = definite(3, 3)
    assert type(linalg.eigh(a)) is type(np.linalg.eigh(a))
    assert type(linalg.svd(a)) is type(np.linalg.svd(a))


@pytest.mark.parametrize("call", CALLS, ids=str)
@pytest.mark.parametrize("a", [1, 2.5, [1, 2], np.ones(3), [], np.float64(1)], ids=str)
def test_too_few_dimensions_raise_numpys_text(a, call):
    assert_same_error(call, a)


@pytest.mark.parametrize("call", CALLS[:-4], ids=str)
@pytest.mark.parametrize("shape", [(2, 3), (4, 3, 2), (0, 2, 3), (2, 0)], ids=str)
def test_rectangles_raise_numpys_text(shape, call):
    assert_same_error(call, np.ones(shape))


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_half_precision_raises_numpys_text(call):
    assert_same_error(call, np.eye(2, dtype="float16"))


@pytest.mark.parametrize("uplo", ["X", "", "lower"])
def test_a_wrong_uplo_raises_numpys_text(uplo):
    with pytest.raises(ValueError, match="UPLO") as ours:
        linalg.eigh(np.eye(2), UPLO=uplo)
    with pytest.raises(ValueError, match="UPLO") as theirs:
        np.linalg.eigh(np.eye(2), UPLO=uplo)
    assert str(ours.value) == str(theirs.value)


def assert_same_error(call, a):
    with pytest.raises(Exception, match=r".") as theirs:
        numpys(call)(a)
    with pytest.raises(type(theirs.value)) as ours:
        call(a)
    assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize("call", CALLS, ids=str)
@pytest.mark.parametrize(
    "dtype", ["longdouble", "clongdouble", "object", "U3", "S3", "M8[s]", "m8[s]", "V4"]
)
def test_other_types_are_refused_by_name(dtype, call):
    a = np.zeros((2, 2), dtype)
    with pytest.raises(TypeError, match="is unsupported in linalg") as error:
        call(a)
    assert a.dtype.name in str(error.value)


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_ragged_lists_are_refused(call):
    with pytest.raises(ValueError, match="inhomogeneous"):
        call([[1, 2], [3]])


@pytest.mark.parametrize("function", ["cholesky", "eigh", "svd"])
def test_failures_carry_numpys_text_and_type(function):
    """``except numpy.linalg.LinAlgError`` and its text keep working."""
    bad = {
        "cholesky": -np.eye(2),
        "eigh": np.full((3, 3), np.nan),
        "svd": [[0, 0], [np.nan, np.nan]],
    }[function]
    with pytest.raises(np.linalg.LinAlgError) as theirs:
        vars(np.linalg)[function](bad)
    with pytest.raises(np.linalg.LinAlgError) as ours:
        vars(linalg)[function](bad)
    assert str(ours.value).startswith(str(theirs.value))
