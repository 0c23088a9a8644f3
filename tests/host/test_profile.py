"""The kernel trace and profiling: statement 105 of the specification."""

from __future__ import annotations

import re

import pytest
from interpreter import run_python

import batchlas
from batchlas._runtime.settings import settings
from batchlas._runtime.sycl import why_no_queue

needs_kernels = pytest.mark.skipif(
    why_no_queue() is not None, reason=f"no kernels on the host: {why_no_queue()}"
)
CALL = """
import numpy as np, batchlas
stack = np.tile(np.diag([1.0, 4, 9]), (100, 1, 1))
batchlas.linalg.cholesky(stack)
"""
LANE = {"BATCHLAS_POTRF_ROUTE": "lane:width=8"}
LINE = r"batchlas: kernel \w+ 12 groups (\d\.\d{4}) ms"


def test_both_switches_are_one_field():
    with batchlas.scoped_env(BATCHLAS_KERNEL_TRACE="1") as now:
        assert now.kernel_trace
        assert now.profiling
    with batchlas.scoped_env(BATCHLAS_PROFILING="1") as now:
        assert now.profiling
        assert not now.kernel_trace
    with batchlas.scoped_env(BATCHLAS_KERNEL_TRACE="1", BATCHLAS_PROFILING="0") as now:
        assert now.profiling
    assert not settings().profiling


def test_configure_has_the_same_two():
    done = run_python(
        """
        import batchlas
        from batchlas._runtime.settings import settings
        batchlas.configure(kernel_trace=True)
        print(settings().kernel_trace, settings().profiling)
        """
    )
    assert done.stdout == "True True\n"


@needs_kernels
def test_each_launch_is_a_line_with_its_time():
    lines = run_python(CALL, BATCHLAS_KERNEL_TRACE="1", **LANE).stderr.splitlines()
    assert len(lines) == 2  # whole vectors, then the last one
    assert float(re.fullmatch(LINE, lines[0])[1]) > 0


@needs_kernels
def test_nothing_is_printed_or_profiled_otherwise():
    """Profiling is opt-in."""
    code = CALL + (
        "from batchlas._runtime.sycl import host_queue\n"
        "print(host_queue().has_enable_profiling)"
    )
    done = run_python(code, **LANE)
    assert (done.stdout, done.stderr) == ("False\n", "")
    done = run_python(code, BATCHLAS_PROFILING="1", **LANE)
    assert (done.stdout, done.stderr) == ("True\n", "")


@needs_kernels
def test_a_queue_without_profiling_says_that_it_is_not_timed():
    scope = "scope = batchlas.scoped_env(BATCHLAS_KERNEL_TRACE='1')\n"
    code = CALL + scope + "scope.__enter__()\n" + CALL
    text = run_python(code, **LANE).stderr
    assert "(not timed: its queue was made without profiling)" in text
