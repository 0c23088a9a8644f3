"""What a C++ library would have its build check: statements 63 to 87 and 167 to 171.

Names that tests may reach into, one spelling of every import, nothing changed in other
libraries, one signature per vendor routine.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
from pathlib import Path

import numpy as np
import pytest

import batchlas
from batchlas import linalg
from batchlas._ops import SPECS
from batchlas._ops.cuda import POTRF_FAMILIES
from batchlas._select.spec import KINDS
from batchlas._vendor import _ADAPTERS, adapter_of

ROOT = Path(batchlas.__file__).parent
TESTS = Path(__file__).parents[1]
MODULES = sorted(ROOT.rglob("*.py"))

# Private packages and modules that tests may import. The kernel compiler and selection
# are tested part by part, so all of theirs are; a new name here is a decision to have
# one more thing that cannot change without its tests.
REACHED = (
    "batchlas.__main__",
    "batchlas._array",
    "batchlas._backends",
    "batchlas._dispatch",
    "batchlas._explain",
    "batchlas._kernels",
    "batchlas._ops",
    "batchlas._runtime",
    "batchlas._select",
    "batchlas._vendor",
    "batchlas.linalg._arguments",
)


def trees(paths):
    for path in paths:
        yield path, ast.parse(path.read_text(encoding="utf-8"))


def imported(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def test_tests_reach_into_listed_places_only():
    """64, 65."""
    private = {
        name
        for _, tree in trees(TESTS.rglob("*.py"))
        for name in imported(tree)
        if name.startswith("batchlas.") and "._" in name
    }
    assert {n for n in private if not n.startswith(REACHED)} == set()


def test_the_package_has_no_second_way_in():
    """69, 70: no path is widened, every folder is a package, no test is imported."""
    for path, tree in trees(MODULES):
        text = ast.unparse(tree)
        # A script that `python -m batchlas` runs has its own folder there, as usual.
        assert "sys.path" not in text or path.name == "__main__.py", path
        assert not [n for n in imported(tree) if n.partition(".")[0] in {"tests"}]
        assert (path.parent / "__init__.py").is_file()


def test_only_install_changes_other_libraries():
    """71, 80."""
    for path, tree in trees(MODULES):
        calls = {
            node.func.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        assert not calls & {"setattr", "delattr"} or path.name == "_install.py"


@pytest.mark.parametrize("name", [n for n in linalg.__all__ if n.islower()])
def test_public_functions_are_what_they_say(name):
    """80: no wrapper changes a name, a module or a signature."""
    function = vars(linalg)[name]
    assert inspect.isfunction(function)
    assert function.__name__ == function.__qualname__ == name
    assert not hasattr(function, "__wrapped__")
    module = importlib.import_module(function.__module__)
    assert vars(module)[name] is function


def parameters(function):
    wrapped = getattr(function, "func", function)  # partial: threads=True is given
    names = inspect.signature(wrapped).parameters
    return [name for name in names if name != "threads"]


VENDOR_PARAMETERS = {
    "potrf": ["a", "uplo"],
    "syev": ["a", "uplo", "vectors"],
    "gesvd": ["a", "job"],
}


@pytest.mark.parametrize(("kind", "family"), _ADAPTERS)
def test_vendor_routines_have_one_signature(kind, family):
    """76, 83: whatever the order of the library's own arguments."""
    library = {"cupy": "cupy", "dpnp": "dpnp"}.get(kind, "numpy")
    if importlib.util.find_spec(library) is None:
        _assert_signatures_by_source(_ADAPTERS[kind, family])
        return
    adapter = adapter_of(kind, family)
    for name, expected in VENDOR_PARAMETERS.items():
        assert parameters(vars(adapter)[name]) == expected


def _assert_signatures_by_source(module):
    """Read the functions of an adapter whose library is absent; it may import them."""
    found = {}
    for _, tree in trees((ROOT / "_vendor").glob(f"{module}*.py")):
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and node.name in VENDOR_PARAMETERS:
                arguments = node.args.args + node.args.kwonlyargs
                found[node.name] = [argument.arg for argument in arguments]
    assert found == VENDOR_PARAMETERS


def test_every_candidate_of_a_library_has_its_adapter():
    """72: what may be chosen can be launched, for every op, dtype and kind of array."""
    for spec in SPECS:
        for kind in KINDS:
            for dtype in ("float32", "float64", "complex64", "complex128"):
                for choice in spec.candidates(dtype, kind):
                    if choice.uses_library and choice not in POTRF_FAMILIES:
                        assert (kind, choice.name) in _ADAPTERS


def test_vendor_modules_are_no_part_of_the_public_face():
    """81: public functions live with the library's name-free modules."""
    for function in map(vars(linalg).get, linalg.__all__):
        assert not function.__module__.startswith("batchlas._vendor")


def test_no_op_forces_the_choice_of_another():
    """168: a nested op decides for itself."""
    for path, tree in trees((ROOT / "_ops").rglob("*.py")):
        assert not {"ScopedPin", "StrictPin"} & {
            node.attr if isinstance(node, ast.Attribute) else node.id
            for node in ast.walk(tree)
            if isinstance(node, (ast.Attribute, ast.Name))
        }, path


@pytest.mark.parametrize("name", [n for n in linalg.__all__ if n.islower()])
def test_matrices_of_different_sizes_are_refused(name):
    """171: a list of them is no stack, and one of objects is no matrix."""
    function = vars(linalg)[name]
    ragged = [np.eye(2), np.eye(3)]
    with pytest.raises(ValueError, match="inhomogeneous"):
        function(ragged)
    objects = np.empty(2, object)
    objects[:] = ragged
    with pytest.raises((TypeError, np.linalg.LinAlgError)):
        function(objects)


def test_public_objects_say_what_they_are():
    """73."""
    assert repr(batchlas.errstate(linalg="nan")) == "errstate(linalg='nan')"
    told = batchlas.explain("eigh", np.eye(3))
    assert str(told) == told.text
    error = batchlas.LinAlgError("text", [(1,)])
    assert "text" in repr(error)
    assert repr(batchlas.asarray([[1.0]])) == "Array([[1.]])"
