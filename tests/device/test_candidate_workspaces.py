"""Every native candidate on scratch of the exact size, full of 0xFF, with a guard band.

Statements 8, 101 and 180 of the specification: what a call borrows is what it was
stated to borrow, it writes no byte beyond, and no result depends on what lay there.
"""

from __future__ import annotations

import pytest
from candidates import questions
from checks import assert_same_bits
from guards import guarded_workspace
from libraries import DPNP, NUMPY

import batchlas

BATCHES = (1, 5, 19)


@pytest.mark.parametrize(
    ("candidate", "call"), questions([NUMPY, DPNP], are_natives=True)
)
def test_scratch_of_the_exact_size(candidate, call):
    ran = 0
    for shape_of in candidate.problem.shapes:
        for batch in BATCHES:
            shape = shape_of(5)
            if not candidate.can_run(call, shape, batch):
                continue
            a = candidate.stack(shape, batch=batch)
            array = candidate.library.asarray(a)
            expected = candidate.run(call, a)
            with candidate.pinned(), guarded_workspace() as sizes:
                stated = batchlas.explain(call.name, array, **call.options)
                found = call.on_host(array)
            assert sum(sizes) == stated.scratch_bytes
            candidate.check(call, a, found)
            for one, other in zip(found, expected, strict=True):
                assert_same_bits(one, other)
            ran += 1
    if not ran:
        pytest.skip(f"{candidate.choice} cannot run on {candidate.library} arrays here")
