"""The transposed tiles in OpenCL C: what their shuffles make of numbered elements."""

import re

import pytest

from batchlas._kernels.build import KernelBuilder
from batchlas._kernels.driver import apply_asked
from batchlas._kernels.kinds import DType
from batchlas._kernels.options import Split, Target
from batchlas._kernels.render import render
from batchlas._kernels.schedule import Scheduler
from batchlas._kernels.target import OPENCL

SHUFFLE = re.compile(r"__builtin_shufflevector\((\w+), (\w+), ([\d, ]+)\)")
CASES = [("float32", 4), ("float32", 8), ("float32", 16), ("float64", 2)]
CASES += [("float64", 4), ("float64", 8)]


def copy(dtype, width):
    """Return the text of a kernel that reads and writes one run of each lane."""
    k = KernelBuilder("copy")
    nb = k.scalar("nb", multiple_of=width)
    x = k.array("x", DType(dtype), (nb, width))
    y = k.array("y", DType(dtype), (nb, width))
    with k.weak(nb, "b") as b:
        values = [k.let(x[b, place], "v") for place in range(width)]
        for place, value in enumerate(values):
            y[b, place] = value
    scheduler = Scheduler(k.finish(), OPENCL)
    scheduler.convert_loop_to_global()
    apply_asked(scheduler, (Split(0, width, Target.VECTOR),))
    return render(scheduler.get_optimized_ast(), OPENCL).source


def shuffled(values, text):
    """Return the vector that an expression makes of the named ones."""
    found = SHUFFLE.fullmatch(text)
    if not found:
        return values[text]
    both = values[found[1]] + values[found[2]]
    return [both[int(pick)] for pick in found[3].split(", ")]


@pytest.mark.parametrize(("dtype", "width"), CASES)
def test_rows_become_places_and_places_rows(dtype, width):
    values, rows, columns, stored = {}, [], [], []
    for line in map(str.strip, copy(dtype, width).splitlines()):
        named = re.fullmatch(rf"const \w+{width} (\w+) = (.*);", line)
        if named and "vload" in named[2]:
            rows.append([(len(rows), place) for place in range(width)])
            values[named[1]] = rows[-1]
        elif named:
            values[named[1]] = shuffled(values, named[2])
            if named[1].startswith("column"):
                columns.append(values[named[1]])
        elif line.startswith("vstore"):
            stored.append(values[re.match(r"vstore\d+\((\w+),", line)[1]])
    lanes = range(width)
    assert columns == [[(lane, place) for lane in lanes] for place in lanes]
    assert stored == rows
    assert len(rows) == width


@pytest.mark.parametrize(("dtype", "width"), CASES)
def test_short_rounds_stay_within_16_bytes_and_interleave(dtype, width):
    """Other orders of the same lanes take a processor two instructions."""
    near = min(16 // DType(dtype).itemsize, width)
    shuffles = [
        [int(p) for p in m[3].split(", ")] for m in SHUFFLE.finditer(copy(dtype, width))
    ]
    rounds = width.bit_length() - 1
    assert len(shuffles) == 2 * rounds * width
    short = [picks for picks in shuffles if picks[1] == picks[0] + width]
    assert len(short) == 2 * (near.bit_length() - 1) * width
    for picks in short:
        assert [p % width // near for p in picks] == [c // near for c in range(width)]
        assert all(b == a + width for a, b in zip(picks[::2], picks[1::2], strict=True))
