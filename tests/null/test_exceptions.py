"""Errors derive from what NumPy or Python would raise in their place."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from batchlas import exceptions
from batchlas.exceptions import LinAlgError

PARENTS = {
    "LinAlgError": np.linalg.LinAlgError,
    "NoRouteError": RuntimeError,
    "BlasHealthError": RuntimeError,
    "SettingsError": ValueError,
    "SpellingError": ValueError,
    "PinError": ValueError,
    "TableError": ValueError,
    "BatchlasWarning": UserWarning,
    "BorrowedTableWarning": exceptions.BatchlasWarning,
    "StaleTableWarning": exceptions.BatchlasWarning,
}


def test_every_type_is_listed_here():
    assert set(PARENTS) == set(exceptions.__all__)


@pytest.mark.parametrize("name", PARENTS)
def test_parents(name):
    assert issubclass(vars(exceptions)[name], PARENTS[name])


@pytest.mark.parametrize(
    "duplicate", [copy.copy, lambda e: pickle.loads(pickle.dumps(e))]
)
def test_a_linalg_error_keeps_all_its_parts(duplicate):
    error = LinAlgError("text", [(1, 2), (3, 4)], np.array([1, 0], np.int32))
    found = duplicate(error)
    assert type(found) is LinAlgError
    assert str(found) == "text"
    assert found.indices == ((1, 2), (3, 4))
    assert found.info.tolist() == [1, 0]


def test_a_linalg_error_without_parts():
    error = LinAlgError("text")
    assert error.indices == ()
    assert error.info is None
