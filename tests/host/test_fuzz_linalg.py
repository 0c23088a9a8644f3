"""Every public function on any stack, against NumPy and the definitions."""

from __future__ import annotations

import warnings
from contextlib import ExitStack, contextmanager

import numpy as np
import pytest
from calls import Call
from hypothesis import HealthCheck, Phase, given, reject, settings
from hypothesis import strategies as st
from oracle import Oracle
from strategies import REFUSED, samples
from verdicts import computed, judge_results

import batchlas
from batchlas import linalg
from batchlas._ops import SPECS
from batchlas._runtime.dtypes import NAME_OF
from batchlas._select import ScopedPin
from batchlas.exceptions import PinError

ALWAYS_GOOD = {
    "cholesky": {"upper": st.booleans()},
    "eigh": {"UPLO": st.sampled_from("LUlu")},
    "eigvalsh": {"UPLO": st.sampled_from("LUlu")},
    "svd": {
        "full_matrices": st.booleans(),
        "compute_uv": st.booleans(),
        "hermitian": st.booleans(),
    },
    "svdvals": {},
}
FUNCTIONS = [
    name for name in linalg.__all__ if not isinstance(vars(linalg)[name], type)
]
BASES = {name: name.removesuffix("_ex") for name in FUNCTIONS}
NUMPYS = [name for name in BASES.values() if name in vars(np.linalg)]
# Nothing at all is rare.
FAST_ORDERS = (2, 3, 5, 1, 2, 3, 5, 0)
SLOW_ORDERS = (*range(1, 10), *range(10), 16, 17, 33)

common = {
    "phases": [each for each in Phase if each is not Phase.explain],
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}
fast = settings(max_examples=300, derandomize=True, database=None, **common)
slow = settings(max_examples=10_000, print_blob=True, **common)


@contextmanager
def pinned(place, dtype):
    """Pin every op to the candidate of a number, or none for 0."""
    with ExitStack() as pins:
        for spec in SPECS if place else ():
            candidates = spec.candidates(dtype, "numpy")
            choice = candidates[place % len(candidates)]
            pins.enter_context(ScopedPin(spec.op, choice))
        yield


@pytest.fixture(scope="module")
def oracle():
    process = Oracle()
    yield process
    process.close()


def outcome(call, a):
    """Return the results of a call, or the error that it raised."""
    try:
        return call(a), None
    except PinError:
        raise
    except (batchlas.LinAlgError, TypeError, ValueError) as error:
        return None, error


def assert_numpys_refusal(error, answer):
    """Check an error about the argument itself: NumPy must raise of the same kind."""
    assert answer.error, f"NumPy computes it, batchlas raised {error!r}"
    types = {each.__name__ for each in type(error).__mro__}
    kinds = {"LinAlgError", "TypeError", "ValueError"}
    assert types & kinds & set(answer.error_types), (error, answer)
    assert str(error).strip()


def is_refused(a):
    """Whether an argument is no stack of what is computed."""
    return a.dtype.name in REFUSED or a.dtype.kind in "OUM" or a.ndim < 2


def check_against_numpy(found, answer, *, is_empty):
    """Check shapes and types against NumPy's, and all of it for a stack of nothing."""
    if answer.results is None:
        return
    for one, other in zip(found, answer.results, strict=True):
        assert one.shape == other.shape
        assert one.dtype == other.dtype
        assert type(one) is type(other)
        if is_empty:
            np.testing.assert_array_equal(one, other)


def numpys_answer(name, a, options, oracle):
    """Return NumPy's answer; None where it has no such function.

    It follows no rule for NaN and infinity, so of such stacks it is asked another one.
    """
    if BASES[name] not in NUMPYS:
        return None
    if a.dtype.kind in "fc" and not np.isfinite(a).all():
        a = np.zeros_like(a)
    return oracle.ask(BASES[name], a, options)


def check(name, sample, options, oracle):
    a, before = sample.array(), sample.array()
    call = Call(name, options)
    answer = numpys_answer(name, before, options, oracle)
    found, error = outcome(call, a)
    np.testing.assert_array_equal(a, before)  # which takes NaN for NaN
    if error is not None and getattr(error, "info", None) is None:
        if answer is not None:
            assert_numpys_refusal(error, answer)
        return
    assert not is_refused(a)
    stack = computed(a)
    failed = np.zeros(stack.shape[:-2], bool)
    if name.endswith("_ex"):
        *found, info = (each for each in found if each is not None)
        assert info.dtype == np.int32
        assert (info >= 0).all()
        failed = info > 0
    elif error is not None:
        for index in error.indices:
            failed[index] = True
        np.testing.assert_array_equal(error.info > 0, failed)
        with batchlas.errstate(linalg="nan"):
            found = call(a)
    if answer is not None:
        check_against_numpy(found, answer, is_empty=not stack.size)
    if stack.size:
        judge_results(call, stack, tuple(found), failed)


def fuzz(name, orders, profile, oracle):
    @given(
        samples(orders, rectangles=BASES[name].startswith("svd")),
        st.fixed_dictionaries({}, optional=ALWAYS_GOOD[BASES[name]]),
        st.integers(0, 12),
    )
    @profile
    def examples(sample, options, place):
        dtype = NAME_OF.get(np.dtype(sample.dtype).char, "float64")
        with pinned(place, dtype), warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                check(name, sample, options, oracle)
            except PinError:
                reject()  # what is pinned does not take this shape

    examples()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_any_stack(name, oracle):
    fuzz(name, FAST_ORDERS, fast, oracle)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_any_stack_of_ten_thousand(name, oracle):
    fuzz(name, SLOW_ORDERS, slow, oracle)


# What an option may be given by mistake or for short, beside what is documented.
ODD = [None, "", "X", "l", "upper", b"L", 0, 1, 2.5, (), [1], np.True_, np.str_("U")]


@pytest.mark.parametrize("value", ODD, ids=repr)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_odd_options(name, value):
    """As NumPy takes them, or an error of a kind that it raises for arguments."""
    a = np.array([[4.0, 2.0], [1.0, 5.0]])  # so that its two triangles differ
    for option in ALWAYS_GOOD[BASES[name]]:
        found, error = outcome(Call(name, {option: value}), a)
        if BASES[name] not in NUMPYS:
            continue
        try:
            expected = vars(np.linalg)[BASES[name]](a, **{option: value})
        except (AttributeError, TypeError, ValueError):
            assert isinstance(error, (TypeError, ValueError))
            assert repr(value) in str(error) or option in str(error)
            continue
        assert error is None
        expected = expected if isinstance(expected, tuple) else (expected,)
        found = [each for each in found if each is not None][: len(expected)]
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(np.abs(one), np.abs(other), rtol=1e-12)
