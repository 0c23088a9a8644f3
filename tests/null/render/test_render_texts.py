"""Rendered texts: goldens, determinism, literals, refusals."""

import re
from dataclasses import replace

import pytest
from kernel_schedules import (
    LOCAL,
    PARTING,
    PLAIN,
    VECTOR,
    VECTORS,
    scheduled,
    split,
)
from kernel_tails import TAILS, staged
from kernel_zoo import F32, F64, KernelBuilder, call, chol, gram, jac
from update_goldens import GOLDEN, texts

from batchlas._kernels.functions import sqrt
from batchlas._kernels.ir import AxisRole, DType
from batchlas._kernels.render import (
    ArgKind,
    Passing,
    RenderError,
    render,
)
from batchlas._kernels.render.values import bare
from batchlas._kernels.target import CUDA, DPEX, OPENCL, Renderer

TARGETS = {"opencl": OPENCL, "cuda": CUDA, "dpex": DPEX}
FLOATS = {name: case for name, case in PLAIN.items() if "float32" in name} | {
    f"tail {name}": (TAILS[name](9), ()) for name in ("packed_chol", "flags")
}
BARE_FLOAT = re.compile(r"(?<![\w.])\d+(\.\d|e-?\d)")
REAL_LITERAL = re.compile(r"(?<![\w.])(?:\d+\.\d*|\.\d+|\d+)(?:e[-+]?\d+)?(f?)")


@pytest.mark.parametrize("name", texts())
def test_goldens(name):
    """To accept a change, run update_goldens.py and read the difference."""
    assert texts()[name] == (GOLDEN / name).read_text()


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
@pytest.mark.parametrize("case", PLAIN)
def test_equal_kernels_have_equal_texts(case, target):
    example, steps = PLAIN[case]
    first = render(scheduled(example, target, steps), target)
    again = render(scheduled(example, target, steps), target)
    assert first == again


@pytest.mark.parametrize("case", FLOATS)
@pytest.mark.parametrize("target", [OPENCL, CUDA], ids=["opencl", "cuda"])
def test_float_kernels_have_no_double(target, case):
    example, steps = FLOATS[case]
    source = render(scheduled(example, target, steps), target).source
    assert "double" not in source
    for match in REAL_LITERAL.finditer(source):
        assert match[1] == "f" or match[0].isdecimal(), match[0]
    if target is CUDA:
        assert not re.search(r"\b(sqrt|rsqrt|fabs|fma|copysign)\(", source)


@pytest.mark.parametrize("case", PLAIN)
def test_dpex_has_no_bare_float(case):
    example, steps = PLAIN[case]
    source = render(scheduled(example, DPEX, steps), DPEX).source
    body = source[source.index("\ndef ") :]
    assert not BARE_FLOAT.search(body)
    assert "import" not in body


def test_launch_of_a_kernel():
    example, steps = PLAIN["symbolic"]
    rendered = render(scheduled(example, OPENCL, steps), OPENCL, Passing.ADDRESS)
    assert rendered.group_size == 32
    assert rendered.group_count({"nb": 640}) == 20
    kinds = [(arg.name, arg.kind, arg.is_written) for arg in rendered.args]
    assert kinds == [
        ("nb", ArgKind.SCALAR, False),
        ("x", ArgKind.ADDRESS, False),
        ("y", ArgKind.ADDRESS, True),
    ]


def test_only_written_arrays_are_not_const():
    example, steps = PLAIN["chol threads"]
    source = render(scheduled(example, CUDA, steps), CUDA).source
    assert "const double *__restrict__ a" in source
    assert "const double *__restrict__ l" not in source


def test_names_that_the_language_reserves():
    w = KernelBuilder("kernel")
    half, out = w.array("half", F32, (4,)), w.array("select", F32, (4,))
    with w.weak(4, "long") as i:
        out[i] = sqrt(half[i])
    source = render(w.finish(), OPENCL).source
    assert not re.search(r"\b(half|select|long|kernel)(?=[\[(])", source)
    assert "half_1[long_1]" in source


def test_passing_by_address_is_for_opencl():
    with pytest.raises(RenderError, match="by pointer"):
        render(gram(4, 2, 2).kernel, CUDA, Passing.ADDRESS)


def test_unknown_target():
    with pytest.raises(RenderError, match="known: opencl, cuda, dpex"):
        render(gram(4, 2, 2).kernel, Renderer("metal"))


def test_vectors_need_a_target_that_has_them():
    example, steps = VECTORS["chol 8"]
    kernel = scheduled(example, OPENCL, steps)
    with pytest.raises(RenderError, match="no vector types"):
        render(kernel, CUDA)


def test_dpex_threads_that_leave_at_different_times():
    example, steps = PARTING["jac threads"]
    with pytest.raises(RenderError, match="leave a Repeat together"):
        render(scheduled(example, DPEX, steps), DPEX)


def test_dpex_shares_no_vectors_between_threads():
    example, _ = PLAIN["gram grouped"]
    steps = split("b", 4, VECTOR), split("k", 4, LOCAL)
    kernel = scheduled(example, DPEX, steps)
    with pytest.raises(RenderError, match="memory of a work-group"):
        render(kernel, DPEX)


@pytest.mark.parametrize("case", [name for name in VECTORS if "threads" not in name])
def test_dpex_vectors_have_no_bare_float(case):
    example, steps = VECTORS[case]
    source = render(scheduled(example, DPEX, steps), DPEX).source
    assert not BARE_FLOAT.search(source[source.index("\ndef ") :])


def test_opencl_threads_leave_together():
    example, steps = PARTING["jac threads"]
    source = render(scheduled(example, OPENCL, steps), OPENCL).source
    assert "work_group_any" in source
    alone = render(scheduled(jac(8, 3), OPENCL, ()), OPENCL)
    assert "work_group_any" not in alone.source
    assert alone.group_size == 1


def test_lanes_side_by_side_are_one_vector_access():
    kernel = scheduled(staged(9), OPENCL, (split("v", 8, VECTOR),))
    source = render(kernel, OPENCL).source
    assert source.count("vload8(0, &sh[") == 3
    assert source.count("vstore8(") == 2


def test_masked_lanes_read_nothing_outside():
    kernel = scheduled(TAILS["crossing"](9), OPENCL, (split("b", 4, VECTOR),))
    body = render(kernel, OPENCL).source.split("{", 1)[1]
    loads = re.findall(r".{0,10}x\[[^]]*\]", body)
    assert len(loads) == 8
    assert all(re.search(r"\.s[0-3] \? x\[", load) for load in loads)


def test_a_grouped_sum_waits_twice():
    example, steps = PLAIN["gram grouped"]
    assert render(scheduled(example, CUDA, steps), CUDA).source.count("__sync") == 2


def test_dpex_has_no_addresses():
    with pytest.raises(RenderError, match="address"):
        render(call(4, 8).kernel, DPEX)


def test_opaque_calls_take_an_address():
    source = render(call(4, 8).kernel, CUDA).source
    assert "potrf8(&a[b * 64]);" in source


def test_complex_square_root_is_refused():
    w = KernelBuilder("roots")
    x = w.array("x", DType.COMPLEX64, (4,))
    with w.weak(4, "i") as i:
        x[i] = sqrt(x[i])
    with pytest.raises(RenderError, match="real and imaginary"):
        render(w.finish(), CUDA)


def test_axes_that_nobody_prints():
    w = KernelBuilder("devices")
    x = w.array("x", F64, (4,))
    with w.nest(AxisRole.DEVICE, (4,), ("d",)) as (d,):
        x[d] = 1.0
    with pytest.raises(RenderError, match="DEVICE"):
        render(w.finish(), OPENCL)


def test_the_digest_is_of_the_kernel_and_not_of_its_name():
    kernel = scheduled(chol(8, 4), OPENCL, (split("b", 8, VECTOR),))
    renamed = kernel.with_info(name="other")
    a, b = render(kernel, OPENCL), render(renamed, OPENCL)
    assert a.digest == b.digest
    assert (a.entry, b.entry) == (kernel.info.name, "other")
    threads = scheduled(chol(8, 4), OPENCL, (split("b", 8, LOCAL),))
    assert render(threads, OPENCL).digest != a.digest
    assert replace(a, entry="other") != b


def test_bare_removes_only_parentheses_around_all():
    assert bare("(a + b)") == "a + b"
    assert bare("(a) + (b)") == "(a) + (b)"
