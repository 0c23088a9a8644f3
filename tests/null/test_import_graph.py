"""Imports between modules: rightwards only, no cycles, few per module."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import batchlas

ROOT = Path(batchlas.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))
# From left to right; a module imports from its own layer or from one further right.
LAYERS = (
    {"__main__", "doctor", "_explain_command"},
    {"__init__", "_install", "_explain", "_array", "tune", "bench"},
    {"linalg"},
    {"_ops", "_dispatch"},
    {"_select", "_kernels", "_vendor"},
    {"_backends"},
    {"_runtime"},
    {"exceptions"},
)


def name_of(path):
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


NAMES = {name_of(path) for path in MODULES}


# Run by name, imported by nobody: the generator of the docs' page of all ops.
COMMANDS = {"batchlas._select.inventory"}


def layer_of(module):
    if module in COMMANDS:
        return 0
    top = module.split(".")[1] if "." in module else "__init__"
    (place,) = [place for place, layer in enumerate(LAYERS) if top in layer]
    return place


def imports_of(path):
    """Return the modules of ours that a module imports, type checking apart."""
    found = set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in _run_time(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                found.add(whole if whole in NAMES else node.module)
    return {module for module in found if module.partition(".")[0] == "batchlas"}


def _run_time(node):
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            continue
        yield child
        yield from _run_time(child)


GRAPH = {name_of(path): imports_of(path) for path in MODULES}


@pytest.mark.parametrize("module", GRAPH)
def test_imports_go_rightwards(module):
    wrong = {each for each in GRAPH[module] if layer_of(each) < layer_of(module)}
    assert not wrong


@pytest.mark.parametrize("module", GRAPH)
def test_a_module_imports_few_others(module):
    assert len(GRAPH[module]) <= 10


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_are_absolute_and_name_what_they_take(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0
            assert "*" not in {alias.name for alias in node.names}


def test_there_are_no_cycles():
    done: set[str] = set()

    def visit(module, above):
        assert module not in above, " -> ".join([*above, module])
        if module not in done:
            for each in GRAPH.get(module, ()):
                if each != "batchlas":  # a package is imported with its modules
                    visit(each, [*above, module])
            done.add(module)

    for module in GRAPH:
        if module != "batchlas":
            visit(module, [])


@pytest.mark.parametrize(
    "path", [p for p in MODULES if p.name != "settings.py"], ids=name_of
)
def test_only_settings_reads_our_variables(path):
    """Other variables may be read elsewhere; ours by one module alone."""
    text = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Subscript, ast.Call)):
            source = ast.unparse(node)
            reads = source.startswith(("os.environ[", "os.environ.get(", "os.getenv("))
            assert not (reads and ("BATCHLAS" in source or "PREFIX" in source)), source
