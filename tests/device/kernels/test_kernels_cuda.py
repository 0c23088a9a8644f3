"""CUDA C: what nvcc makes of every schedule, many kernels in one file."""

import shutil
import subprocess

import pytest
from kernel_schedules import PARTING, PLAIN, scheduled
from kernel_tails import TAILS
from kernel_zoo import F64, KernelBuilder

from batchlas._kernels.render import render
from batchlas._kernels.target import CUDA

NVCC = shutil.which("nvcc")
needs_nvcc = pytest.mark.skipif(NVCC is None, reason="nvcc is not installed")


def texts():
    cases = PLAIN | PARTING | {name: (make(9), ()) for name, make in TAILS.items()}
    for number, (example, steps) in enumerate(cases.values()):
        kernel = scheduled(example, CUDA, steps).with_info(name=f"kernel_{number}")
        yield render(kernel, CUDA).source


def dynamic():
    """A kernel with more work-group memory than a text may declare."""
    w = KernelBuilder("dynamic")
    x, big = w.array("x", F64, (8, 4)), w.local("big", F64, (7000, 1))
    small = w.local("small", F64, (4,))
    with w.weak(8, "b") as b, w.threads(4, "t") as t:
        big[t * 100, 0] = x[b, t]
        small[t] = x[b, t]
        w.barrier()
        x[b, t] = big[(3 - t) * 100, 0] + small[t]
    return w.finish()


@needs_nvcc
def test_nvcc_takes_every_schedule(tmp_path):
    source = tmp_path / "all.cu"
    rendered = render(dynamic(), CUDA)
    assert rendered.dynamic_local_bytes == 7004 * 8
    source.write_text("\n".join([*texts(), rendered.source]))
    command = [NVCC, "-arch=sm_90", "-cubin", "-Werror", "all-warnings"]
    done = subprocess.run(
        [*command, "-o", str(tmp_path / "all.cubin"), str(source)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
