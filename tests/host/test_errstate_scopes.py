"""errstate across blocks, threads and tasks; the error itself across processes."""

from __future__ import annotations

import asyncio
import contextvars
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import batchlas
from batchlas import errstate, linalg

BAD = np.stack([np.eye(2), -np.eye(2)])


def policy():
    """Return the policy in force, as a call shows it."""
    try:
        factor = linalg.cholesky(BAD)
    except batchlas.LinAlgError:
        return "raise"
    return "nan" if np.isnan(factor[1]).all() else "ignore"


def test_raise_is_the_default():
    assert policy() == "raise"


def test_blocks_nest():
    with errstate(linalg="nan"):
        assert policy() == "nan"
        with errstate(linalg="raise"):
            assert policy() == "raise"
            with errstate(linalg="nan"):
                assert policy() == "nan"
            assert policy() == "raise"
        assert policy() == "nan"
    assert policy() == "raise"


def test_an_error_leaves_its_block():
    with pytest.raises(ZeroDivisionError), errstate(linalg="nan"):
        _ = 1 / 0
    assert policy() == "raise"


def test_one_object_may_be_entered_within_itself():
    state = errstate(linalg="nan")
    with state, state:
        assert policy() == "nan"
    assert policy() == "raise"


def test_it_decorates_functions():
    @errstate(linalg="nan")
    def inner():
        return policy()

    assert inner() == "nan"
    assert inner() == "nan"
    assert policy() == "raise"


@pytest.mark.parametrize("family", ["vendor", "threads"])
def test_ignore_leaves_good_matrices_alone(family):
    with batchlas.scoped_env(BATCHLAS_POTRF_ROUTE=family), errstate(linalg="ignore"):
        np.testing.assert_array_equal(linalg.cholesky(BAD)[0], np.eye(2))


def test_a_new_thread_starts_with_the_default():
    with errstate(linalg="nan"), ThreadPoolExecutor(1) as pool:
        assert pool.submit(policy).result() == "raise"
        context = contextvars.copy_context()
        assert pool.submit(context.run, policy).result() == "nan"


def test_threads_do_not_see_each_other():
    barrier = threading.Barrier(8, timeout=30)

    def work(word):
        found = []
        with errstate(linalg=word):
            for _ in range(20):
                barrier.wait()
                found.append(policy())
        return set(found)

    words = ["nan", "raise"] * 4
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, words)) == [{word} for word in words]
    assert policy() == "raise"


def test_tasks_do_not_see_each_other():
    async def work(word):
        found = set()
        with errstate(linalg=word):
            for _ in range(20):
                await asyncio.sleep(0)
                found.add(policy())
        return found

    async def main():
        return await asyncio.gather(*(work(w) for w in ("nan", "raise", "nan")))

    assert asyncio.run(main()) == [{"nan"}, {"raise"}, {"nan"}]


def test_a_task_inherits_the_block_that_started_it():
    async def work():
        return policy()

    async def main():
        with errstate(linalg="nan"):
            task = asyncio.create_task(work())
        return await task

    assert asyncio.run(main()) == "nan"


def test_the_error_survives_pickling():
    stack = np.stack([[np.eye(2), -np.eye(2)], [np.eye(2) * np.nan, np.eye(2)]])
    with pytest.raises(batchlas.LinAlgError) as caught:
        linalg.cholesky(stack)
    error = caught.value
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is batchlas.LinAlgError
    assert str(copy) == str(error)
    assert copy.indices == error.indices == ((0, 1), (1, 0))
    np.testing.assert_array_equal(copy.info, [[0, 1], [1, 0]])


def test_the_text_says_why_each_matrix_failed():
    stack = np.stack([np.eye(2), np.diag([1.0, -1]), np.full((2, 2), np.inf)])
    text = (
        "Matrix is not positive definite: 2 of 3 matrices failed: "
        "[1] leading minor of order 2 is not positive definite; "
        "[2] contains NaN or infinity"
    )
    with pytest.raises(batchlas.LinAlgError) as caught:
        linalg.cholesky(stack)
    assert str(caught.value) == text


def test_the_text_of_a_single_matrix():
    with pytest.raises(batchlas.LinAlgError) as caught:
        linalg.cholesky(np.diag([1.0, 2, -3]))
    assert str(caught.value) == (
        "Matrix is not positive definite: "
        "leading minor of order 3 is not positive definite"
    )
    assert caught.value.indices == ((),)
    assert caught.value.info.tolist() == 3


def test_the_cause_does_not_blame_a_triangle_that_is_not_read():
    """NaN above the diagonal is never read, so it is not why the matrix failed."""
    a = np.array([[-1.0, np.nan], [0, 1]])
    with pytest.raises(batchlas.LinAlgError, match="leading minor of order 1"):
        linalg.cholesky(a)
