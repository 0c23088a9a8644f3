"""numba-dpex on the CPU device: few kernels, as each takes a second to compile."""

import numpy as np
import pytest
from kernel_schedules import PLAIN, VECTOR, VECTORS, assert_same, scheduled, split
from kernel_tails import TAILS

from batchlas._kernels.compile import compile_dpex
from batchlas._kernels.render import ArgKind, render
from batchlas._kernels.target import DPEX

CHOSEN = (
    "gram float32",
    "chol threads and rows",
    "chol masked",
    "gram grouped from the top",
    "gram sum padded",
    "jac",
    "svd rows",
    "cooperative",
    "registers",
)
IN_VECTORS = (
    "gram float32 8",
    "chol masked 2",
    "jac 2",
    "svd 2",
    "columns",
    "right-hand sides",
    "registers",
    "padded",
)
SCALAR = {name: PLAIN[name] for name in CHOSEN} | {
    name: (TAILS[name](9), ())
    for name in ("packed_chol", "rounds", "complex_mix single", "flags")
}
VECTOR_CASES = {f"vectors: {name}": VECTORS[name] for name in IN_VECTORS} | {
    f"vectors: {name}": (TAILS[name](9), (split("b", 4, VECTOR),))
    for name in ("packed_chol", "rounds", "crossing", "flags")
}
CASES = SCALAR | VECTOR_CASES


@pytest.fixture(scope="module")
def dpex():
    module = pytest.importorskip("numba_dpex", reason="numba-dpex is not installed")
    pytest.importorskip("dpnp")
    return module


def flat_view(array):
    """The memory as the kernel sees it: pairs of reals, bools as bytes."""
    if array.dtype.kind == "c":
        array = array.view(array.real.dtype)
    if array.dtype.kind == "b":
        array = array.view(np.uint8)
    return array.reshape(-1)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES)
def test_schedules(queue, dpex, case):
    import dpnp
    from numba_dpex import kernel_api

    example, steps = CASES[case]
    kernel = scheduled(example, DPEX, steps)
    rendered = render(kernel, DPEX)
    arrays = example.make()
    memory = {name: dpnp.asarray(flat_view(array)) for name, array in arrays.items()}

    def argument(arg):
        if arg.kind is ArgKind.SCALAR:
            return example.scalars[arg.name]
        if arg.kind is ArgKind.LOCAL:
            dtype = getattr(dpnp, arg.dtype.value)
            return kernel_api.LocalAccessor((arg.count,), dtype=dtype)
        return memory[arg.name]

    groups, size = rendered.group_count(example.scalars), rendered.group_size
    grid = dpex.NdRange((groups * size,), (size,)) if size else dpex.Range(groups)
    dpex.call_kernel(compile_dpex(rendered), grid, *map(argument, rendered.args))
    got = {
        name: dpnp.asnumpy(memory[name]).view(array.dtype).reshape(array.shape)
        for name, array in arrays.items()
    }
    assert_same(example, got, example.run(kernel))
