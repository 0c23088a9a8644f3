"""Warnings are given once per cause."""

import threading
import warnings

import pytest

from batchlas._runtime.notices import reset_warnings, warn_once
from batchlas.exceptions import BatchlasWarning, BorrowedTableWarning


def test_a_cause_warns_once_until_it_is_forgotten():
    for _ in range(2):
        with pytest.warns(BatchlasWarning, match="first"):
            warn_once("cause", "first")
        warn_once("cause", "second")  # warnings are errors here
        with pytest.warns(BorrowedTableWarning, match="third"):
            warn_once(("cause", 2), "third", BorrowedTableWarning)
        reset_warnings()


def test_a_cause_warns_once_even_from_many_threads():
    start = threading.Barrier(8)

    def warn():
        start.wait()
        for cause in range(200):
            warn_once(cause, f"cause {cause}")

    threads = [threading.Thread(target=warn) for _ in range(8)]
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(given) == 200
