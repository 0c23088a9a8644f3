"""The mutations themselves: each still finds its guard and its tests."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "mutants"


def _mutations():
    sys.path.insert(0, str(FOLDER))
    try:
        names = ("of_selection", "of_running", "of_memory", "of_reuse")
        modules = [importlib.import_module(name) for name in names]
    finally:
        sys.path.remove(str(FOLDER))
    return [each for module in modules for each in module.MUTATIONS]


MUTATIONS = _mutations()


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda each: each.guards)
def test_a_mutation_finds_its_guard_and_its_tests(mutation):
    root = FOLDER.parents[1]
    text = (root / mutation.path).read_text(encoding="utf-8")
    compile(mutation.broken(text), mutation.file, "exec")
    assert mutation.tests
    for test in mutation.tests:
        file, _, name = test.partition("::")
        source = (FOLDER.parent / file).read_text(encoding="utf-8")
        assert f"def {name.partition('[')[0]}(" in source or not name


def test_names_are_unique_and_there_are_many():
    names = [each.guards for each in MUTATIONS]
    assert len(set(names)) == len(names) >= 40
