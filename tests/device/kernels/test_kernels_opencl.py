"""OpenCL C on the CPU device, against the interpreter."""

import numpy as np
import pytest
from kernel_runs import run_opencl
from kernel_schedules import PARTING, PLAIN, VECTORS, assert_same, scheduled

from batchlas._kernels.compile import (
    CompileError,
    compile_opencl,
    launch_opencl,
)
from batchlas._kernels.render import Passing, render
from batchlas._kernels.target import OPENCL

CASES = PLAIN | PARTING | VECTORS


@pytest.mark.parametrize("case", CASES)
def test_schedules(queue, case):
    example, steps = CASES[case]
    kernel = scheduled(example, OPENCL, steps)
    got = run_opencl(queue, kernel, example.make(), example.scalars)
    assert_same(example, got, example.run(kernel))


def test_usm_memory(queue):
    memory = pytest.importorskip("dpctl.memory")
    example, steps = CASES["chol 8"]
    rendered = render(scheduled(example, OPENCL, steps), OPENCL)
    arrays = example.make()
    usm = {n: memory.MemoryUSMShared(a.nbytes, queue=queue) for n, a in arrays.items()}
    for name, array in arrays.items():
        usm[name].copy_from_host(array.reshape(-1).view(np.uint8))
    compiled = compile_opencl(rendered, queue)
    launch_opencl(compiled, queue, [usm[arg.name] for arg in rendered.args])
    got = {
        name: usm[name].copy_to_host().view(a.dtype).reshape(a.shape)
        for name, a in arrays.items()
    }
    want = example.run()
    assert_same(example, got, want)


def test_one_compilation_for_equal_kernels(queue):
    example, steps = CASES["chol 8"]
    first = scheduled(example, OPENCL, steps)
    again = scheduled(example, OPENCL, steps)
    passing = Passing.ADDRESS
    assert compile_opencl(render(first, OPENCL, passing), queue) is compile_opencl(
        render(again, OPENCL, passing), queue
    )


def test_too_much_group_memory_is_found_before_the_launch(queue):
    from kernel_zoo import F64, KernelBuilder

    w = KernelBuilder("greedy")
    x = w.array("x", F64, (4,))
    big = w.local("big", F64, (queue.sycl_device.local_mem_size // 8 + 1,))
    with w.weak(4, "b") as b:
        big[0] = x[b]
        x[b] = big[0] + 1.0
    rendered = render(w.finish(), OPENCL, Passing.ADDRESS)
    with pytest.raises(CompileError, match="bytes of work-group memory"):
        compile_opencl(rendered, queue)


def test_a_group_larger_than_the_device_allows(queue):
    from dataclasses import replace

    example, steps = CASES["chol threads"]
    rendered = render(scheduled(example, OPENCL, steps), OPENCL, Passing.ADDRESS)
    with pytest.raises(CompileError, match="threads in a group"):
        compile_opencl(replace(rendered, digest="", group_size=10**6), queue)


def test_a_text_that_does_not_compile_is_shown(queue):
    from dataclasses import replace

    example, steps = CASES["chol threads"]
    rendered = render(scheduled(example, OPENCL, steps), OPENCL, Passing.ADDRESS)
    broken = replace(rendered, digest="broken", source="__kernel void f( {")
    with pytest.raises(CompileError, match="does not compile"):
        compile_opencl(broken, queue)
