"""Nothing is read or written outside an array: statements 134 and 177.

Arrays begin and end at memory pages that may not be touched, so that one element too
far ends the process.
"""

from __future__ import annotations

import mmap
import sys

import pytest
from interpreter import run_python

from batchlas._runtime.sycl import why_no_queue

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"),
    reason="mprotect is called as on Linux",
)

FENCES = """
import ctypes, mmap
import numpy as np, batchlas
from batchlas._ops import potrf
from batchlas._select import ScopedPin
from families import definite

libc = ctypes.CDLL(None, use_errno=True)
page = mmap.PAGESIZE
keep = []

def fenced(a, at_the_end):
    \"\"\"Return a copy of an array that touches an untouchable page.\"\"\"
    pages = -(-a.nbytes // page)
    memory = mmap.mmap(-1, (pages + 2) * page)
    keep.append(memory)
    first = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for fence in (first, first + (pages + 1) * page):
        assert libc.mprotect(ctypes.c_void_p(fence), page, 0) == 0
    start = page + (pages * page - a.nbytes if at_the_end else 0)
    copy = np.frombuffer(memory, a.dtype, a.size, start).reshape(a.shape)
    copy[...] = a
    return copy
"""
CALLS = """
for dtype in ("float64", "complex64"):
    choices = [*potrf.candidates(dtype, "numpy")]
    for choice in choices if {has_kernels} else choices[-2:]:
        for n, batch in ((3, 7), (4, 1), (9, 17)):
            a = definite(batch, n, n, dtype=dtype)
            with ScopedPin("potrf", choice):
                expected = batchlas.linalg.cholesky(a)
                for at_the_end in (False, True):
                    b = fenced(a, at_the_end)
                    for upper in (False, True):
                        found = batchlas.linalg.cholesky(b, upper=upper)
                        if not upper:
                            assert (found == expected).all()
                    batchlas.linalg.cholesky_ex(-b)
                    batchlas.linalg.cholesky(b[batch // 2 :])
for family in ("vendor", "threads", "auto"):
    with ScopedPin("syev", family), ScopedPin("gesvd", family):
        for n in (1, 3, 8):
            for at_the_end in (False, True):
                b = fenced(definite(9, n, n), at_the_end)
                batchlas.linalg.eigh(b)
                batchlas.linalg.svd(b[:, :, : n - n // 2], full_matrices=False)
print("done")
"""


def with_helpers():
    from interpreter import ROOT

    return f"import sys; sys.path.insert(0, {str(ROOT / 'tests')!r})\n"


def test_every_choice_stays_within_its_arrays():
    code = with_helpers() + FENCES + CALLS.format(has_kernels=why_no_queue() is None)
    assert run_python(code, timeout=280).stdout == "done\n"


@pytest.mark.parametrize("at_the_end", [False, True])
def test_a_step_too_far_ends_the_process(at_the_end):
    """What the test above rests on."""
    where = "a.nbytes" if at_the_end else "-1"
    code = f"""
a = fenced(np.zeros({mmap.PAGESIZE}), {at_the_end})
ctypes.c_char.from_address(a.ctypes.data + {where}).value
"""
    done = run_python(with_helpers() + FENCES + code, check=False)
    assert done.returncode < 0
