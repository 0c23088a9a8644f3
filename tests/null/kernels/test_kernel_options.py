"""Options: order, text, and the driver that applies them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_zoo import F32, F64, call, chol, gram, jac, scale, svd, symbolic, syrk

from batchlas._kernels.build import KernelBuilder
from batchlas._kernels.cores import candidates
from batchlas._kernels.driver import apply_opts
from batchlas._kernels.functions import cast
from batchlas._kernels.ir import AxisRole
from batchlas._kernels.options import (
    Ok,
    PadTo,
    Refused,
    Split,
    Swap,
    Target,
    TensorCore,
    format_schedule,
    parse_schedule,
)
from batchlas._kernels.rules import Facts
from batchlas._kernels.schedule import Scheduler
from batchlas._kernels.target import CUDA, DPEX, OPENCL, SM90_CORES, Renderer
from batchlas._kernels.target import TensorCore as Core

SMALL = st.integers(-2, 70)
OPTIONS = st.one_of(
    st.builds(Split, SMALL, SMALL, st.sampled_from(Target), st.booleans()),
    st.builds(PadTo, SMALL, SMALL),
    st.builds(Swap, SMALL, SMALL),
    st.builds(TensorCore, SMALL, SMALL, SMALL, SMALL),
)


def test_text_of_a_schedule():
    text = "split:0:64:local,split:1:4:lanes,split:3:8:vector:top,pad:2:32,swap:0:1"
    opts = parse_schedule(text)
    assert opts == (
        Split(0, 64, Target.LOCAL),
        Split(1, 4, Target.UPCAST),
        Split(3, 8, Target.VECTOR, top=True),
        PadTo(2, 32),
        Swap(0, 1),
    )
    assert format_schedule(opts) == text
    assert parse_schedule("") == ()
    assert parse_schedule(" tc:0 ") == (TensorCore(0),)


@given(st.lists(OPTIONS))
def test_schedules_read_back(opts):
    assert parse_schedule(format_schedule(tuple(opts))) == tuple(opts)


@given(OPTIONS, OPTIONS)
def test_options_have_one_order(a, b):
    assert (a < b) + (b < a) + (a == b) == 1
    assert (a <= b) == (a < b or a == b)
    assert (hash(a) == hash(b)) or a != b


def test_options_sort_by_kind_then_axis():
    opts = [
        Swap(0, 1),
        Split(10, 2, Target.LOCAL),
        Split(9, 2, Target.UPCAST),
        PadTo(1, 2),
    ]
    assert sorted(opts) == [opts[3], opts[2], opts[1], opts[0]]


@pytest.mark.parametrize(
    "text", ["split:0:4", "split:0:4:warp", "split:0:4:local:up", "split:a:4:local",
             "pad:1", "swap:1:2:3", "unroll:1:2", "tc", "split"]
)  # fmt: skip
def test_bad_text_names_the_part(text):
    with pytest.raises(ValueError, match=text.split(":", maxsplit=1)[0]):
        parse_schedule(f"pad:0:2,{text}")


def test_36_an_empty_schedule_means_none():
    kernel = gram().kernel.with_info(opts_to_apply=())
    new = apply_opts(kernel, CUDA)
    assert new.info.applied_opts == ()
    assert new.info.optimized
    assert new.info.name == "gram"


def test_36_what_was_asked_for_is_applied_in_order():
    opts = parse_schedule("split:3:4:lanes,split:0:8:local")
    example = gram(8, 3, 8)
    new = apply_opts(example.kernel.with_info(opts_to_apply=opts), CUDA)
    assert new.info.applied_opts == opts
    np.testing.assert_allclose(example.run(new)["g"], example.run()["g"])


def test_36_what_was_asked_for_must_apply():
    opts = parse_schedule("split:3:4:lanes,split:0:7:local")
    kernel = gram().kernel.with_info(opts_to_apply=opts)
    with pytest.raises(ValueError, match=r"split:0:7:local .* split:3:4:lanes.*divide"):
        apply_opts(kernel, CUDA)


def test_36_an_optimised_kernel_comes_back_as_it_is():
    new = apply_opts(gram().kernel, CUDA)
    assert new.info.applied_opts
    assert apply_opts(new, CUDA) is new


def staged():
    w = KernelBuilder()
    x, s = w.array("x", F64, (64, 8)), w.register("s", F64, (8,))
    with w.weak(64, "b") as b:
        w.stage(s, lambda i: x[b, i])
        x[b, 0] = w.sum(8, lambda t: s[t])
    return w.finish()


def test_36_no_heuristic_beside_a_stage_or_when_off():
    assert apply_opts(staged(), CUDA).info.applied_opts == ()
    assert apply_opts(gram().kernel, CUDA, optimize=False).info.applied_opts == ()
    before = gram().kernel.with_info(applied_opts=(Swap(0, 1),))
    assert apply_opts(before, CUDA).info.applied_opts == (Swap(0, 1),)


def test_36_a_search_decides_where_nothing_was_asked():
    def search(k):
        assert AxisRole.GLOBAL in k.axis_types()
        k.apply_opt(Swap(0, 1))
        return k

    new = apply_opts(scale().kernel, CUDA, search=search)
    assert new.info.applied_opts == (Swap(0, 1),)
    assert new.info.name == "E_8_64"
    kernel = scale().kernel.with_info(opts_to_apply=())
    assert apply_opts(kernel, CUDA, search=search).info.applied_opts == ()


EXAMPLES = [gram(16, 4, 6), chol(16, 4), chol(8, 4, masked=True), syrk(8, 3, 4),
            jac(8, 3), svd(8, 4, 3), call(8, 3), scale(64, 4), symbolic(4)]  # fmt: skip


@pytest.mark.parametrize("ren", [CUDA, OPENCL, DPEX], ids=lambda ren: ren.name)
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.kernel.info.name)
def test_the_heuristic_keeps_results(example, ren):
    new = apply_opts(example.kernel, ren)
    assert new.info.applied_opts
    want, got = example.run(), example.run(new, order=1)
    for name, value in want.items():
        np.testing.assert_allclose(got[name], value, rtol=1e-12, atol=1e-12)


def test_the_heuristic_tiles_products_and_fills_vectors():
    new = Scheduler(apply_opts(gram(64, 8, 16).kernel, OPENCL), OPENCL)
    lanes = [new.rngs()[p].size.value for p in new.axes_of((AxisRole.UPCAST,))]
    assert lanes == [4, 4, 4]
    assert len(new.axes_of((AxisRole.VECTOR,))) == 1
    single = Scheduler(apply_opts(gram(64, 8, 16, F32).kernel, OPENCL), OPENCL)
    vector = single.axes_of((AxisRole.VECTOR,))[0]
    assert single.full_shape()[vector] == 16


# tensor cores

TC = TensorCore(0)
CORES = Renderer("cores", has_warp=True, tensor_cores=SM90_CORES, allow_tf32=True)


def reason(kernel, ren, opt=TC, before=()):
    k = Scheduler(kernel, ren)
    k.convert_loop_to_global()
    for first in before:
        assert isinstance(k.apply_opt(first), Ok)
    ast, opts = k.ast(), k.applied_opts()
    answer = k.apply_opt(opt)
    assert isinstance(answer, Refused)
    assert k.ast() is ast
    assert k.applied_opts() == opts
    return answer.reason


def test_35_tensor_cores_are_refused():
    assert "no tensor cores" in reason(gram().kernel, DPEX)
    split = (Split(0, 4, Target.UPCAST),)
    assert "first" in reason(gram().kernel, CORES, before=split)
    assert "a bound" in reason(syrk().kernel, CORES)
    assert "opaque" in reason(call().kernel, CORES)
    assert "2 tensor cores" in reason(gram().kernel, CORES, TensorCore(0, 2))
    assert "tc_opt" in reason(gram().kernel, CORES, TensorCore(0, tc_opt=3))
    assert "no tensor core fits" in reason(scale().kernel, CORES)
    assert "no tensor core fits" in reason(gram().kernel, CORES, TensorCore(9))
    assert "m8n8k4 fits" in reason(gram().kernel, CORES)


def test_35_single_precision_only_where_tf32_is_allowed():
    kernel = gram(8, 16, 16, F32).kernel
    assert "m16n8k8 fits" in reason(kernel, CORES)
    assert "no tensor core fits" in reason(kernel, CUDA)
    assert "no tensor core fits" in reason(gram(8, 8, 16, F32).kernel, CORES)
    padded = TensorCore(0, tc_opt=2)
    assert "m16n8k8 fits" in reason(gram(8, 8, 16, F32).kernel, CORES, padded)


def test_35_candidates_are_sums_of_products_with_a_widening_cast():
    w = KernelBuilder()
    a, c = w.array("a", F32, (8, 16)), w.array("c", F64, (8, 8))
    with w.nest(AxisRole.WEAK, (8, 8), ("i", "j")) as (i, j):
        c[i, j] = w.sum(16, lambda t: cast(a[i, t] * a[j, t], F64))
    kernel = w.finish()
    core = Core("wide", 8, 8, 4, F32, F64)
    (found,) = candidates(kernel, Facts(kernel), core, pads=False)
    assert (found.m.name, found.n.name, found.k.name) == ("i", "j", "k")
    narrow = Core("narrow", 8, 8, 4, F64, F64)
    assert candidates(kernel, Facts(kernel), narrow, pads=False) == []
