"""asarray, install, NEP 18: how calls of numpy.linalg come here, or go elsewhere."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from families import definite
from interpreter import BLOCK, run_python

import batchlas
from batchlas._array import FUNCTIONS, Array
from batchlas._dispatch import NUMPY_FUNCTIONS

NAMES = tuple(NUMPY_FUNCTIONS)
INDEFINITE = np.stack([np.eye(2), -np.eye(2)])


@pytest.fixture(autouse=True)
def _uninstalled():
    yield
    batchlas.uninstall()


def numpys_functions():
    return {name: vars(np.linalg)[name] for name in NAMES}


# asarray


@pytest.mark.parametrize("name", NAMES)
def test_an_array_sends_numpy_linalg_here(name):
    """Seen from NumPy: its function returns what batchlas' does, types included."""
    a = batchlas.asarray(definite(3, 2, 2))
    found = vars(np.linalg)[name](a)
    expected = FUNCTIONS[name](a)
    for one, other in zip(_tuple(found), _tuple(expected), strict=True):
        assert type(one) is type(other)
        np.testing.assert_array_equal(one, other)


def _tuple(result):
    return result if isinstance(result, tuple) else (result,)


def test_an_array_fails_as_batchlas_does():
    with pytest.raises(batchlas.LinAlgError) as error:
        np.linalg.cholesky(batchlas.asarray(INDEFINITE))
    assert error.value.indices == ((1,),)


def test_asarray_shares_memory():
    a = definite(2, 2)
    view = batchlas.asarray(a)
    assert type(view) is Array
    assert np.shares_memory(a, view)
    view[0, 0] = 7
    assert a[0, 0] == 7


def test_asarray_converts():
    a = batchlas.asarray([[1, 2], [3, 4]], dtype="complex64")
    assert a.dtype == np.complex64
    assert batchlas.asarray(3.0).shape == ()


def test_an_array_is_an_ndarray_in_all_else():
    a = batchlas.asarray(definite(4, 3, 3))
    plain = np.asarray(a)
    np.testing.assert_array_equal(np.linalg.inv(a), np.linalg.inv(plain))
    np.testing.assert_array_equal(np.concatenate([a, a]), np.concatenate([plain] * 2))
    np.testing.assert_array_equal(a @ a, plain @ plain)
    assert type(a[0]) is Array
    assert type(np.sum(a)) is np.float64


def test_results_keep_the_type():
    a = batchlas.asarray(definite(2, 3, 3))
    assert type(np.linalg.cholesky(a)) is Array
    assert type(np.linalg.eigh(a).eigenvectors) is Array


def test_options_pass_through():
    a = batchlas.asarray(np.ones((2, 3)))
    assert np.linalg.svd(a, full_matrices=False).Vh.shape == (2, 3)
    assert np.linalg.svd(a, compute_uv=False).shape == (2,)


@pytest.mark.parametrize("library", ["dpnp.x", "dpctl.tensor", "cupy._core"])
def test_asarray_refuses_device_arrays(library):
    kind = type("ndarray", (), {"__module__": library})
    with pytest.raises(TypeError, match="asarray takes host data"):
        batchlas.asarray(kind())


# install


def test_install_replaces_numpys_functions_and_uninstall_brings_them_back():
    before = numpys_functions()
    batchlas.install()
    assert numpys_functions() == {name: FUNCTIONS[name] for name in NAMES}
    assert before == NUMPY_FUNCTIONS
    batchlas.uninstall()
    assert numpys_functions() == before


def test_installing_twice_is_the_same_as_once():
    before, finders = numpys_functions(), list(sys.meta_path)
    batchlas.install()
    batchlas.install()
    batchlas.uninstall()
    assert numpys_functions() == before
    assert sys.meta_path == finders
    batchlas.uninstall()
    assert numpys_functions() == before


def test_installed_is_for_a_block():
    before = numpys_functions()
    with batchlas.installed():
        assert np.linalg.eigh is batchlas.linalg.eigh
    assert numpys_functions() == before


def test_installed_within_install_changes_nothing():
    batchlas.install()
    with batchlas.installed(), batchlas.installed():
        pass
    assert np.linalg.eigh is batchlas.linalg.eigh


def test_installed_ends_with_an_error():
    before = numpys_functions()
    with pytest.raises(ZeroDivisionError), batchlas.installed():
        _ = 1 / 0
    assert numpys_functions() == before


@pytest.mark.parametrize("name", NAMES)
def test_an_installed_function_does_not_call_itself(name):
    stack = definite(3, 2, 2)
    expected = vars(np.linalg)[name](stack)
    with batchlas.installed():
        found = vars(np.linalg)[name](stack)
        wrapped = vars(np.linalg)[name](batchlas.asarray(stack))
    for one, other, array in zip(*map(_tuple, (found, expected, wrapped)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(array, other, rtol=1e-10, atol=1e-10)


def test_numpys_other_functions_keep_working():
    a = definite(3, 3)
    expected = [np.linalg.norm(a, 2), np.linalg.cond(a), np.linalg.matrix_rank(a)]
    expected_inverse = np.linalg.pinv(a)
    with batchlas.installed():
        found = [np.linalg.norm(a, 2), np.linalg.cond(a), np.linalg.matrix_rank(a)]
        np.testing.assert_allclose(np.linalg.pinv(a), expected_inverse)
    np.testing.assert_allclose(found, expected)


def test_a_name_taken_before_stays_numpys():
    from numpy.linalg import cholesky

    with batchlas.installed():
        with pytest.raises(np.linalg.LinAlgError) as error:
            cholesky(INDEFINITE)
        assert type(error.value) is np.linalg.LinAlgError
        with pytest.raises(batchlas.LinAlgError):
            cholesky(batchlas.asarray(INDEFINITE))


def test_a_library_that_is_not_there_stays_away():
    run_python(BLOCK + "import batchlas\nbatchlas.install()\nbatchlas.uninstall()\n")


FAKE = """
import sys, types, pathlib, tempfile
folder = pathlib.Path(tempfile.mkdtemp())
(folder / "cupy").mkdir()
(folder / "cupy" / "__init__.py").write_text("from cupy import linalg\\nloaded = 1\\n")
(folder / "cupy" / "linalg.py").write_text("def eigh(a): return 'original'\\n")
sys.path.insert(0, str(folder))
import batchlas
sys.modules["batchlas._vendor.cusolver"] = types.ModuleType("cusolver")
"""


def test_a_library_imported_later_is_changed_when_it_comes():
    run_python(
        FAKE
        + """
batchlas.install()
import cupy
assert cupy.loaded == 1
assert cupy.linalg.eigh is batchlas.linalg.eigh
assert cupy.linalg.svdvals is batchlas.linalg.svdvals
batchlas.uninstall()
assert cupy.linalg.eigh(None) == "original"
assert not hasattr(cupy.linalg, "svdvals")
"""
    )


def test_a_library_imported_after_uninstall_is_left_alone():
    run_python(
        FAKE
        + """
batchlas.install()
batchlas.uninstall()
import cupy
assert cupy.linalg.eigh(None) == "original"
"""
    )


# NEP 18: other people's arrays


class Duck:
    """An array type with its own ideas of linear algebra."""

    def __array_function__(self, func, types, args, kwargs):
        if func.__name__ == "svd":
            return NotImplemented
        return "quack", func, args, kwargs


class DuckArray(np.ndarray):
    """A subclass that computes for itself."""

    def __array_function__(self, func, types, args, kwargs):
        return "quack", func.__name__


class Capsule:
    """An array that can only be exchanged."""

    def __dlpack__(self):
        raise AssertionError

    def __array__(self, dtype=None, copy=None):
        raise AssertionError


def test_a_duck_type_computes_for_itself():
    duck = Duck()
    word, function, args, kwargs = batchlas.linalg.eigh(duck, "U")
    assert word == "quack"
    assert function is NUMPY_FUNCTIONS["eigh"]
    assert args[0] is duck
    assert "U" in (*args, *kwargs.values())


def test_a_duck_type_is_given_numpys_function_while_installed():
    with batchlas.installed():
        assert np.linalg.cholesky(Duck())[1] is NUMPY_FUNCTIONS["cholesky"]


def test_a_subclass_with_its_own_array_function_computes_for_itself():
    a = np.eye(2).view(DuckArray)
    assert batchlas.linalg.eigh(a) == ("quack", "eigh")
    with batchlas.installed():
        assert np.linalg.eigh(a) == ("quack", "eigh")


@pytest.mark.parametrize("name", ["cholesky_ex", "eigh_ex", "svd_ex"])
def test_a_duck_type_cannot_know_functions_that_numpy_lacks(name):
    with pytest.raises(TypeError, match=f"{name} gives way .*Duck"):
        vars(batchlas.linalg)[name](Duck())


def test_a_duck_type_that_does_not_implement_a_function():
    with pytest.raises(TypeError, match=r"svd gives way to .*Duck.* not implement it"):
        batchlas.linalg.svd(Duck())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_type_that_is_only_exchangeable_is_refused(name):
    with pytest.raises(TypeError, match=r"cannot take .*Capsule; allowed: numpy, dpnp"):
        FUNCTIONS[name](Capsule())


def test_a_type_of_the_array_api_alone_is_refused():
    kind = type("Strict", (), {"__array_namespace__": lambda self: None})
    with pytest.raises(TypeError, match="Strict"):
        batchlas.linalg.svd(kind())


def test_objects_that_numpy_can_convert_are_converted():
    class Convertible:
        def __array__(self, dtype=None, copy=None):
            return np.eye(2)

    assert type(batchlas.linalg.cholesky(Convertible())) is np.ndarray
