"""SPIR-V made here, as Level Zero would get it, on the OpenCL CPU device."""

import numpy as np
import pytest
from kernel_schedules import PARTING, VECTORS, assert_same, scheduled
from kernel_tails import complex_mix

from batchlas._kernels.compile import launch_opencl, prepare_opencl
from batchlas._kernels.render import ArgKind, Passing, render
from batchlas._kernels.spirv import compile_spirv
from batchlas._kernels.target import OPENCL

CASES = {
    "chol 8": VECTORS["chol 8"],
    "jac threads": PARTING["jac threads"],
    "svd threads and vectors": VECTORS["svd threads and vectors"],
    "complex": (complex_mix(9), ()),
}


def spirv_of(source):
    try:
        return compile_spirv(source)
    except ValueError as error:
        unable = ("needs libcommon_clang", "unknown argument: '--spirv-ext")
        if any(reason in str(error) for reason in unable):
            pytest.skip(f"the compiler library is missing or too old: {error}")
        raise


@pytest.mark.parametrize("case", CASES)
def test_modules_run(queue, case):
    program = pytest.importorskip("dpctl.program")
    example, steps = CASES[case]
    kernel = scheduled(example, OPENCL, steps)
    rendered = render(kernel, OPENCL, Passing.ADDRESS)
    module = spirv_of(rendered.source)
    loaded = program.create_program_from_spirv(queue, module)
    arrays = example.make()
    values = [
        example.scalars[arg.name]
        if arg.kind is ArgKind.SCALAR
        else arrays[arg.name].ctypes.data
        for arg in rendered.args
    ]
    launch_opencl(prepare_opencl(rendered, loaded), queue, values)
    assert_same(example, arrays, example.run(kernel))


def test_modules_are_the_same_each_time():
    source = "__kernel void f(__global double *x) { x[get_global_id(0)] *= 2.0; }"
    assert spirv_of(source) == spirv_of(source)
    assert np.frombuffer(spirv_of(source), np.uint32)[0] == 0x07230203


def test_a_broken_text_is_reported():
    spirv_of("__kernel void f(__global int *x) { x[0] = 1; }")
    with pytest.raises(ValueError, match="error"):
        compile_spirv("__kernel void f( {")
