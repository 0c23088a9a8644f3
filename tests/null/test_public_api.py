"""The public names and signatures: a change here is a change for users."""

from __future__ import annotations

import inspect

import pytest

import batchlas
from batchlas import linalg

TOP = {
    "BatchlasWarning": None,
    "LinAlgError": None,
    "NoRouteError": None,
    "asarray": "(a, dtype=None)",
    "benchmark": (
        "(op, shape, dtype='float64', against=('numpy', 'dpnp', 'cupy', 'torch', "
        "'jax'), *, array=None, budget=1.0)"
    ),
    "configure": "(**changes)",
    "errstate": "(*, linalg)",
    "explain": "(function, a, **options)",
    "install": "()",
    "installed": "()",
    "linalg": None,
    "reload_settings": "()",
    "scoped_env": "(**variables)",
    "uninstall": "()",
}
LINALG = {
    "CholeskyExResult": "(factor, info)",
    "EighExResult": "(eigenvalues, eigenvectors, info)",
    "SVDExResult": "(U, S, Vh, info)",
    "cholesky": "(a, /, *, upper=False)",
    "cholesky_ex": "(a, /, *, upper=False, out=None, info=None)",
    "eigh": "(a, UPLO='L')",
    "eigh_ex": "(a, UPLO='L', *, out=None, info=None)",
    "eigvalsh": "(a, UPLO='L')",
    "svd": "(a, full_matrices=True, compute_uv=True, hermitian=False)",
    "svd_ex": (
        "(a, *, full_matrices=True, compute_uv=True, hermitian=False, "
        "out=None, info=None)"
    ),
    "svdvals": "(x, /)",
}
PLACES = [(batchlas, TOP), (linalg, LINALG)]


@pytest.mark.parametrize(("module", "names"), PLACES, ids=["batchlas", "linalg"])
def test_names(module, names):
    assert sorted(module.__all__) == sorted(names)
    assert len(set(module.__all__)) == len(module.__all__)


@pytest.mark.parametrize(("module", "names"), PLACES, ids=["batchlas", "linalg"])
def test_no_other_name_looks_public(module, names):
    public = {
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and not inspect.ismodule(value)
    }
    assert public <= {*names, "repair_discovery"}


@pytest.mark.parametrize(
    ("module", "name", "expected"),
    [(m, n, s) for m, names in PLACES for n, s in names.items() if s is not None],
    ids=lambda value: value if isinstance(value, str) and "(" not in value else "",
)
def test_signatures(module, name, expected):
    signature = inspect.signature(vars(module)[name])
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    plain = signature.replace(parameters=bare, return_annotation=signature.empty)
    assert str(plain) == expected


@pytest.mark.parametrize("name", [n for n in LINALG if not n[0].isupper()])
def test_every_function_documents_all_its_parts(name):
    text = inspect.getdoc(vars(linalg)[name])
    for section in ("Parameters", "Returns", "Raises", "Examples"):
        assert f"{section}\n{'-' * len(section)}" in text
