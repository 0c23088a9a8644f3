"""Running a kernel on NumPy arrays between poisoned bands."""

import numpy as np

from batchlas._kernels.compile import compile_opencl, launch_opencl
from batchlas._kernels.render import ArgKind, Passing, render
from batchlas._kernels.target import OPENCL

GUARD = 64  # bytes before and after an array, a multiple of its alignment


class Guarded:
    """An array with poison on both sides, to see what is written outside it."""

    def __init__(self, array):
        size = array.nbytes + 2 * GUARD
        self.bytes = np.full(size, 0xA5, np.uint8)
        inside = self.bytes[GUARD : GUARD + array.nbytes]
        self.array = inside.view(array.dtype).reshape(array.shape)
        self.array[...] = array

    def assert_intact(self):
        assert (self.bytes[:GUARD] == 0xA5).all()
        assert (self.bytes[-GUARD:] == 0xA5).all()


def run_opencl(queue, kernel, arrays, scalars=None):
    """Run a kernel on NumPy arrays; return copies of them all."""
    scalars = scalars or {}
    rendered = render(kernel, OPENCL, Passing.ADDRESS)
    compiled = compile_opencl(rendered, queue)
    guarded = {name: Guarded(array) for name, array in arrays.items()}
    values = [
        scalars[arg.name]
        if arg.kind is ArgKind.SCALAR
        else guarded[arg.name].array.ctypes.data
        for arg in rendered.args
    ]
    launch_opencl(compiled, queue, values)
    for item in guarded.values():
        item.assert_intact()
    return {name: item.array for name, item in guarded.items()}
