"""The Cholesky kernel of the family lane: what it computes, and its tiles in OpenCL."""

from itertools import pairwise

import numpy as np
import pytest

from batchlas._kernels.build import KernelBuilder
from batchlas._kernels.driver import apply_asked
from batchlas._kernels.interpret import check_independence, run
from batchlas._kernels.kinds import DType
from batchlas._kernels.options import Split, Target
from batchlas._kernels.potrf import UNROLLED, potrf
from batchlas._kernels.render import render
from batchlas._kernels.schedule import Scheduler
from batchlas._kernels.target import CUDA, DPEX, OPENCL

BATCH = 4


def arrays(n, dtype, uplo):
    rng = np.random.default_rng(0)
    b = rng.standard_normal((BATCH, n, n)).astype(dtype)
    if b.dtype.kind == "c":
        b = b + 1j * rng.standard_normal(b.shape)
    a = (b @ b.swapaxes(-1, -2).conj() + n * np.eye(n)).astype(dtype)
    a[1, n - 1, n - 1] = -1
    other = np.triu_indices(n, 1) if uplo == "L" else np.tril_indices(n, -1)
    a[(slice(None), *other)] = 99
    empty = np.full(a.shape, 7, dtype)
    return {"a": a, "l": empty, "info": np.full(BATCH, -1, np.int32)}


def vectors(kernel, width):
    k = Scheduler(kernel, OPENCL)
    k.convert_loop_to_global()
    batch = [axis.name for axis in k.rngs()].index("b")
    apply_asked(k, (Split(batch, width, Target.VECTOR),))
    return k.get_optimized_ast()


def check(data, uplo):
    good = [0, 2, 3]
    a = data["a"][good]
    want = np.linalg.cholesky(a if uplo == "L" else a.swapaxes(-1, -2).conj())
    want = want if uplo == "L" else want.swapaxes(-1, -2).conj()
    np.testing.assert_allclose(data["l"][good], want, rtol=2e-5, atol=2e-5)
    assert data["info"].tolist() == [0, 1, 0, 0]
    diagonal = np.diagonal(data["l"][1]).real
    assert (diagonal[:-1] > 0).all()
    assert not diagonal[-1] > 0


@pytest.mark.parametrize("uplo", ["L", "U"])
@pytest.mark.parametrize("n", [1, 3, 5, UNROLLED, UNROLLED + 2])
@pytest.mark.parametrize("dtype", ["float64", "complex64"])
def test_unscheduled_and_in_vectors(dtype, n, uplo):
    kernel = potrf(n, DType(dtype), uplo, 2, BATCH, BATCH)
    for each in (kernel, vectors(kernel, 4)):
        data = arrays(n, dtype, uplo)
        run(each, data, {"nb": BATCH})
        check(data, uplo)


@pytest.mark.parametrize("n", [3, UNROLLED + 2])
def test_matrices_are_independent(n):
    kernel = potrf(n, DType.FLOAT64, "L", 2, BATCH)
    check_independence(kernel, arrays(n, "float64", "L"), {"nb": BATCH})


def text(n, dtype="float64", width=4, ahead=0):
    run_ = width // 2 if DType(dtype).is_complex else width
    kernel = potrf(n, DType(dtype), "L", run_, width, ahead)
    return render(vectors(kernel, width), OPENCL).source


@pytest.mark.parametrize(
    ("n", "dtype"), [(4, "float64"), (8, "float64"), (4, "complex128")]
)
def test_whole_runs_are_tiles(n, dtype):
    source = text(n, dtype)
    numbers = n * n * (2 if dtype == "complex128" else 1)
    # Each lane's matrix is read once, less the runs right of the diagonal.
    runs = 4 * numbers // 4
    above = {(4, "float64"): 0, (8, "float64"): 4 * 4, (4, "complex128"): 4 * 2}
    assert source.count("vload4") == runs - above[n, dtype]
    assert source.count("__builtin_nontemporal_store") == runs
    assert "vstore4" not in source.replace("&info[", "").partition("convert")[0]


def test_runs_off_a_vector_boundary_do_not_stream():
    source = text(3)
    assert "__builtin_nontemporal_store" not in source
    assert source.count("vload4") == 4 * 2  # two runs of four, and the ninth element
    assert source.count(".s3") > 0


def test_loops_stay_loops_above_the_unrolled_order():
    assert "for (" not in text(UNROLLED)
    assert text(32).count("for (") == text(64).count("for (")
    assert len(text(64)) < 1.1 * len(text(32))


@pytest.mark.parametrize(
    ("n", "dtype"), [(3, "float64"), (5, "float64"), (3, "complex128")]
)
def test_the_next_vector_is_prefetched_line_by_line(n, dtype):
    source = text(n, dtype, ahead=4)
    (line,) = [each for each in source.splitlines() if "prefetch(" in each]
    number = 2 if dtype == "complex128" else 1
    lines = -(-4 * n * n * number * 8 // 64)
    header = source.splitlines()[source.splitlines().index(line) - 1]
    assert f"line < {lines};" in header
    assert line.endswith(", 8);")
    without = source.replace(line, "").replace(header + "\n", "")
    assert "prefetch" not in without
    assert "prefetch" not in text(n, dtype)


@pytest.mark.parametrize(("n", "parts"), [(8, 2), (14, 4), (16, 4), (32, 1), (36, 1)])
def test_of_larger_matrices_the_next_rows_are_prefetched(n, parts):
    """A row of tiles of each lane at a time, while its predecessor is factored."""
    lines = text(n, ahead=4).splitlines()
    headers = [a for a, b in pairwise(lines) if "prefetch(" in b]
    assert len(headers) == 4 * parts
    rows = [4] * parts if n != 14 else [4, 4, 4, 2]
    for at, each in enumerate(headers):
        assert f"< {-(-rows[at // 4] * n * 8 // 64)};" in each


def stores(n, dtype, width):
    source = text(n, dtype, width)
    return {each.split("global ")[1].split(" *")[0] for each in streamed(source)}


def streamed(source):
    return [each for each in source.splitlines() if "nontemporal_store" in each]


@pytest.mark.parametrize(
    ("n", "dtype", "width", "kinds"),
    [
        (16, "float64", 4, {"double4"}),
        (16, "float64", 8, {"double8"}),
        (16, "float32", 8, {"float16"}),
        (24, "float32", 8, {"float8"}),
        (16, "complex64", 8, {"float16"}),
    ],
)
def test_eight_lanes_write_whole_cache_lines(n, dtype, width, kinds):
    """Pieces of eight lines at a time would each be written to memory by itself."""
    assert stores(n, dtype, width) == kinds


@pytest.mark.parametrize("n", [12, 16, 32])
def test_every_store_streams(n):
    source = text(n, "float64", 4)
    assert "vstore4(tile" not in source
    assert " l[" not in source.replace("&l[", "")
    assert streamed(source)


@pytest.mark.parametrize("target", [CUDA, DPEX])
def test_targets_without_prefetches_print_the_same_kernel(target):
    plain, ahead = (potrf(3, DType.FLOAT64, "L", 1, 1, step) for step in (0, 4))
    name = plain.info.name
    texts = [render(k.with_info(name=name), target).source for k in (plain, ahead)]
    assert texts[0] == texts[1]


def test_only_global_arrays_are_prefetched():
    k = KernelBuilder("bad")
    w = k.register("w", DType.FLOAT64, (4,))
    with pytest.raises(ValueError, match="not a global buffer"):
        k.prefetch(w, (0,), 4)
