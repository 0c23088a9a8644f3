"""Selection stands on the run-time layer alone."""

import ast
import sys
from pathlib import Path

import pytest

from batchlas import _select

BELOW = ("batchlas.exceptions", "batchlas._runtime.", "batchlas._select")
MODULES = sorted(Path(_select.__file__).parent.glob("*.py"))


def imported(tree):
    """Return every module that the code names in an import, at any depth."""
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names.append(node.module)
    return names


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_what_a_module_imports(path):
    foreign = [
        name
        for name in imported(ast.parse(path.read_text(encoding="utf-8")))
        if name.partition(".")[0] not in sys.stdlib_module_names
        and not name.startswith(BELOW)
    ]
    # The inventory's command lists all ops; nothing else looks upwards.
    assert foreign == (["batchlas._ops"] if path.stem == "inventory" else [])


def test_the_surface_is_sorted_and_names_what_ops_use():
    assert sorted(_select.__all__) == list(_select.__all__)
    for name in ("OpSpec", "Family", "family", "parse", "pick", "decide", "run"):
        assert name in _select.__all__
