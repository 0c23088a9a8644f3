"""Write the rendered texts that `test_render_texts` compares with: run this file."""

from pathlib import Path

import conftest  # noqa: F401
from kernel_schedules import LANES, LOCAL, VECTOR, scheduled, split
from kernel_tails import complex_mix, packed_chol
from kernel_zoo import gram

from batchlas._kernels.ir import DType
from batchlas._kernels.potrf import potrf
from batchlas._kernels.render import Passing, render
from batchlas._kernels.target import CUDA, DPEX, OPENCL
from batchlas._kernels.vectors import schedule_vectors

GOLDEN = Path(__file__).parent / "golden"


def _text(example, target, steps, passing=Passing.POINTER):
    return render(scheduled(example, target, steps), target, passing).source


def texts():
    """The golden texts by file name."""
    small = gram(8, 4, 8, DType.FLOAT32)
    vectors = (split("b", 4, VECTOR),)
    grouped = (split("k", 4, LOCAL), split("i", 2, LANES))
    address = Passing.ADDRESS
    tiles = schedule_vectors(potrf(2, DType.FLOAT32, "L", 2, 2), 2, DPEX)
    return {
        "packed_chol.cl": _text(packed_chol(9, 3), OPENCL, vectors, address),
        "gram_grouped.cu": _text(small, CUDA, grouped),
        "gram_grouped.py.txt": _text(small, DPEX, grouped),
        "cholesky_vectors.py.txt": render(tiles, DPEX).source,
        "complex_mix.cu": _text(complex_mix(9, DType.COMPLEX64), CUDA, ()),
    }


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for name, text in texts().items():
        (GOLDEN / name).write_text(text)
