"""Every candidate of every op, pinned: limits, layouts, memory, and the same bits."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from candidates import PROBLEMS, USUAL_ORDERS, all_candidates, questions
from checks import assert_all_nan, assert_same_bits
from interpreter import run_module
from libraries import DPNP, NUMPY

import batchlas
import batchlas._backends.numpy as numpy_backend
from batchlas._ops import SPECS
from batchlas._select import testing
from batchlas._vendor import _ADAPTERS, adapter_of
from batchlas.exceptions import PinError

BEYOND_LIMITS = Path(__file__).with_name("beyond_limits.py")
POISON = {"f": -999.0, "c": -999.0 + 777.0j}
GUARD_BYTES = 4096


def is_onemkl(candidate):
    """Whether it rounds by the alignment of each matrix's address, as oneMKL does."""
    return candidate.choice.uses_library and candidate.library == DPNP


def needs(candidate, call):
    """Skip where a candidate runs nothing at all: it needs what is not here."""
    if not any(candidate.can_run(call, of(5)) for of in candidate.problem.shapes):
        pytest.skip(f"{candidate.choice} cannot run on {candidate.library} arrays here")


def test_every_op_is_tested():
    assert {spec.op for spec in SPECS} == set(PROBLEMS)


@pytest.mark.parametrize(("candidate", "call"), questions())
def test_it_runs_up_to_its_limits_and_refuses_beyond(candidate, call):
    """24, 25: right on one side of every limit, and an error on the other."""
    needs(candidate, call)
    for shape_of in candidate.problem.shapes:
        for n in candidate.edges(call, shape_of) or USUAL_ORDERS:
            for shape in (shape_of(n), shape_of(n + 1)):
                runs_or_refuses(candidate, call, shape)


def runs_or_refuses(candidate, call, shape):
    if candidate.can_run(call, shape):
        a = candidate.stack(shape)
        candidate.check(call, a, candidate.run(call, a))
        return
    why = rf"{re.escape(str(candidate.choice))} cannot run .*n={shape[-1]}"
    with pytest.raises(PinError, match=why):
        candidate.run(call, candidate.stack(shape, batch=3))


@pytest.mark.parametrize("op", PROBLEMS)
def test_what_can_run_refuses_does_not_run(op):
    """21, 25: without `can_run` the driver itself raises, or its answer is wrong.

    In a process of its own, which a driver without a check may take down.
    """
    done = run_module(str(BEYOND_LIMITS), op, check=False, timeout=280)
    outcomes = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, (outcomes[-1:], done.stderr[-2000:])
    right = [each for each in outcomes if each["outcome"] == "right"]
    assert not right, "can_run refuses what runs"
    refused = {each["candidate"] for each in outcomes}
    limited = {
        str(each)
        for each in all_candidates()
        if each.spec.op == op and not each.choice.uses_library
    }
    assert refused <= limited


def padded(a):
    """Return a view of `a`'s values in a larger array, and that array.

    Rows are n + 3 long and matrices (n + 3)(m + 2) apart; what lies between is poison,
    finite so that whoever writes a value computed from it is seen too.
    """
    batch, m, n = a.shape
    whole = np.full((batch + 1, m + 2, n + 3), POISON[a.dtype.kind], a.dtype)
    whole[:batch, 1 : m + 1, 2 : n + 2] = a
    return whole, np.s_[:batch, 1 : m + 1, 2 : n + 2]


def poisoned(candidate, call, a):
    """Return `a` with poison in the triangle that the call does not read."""
    if candidate.spec.op == "gesvd":
        return a
    reads_upper = call.options.get("upper") or call.options.get("UPLO") == "U"
    unread = np.tri(a.shape[-1], k=-1, dtype=bool)
    a = a.copy()
    a[..., unread if reads_upper else unread.T] = POISON[a.dtype.kind]
    return a


@pytest.mark.parametrize(("candidate", "call"), questions())
def test_poison_between_rows_and_matrices_survives(candidate, call):
    needs(candidate, call)
    for shape_of in candidate.problem.shapes:
        shape = shape_of(5)
        if not candidate.can_run(call, shape):
            continue
        a = candidate.stack(shape, batch=11)
        expected = candidate.run(call, a)
        whole, part = padded(poisoned(candidate, call, a))
        array = candidate.library.asarray(whole)
        with candidate.pinned():
            found = call.on_host(array[part])
        assert_same_bits(candidate.library.to_host(array), whole)
        candidate.check(call, a, found)
        for one, other in zip(found, expected, strict=True):
            assert_same_bits(one, other)


@pytest.mark.parametrize(("candidate", "call"), questions([NUMPY]))
def test_strides_of_no_whole_rows(candidate, call):
    """A leading dimension of n + 3, and matrices ld * m + 5 apart."""
    needs(candidate, call)
    for shape_of in candidate.problem.shapes:
        m, n = shape_of(5)
        if not candidate.can_run(call, (m, n)):
            continue
        a = poisoned(candidate, call, candidate.stack((m, n), batch=7))
        ld = n + 3
        stride = ld * m + 5
        memory = np.full(7 * stride + 3, POISON[a.dtype.kind], a.dtype)
        steps = [each * a.itemsize for each in (stride, ld, 1)]
        view = np.lib.stride_tricks.as_strided(memory[3:], (7, m, n), steps)
        view[...] = a
        before = memory.copy()
        found = candidate.run(call, view)
        assert_same_bits(memory, before)
        for one, other in zip(found, candidate.run(call, a), strict=True):
            assert_same_bits(one, other)


def unaligned(a):
    """Return a copy whose elements begin at odd addresses."""
    view = np.empty(a.nbytes + 1, np.uint8)[1:].view(a.dtype).reshape(a.shape)
    view[...] = a
    return view


def read_only(a):
    a = a.copy()
    a.flags.writeable = False
    return a


# How NumPy alone can lay a stack out; all hold the values of the stack itself.
LAYOUTS = {
    "byte-swapped": lambda a: a.astype(a.dtype.newbyteorder(">")),
    "Fortran": np.asfortranarray,
    "unaligned": unaligned,
    "read-only": read_only,
    "backwards": lambda a: a[::-1, ::-1, ::-1].copy()[::-1, ::-1, ::-1],
}


@pytest.mark.parametrize(("candidate", "call"), questions([NUMPY]))
def test_layouts_of_numpy(candidate, call):
    needs(candidate, call)
    for shape_of in candidate.problem.shapes:
        shape = shape_of(5)
        if not candidate.can_run(call, shape):
            continue
        a = candidate.stack(shape, batch=9)
        expected = candidate.run(call, a)
        for layout in LAYOUTS.values():
            found = candidate.run(call, layout(a))
            for one, other in zip(found, expected, strict=True):
                assert_same_bits(one, other)


@pytest.mark.parametrize(("candidate", "call"), questions())
def test_a_bad_matrix_fails_alone(candidate, call):
    """First, in the middle, last: its results are NaN, all others the same bits."""
    needs(candidate, call)
    for shape_of in candidate.problem.shapes:
        shape, batch = shape_of(5), 19
        if not candidate.can_run(call, shape, batch):
            continue
        good = candidate.stack(shape, batch=batch)
        expected = candidate.run(call, good)
        values = [np.nan, np.inf, -np.inf]
        if candidate.spec.op == "potrf":
            values[1] = -1e3  # finite, and not positive definite
        for place, value in zip((0, 9, 18), values, strict=True):
            bad = good.copy()
            bad[place, 2, 2] = value
            with batchlas.errstate(linalg="nan"):
                found = candidate.run(call, bad)
            rest = np.arange(batch) != place
            for one, other in zip(found, expected, strict=True):
                assert_all_nan(one[place])
                assert_same_bits(one[rest], other[rest])
            with pytest.raises(batchlas.LinAlgError) as error:
                candidate.run(call, bad)
            assert error.value.indices == ((place,),)


@pytest.mark.parametrize("n", [5, pytest.param(12, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("candidate", "call"), questions())
def test_identical_matrices_have_identical_results(candidate, call, n):
    """1,024 of them: whatever races or depends on the place shows in some."""
    needs(candidate, call)
    for shape_of in candidate.problem.shapes:
        a = candidate.stack(shape_of(n), batch=1)
        if not candidate.can_run(call, a.shape[-2:], batch=1024):
            continue
        stack = np.tile(a, (1024, 1, 1))
        found = candidate.run(call, stack)
        candidate.check(call, stack, found)
        for each in () if is_onemkl(candidate) else found:
            assert_same_bits(each, np.broadcast_to(each[:1], each.shape))


@pytest.fixture
def tables():
    """Let a test say what the tables rank, and bring the shipped ones back."""
    yield testing.set_builtin_tables
    testing.use_shipped_tables()


@pytest.mark.parametrize(("candidate", "call"), questions())
def test_a_pin_and_a_table_run_the_same(candidate, call, tables):
    needs(candidate, call)
    op, shape = candidate.spec.op, candidate.problem.shapes[0](5)
    if not candidate.can_run(call, shape):
        pytest.skip(f"{candidate.choice} does not run {shape}")
    _, device = candidate.question(call, shape)
    head = f"# op={op} device={device.key} source=measured\n# keys: dtype:exact n:log\n"
    row = f"dtype={candidate.dtype} n=5 | {candidate.choice} 1\n"
    tables({f"{op}.{device.key}.txt": head + row})
    a = candidate.stack(shape, batch=13)
    array = candidate.library.asarray(a)
    chosen = batchlas.explain(call.name, array, **call.options)
    assert chosen.choice == str(candidate.choice)
    assert "pinned" not in chosen.text
    for one, other in zip(call.on_host(array), candidate.run(call, a), strict=True):
        assert_same_bits(one, other)


def from_driver(candidate, call, array):
    """Return what the library's adapter itself returns."""
    adapter = adapter_of(candidate.library.name, candidate.choice.name)
    options = call.options
    if candidate.spec.op == "potrf":
        return adapter.potrf(array, "U" if options.get("upper") else "L")[:1]
    if candidate.spec.op == "syev":
        vectors = call.name == "eigh"
        return adapter.syev(array, options.get("UPLO", "L"), vectors=vectors)[:2]
    vectors = call.name == "svd" and options.get("compute_uv", True)
    job = "all" if options.get("full_matrices", True) else "thin"
    return adapter.gesvd(array, job if vectors else "none")[:3]


@pytest.mark.parametrize(("candidate", "call"), questions(are_natives=False))
def test_a_pin_runs_the_driver_and_nothing_else(candidate, call):
    """Of libraries alone: what calls a driver of our own is its op and nobody else."""
    needs(candidate, call)
    if (candidate.library.name, candidate.choice.name) not in _ADAPTERS:
        pytest.skip("a family of our own, which only takes products from a library")
    a = candidate.stack(candidate.problem.shapes[0](5), batch=6)
    array = candidate.library.asarray(a)
    expected = [
        each for each in from_driver(candidate, call, array) if each is not None
    ]
    for one, other in zip(candidate.run(call, a), expected, strict=True):
        assert_same_bits(one, candidate.library.to_host(other))


@pytest.mark.parametrize(("candidate", "call"), questions())
def test_without_a_library_the_families_that_need_none_run(candidate, call):
    needs(candidate, call)
    shape = next(
        of(5) for of in candidate.problem.shapes if candidate.can_run(call, of(5))
    )
    a = candidate.stack(shape, batch=4)
    with batchlas.scoped_env(BATCHLAS_NO_VENDOR="1"):
        if candidate.choice.uses_library:
            with pytest.raises(PinError, match=r"can(not)? run"):
                candidate.run(call, a)
        else:
            candidate.check(call, a, candidate.run(call, a))


@pytest.fixture
def guarded_results(monkeypatch):
    """Hand out memory for results that is full of 0xFF and has guards on both sides."""
    memories = []

    def guarded_empty(shape, dtype, _like):
        size = int(np.prod(shape)) * dtype.itemsize
        memory = np.full(size + 2 * GUARD_BYTES + 64, 0xA5, np.uint8)
        start = GUARD_BYTES + -(memory.ctypes.data + GUARD_BYTES) % 64
        inside = memory[start : start + size]
        inside[...] = 0xFF
        memories.append((memory, start, size))
        return inside.view(dtype).reshape(shape)

    monkeypatch.setattr(numpy_backend, "empty", guarded_empty)
    return memories


@pytest.mark.parametrize(("candidate", "call"), questions([NUMPY], are_natives=True))
def test_nothing_but_the_results_is_written(candidate, call, guarded_results):
    """And all of the results: what a kernel leaves of 0xFF is NaN."""
    needs(candidate, call)
    for shape_of in candidate.problem.shapes:
        for batch in (1, 5, 16, 19):
            a = candidate.stack(shape_of(5), batch=batch)
            if candidate.can_run(call, a.shape[-2:], batch):
                candidate.check(call, a, candidate.run(call, a))
    assert guarded_results
    for memory, start, size in guarded_results:
        assert (memory[:start] == 0xA5).all()
        assert (memory[start + size :] == 0xA5).all()


@pytest.mark.skipif(sys.platform != "linux", reason="uses mmap and mprotect of Linux")
@pytest.mark.parametrize("op", PROBLEMS)
def test_nothing_beyond_the_input_is_read(op):
    """An input that ends where readable memory ends; a process of its own may crash."""
    script = BEYOND_LIMITS.with_name("end_of_memory.py")
    done = run_module(str(script), op, check=False, timeout=280)
    last = done.stdout.splitlines()[-1:]
    assert done.returncode == 0, (last, done.stderr[-2000:])
    assert last == ["done"]
