"""Splits: what they do, what is refused, and that a refusal changes nothing."""

from dataclasses import replace

import numpy as np
import pytest
from kernel_zoo import axis, chol, gram, nested_sums, position, scale, syrk

from batchlas._kernels.ir import AxisRole
from batchlas._kernels.options import Ok, Refused, Split, Target
from batchlas._kernels.schedule import Scheduler
from batchlas._kernels.target import CUDA, DPEX, OPENCL, Renderer
from batchlas._kernels.walk import reductions

UP, LOCAL, VECTOR = Target.UPCAST, Target.LOCAL, Target.VECTOR


def fresh(example, ren=CUDA):
    k = Scheduler(example.kernel, ren)
    k.convert_loop_to_global()
    return k


def refused(k, opt, text):
    """The option is refused for this reason, and nothing has changed."""
    ast, opts, shape = k.ast(), k.applied_opts(), k.full_shape()
    answer = k.apply_opt(opt)
    assert isinstance(answer, Refused), opt
    assert text in answer.reason
    assert k.ast() is ast
    assert k.applied_opts() == opts
    assert k.full_shape() == shape


def same_results(example, k, tol=1e-13):
    want, got = example.run(), example.run(k.get_optimized_ast(), order="reverse")
    for name, value in want.items():
        np.testing.assert_allclose(got[name], value, rtol=tol, atol=tol)


@pytest.mark.parametrize(
    ("at", "amount", "reason"),
    [(0, 16, None), (0, 32, "at most 16"), (3, 32, None), (3, 64, "at most 32")],
)
def test_04_lanes_limit(at, amount, reason):
    k = fresh(gram(64, 8, 64))
    if reason is None:
        assert isinstance(k.apply_opt(Split(at, amount, UP)), Ok)
    else:
        refused(k, Split(at, amount, UP), reason)


def test_07_an_amount_must_divide():
    refused(fresh(gram()), Split(0, 3, UP), "does not divide")


@pytest.mark.parametrize("amount", [1, -2])
def test_08_amounts_below_two(amount):
    k = fresh(gram())
    refused(k, Split(0, amount, UP), "amount")
    with pytest.raises(ValueError, match="amount"):
        k.shift_to(axis(k, "b"), amount, UP)


def test_09_shift_to_raises():
    k = fresh(gram())
    with pytest.raises(ValueError, match="divide"):
        k.shift_to(axis(k, "b"), 3, LOCAL)
    k = fresh(chol())
    with pytest.raises(ValueError, match="trips"):
        k.shift_to(axis(k, "k"), 2, UP)
    with pytest.raises(ValueError, match="no axis"):
        k.shift_to(replace(axis(k, "b"), id=99), 2, UP)


def test_09_shift_to_splits():
    k = fresh(gram())
    outer, inner = k.shift_to(axis(k, "b"), 4, LOCAL)
    assert (outer.size.value, inner.size.value) == (16, 4)
    assert (outer.role, inner.role) == (AxisRole.GLOBAL, AxisRole.LOCAL)
    assert outer.id == 0
    assert k.full_shape() == [16, 8, 8, 4, 16]
    assert k.applied_opts() == []


def test_09_shift_to_takes_a_given_axis():
    k = fresh(gram())
    given = replace(axis(k, "b"), id=50, size=axis(k, "i").size, role=AxisRole.WARP)
    _, inner = k.shift_to(axis(k, "b"), 8, LOCAL, new_rng=given)
    assert inner == given
    assert AxisRole.WARP in k.axis_types()
    _outer, inner = k.shift_to(axis(k, "i"), 2, UP)
    assert inner.id == 51


@pytest.mark.parametrize("target", [UP, LOCAL])
@pytest.mark.parametrize("at", [3, 4])
def test_11_bounded_sums_have_no_known_trips(at, target):
    k = fresh(chol())
    assert k.rngs()[at].name == "k"
    for amount in (2, 4):
        refused(k, Split(at, amount, target), "trips")
    refused(k, Split(at, 0, target), "no constant size")


def test_12_rows_of_a_column_take_lanes_but_no_threads():
    k = fresh(chol())
    at = position(k, "i")
    refused(k, Split(at, 4, LOCAL), "shares l with code outside it")
    assert isinstance(k.apply_opt(Split(at, 4, UP)), Ok)


@pytest.mark.parametrize("target", list(Target))
def test_13_serial_loops_never_split(target):
    k = fresh(chol(), OPENCL)
    refused(k, Split(position(k, "j"), 2, target), "LOOP axis")


@pytest.mark.parametrize("target", [LOCAL, UP])
def test_14_the_batch_takes_both(target):
    example = chol(8, 4)
    k = fresh(example)
    assert isinstance(k.apply_opt(Split(position(k, "b"), 4, target)), Ok)
    same_results(example, k)
    got = example.run(k.get_optimized_ast())["l"]
    want = np.linalg.cholesky(example.make()["a"])
    np.testing.assert_allclose(got, want, atol=1e-12)


def test_15_an_axis_that_a_bound_reads_takes_threads_only():
    example = syrk(4, 4, 3)
    k = fresh(example)
    at = position(k, "i")
    refused(k, Split(at, 2, UP), "a bound reads the axis")
    assert at not in k.upcastable_dims()
    assert isinstance(k.apply_opt(Split(at, 2, LOCAL)), Ok)
    same_results(example, k)


def test_16_no_grouped_reduction_where_bounds_read_axes():
    k = fresh(syrk())
    refused(k, Split(position(k, "k"), 4, LOCAL), "a bound reads an axis")


@pytest.mark.parametrize("top", [False, True])
def test_17_grouped_reduction(top):
    example = gram(3, 4, 8)
    k = fresh(example)
    answer = k.apply_opt(Split(3, 4, LOCAL, top=top))
    assert isinstance(answer, Ok)
    assert k.group_for_reduces() == 1
    assert k.axes_of((AxisRole.LOCAL,), reduce=True) == [3]
    same_results(example, k)
    # from the top the inner axis strides over the outer one
    (reduce,) = reductions(k.ast())
    outer, inner = answer.axes
    index = reduce.value.a.index[-1]
    assert reduce.axes == (outer, inner)
    assert index == (inner * outer.size + outer if top else outer * 4 + inner)


@pytest.mark.parametrize(("shared", "fits"), [(127, False), (128, True)])
def test_18_grouped_reductions_need_memory(shared, fits):
    from batchlas._kernels.ir import DType

    k = fresh(gram(64, 8, 64, DType.FLOAT32), replace(CUDA, shared_max=shared))
    if fits:
        assert isinstance(k.apply_opt(Split(3, 32, LOCAL)), Ok)
    else:
        refused(k, Split(3, 32, LOCAL), "128 bytes")


def test_18_later_lanes_need_memory_too():
    k = fresh(gram(64, 8, 64), replace(CUDA, shared_max=256))
    assert isinstance(k.apply_opt(Split(3, 32, LOCAL)), Ok)
    refused(k, Split(position(k, "i"), 2, UP), "512 bytes")
    refused(k, Split(position(k, "b"), 2, LOCAL), "512 bytes")
    assert isinstance(k.apply_opt(Split(position(k, "k"), 2, UP)), Ok)


def test_18_every_grouped_reduction_counts():
    k = fresh(nested_sums(8, 4, 16), replace(CUDA, shared_max=127))
    assert isinstance(k.apply_opt(Split(position(k, "out"), 2, LOCAL)), Ok)
    # two threads by four, two sums of eight bytes each: 2 * 4 * 16
    refused(k, Split(position(k, "in"), 4, LOCAL), "128 bytes")


def test_19_lanes_of_the_reduction_need_no_memory():
    from batchlas._kernels.ir import DType

    k = fresh(gram(64, 8, 64, DType.FLOAT32), replace(CUDA, shared_max=16))
    for at, amount, target in ((1, 2, UP), (4, 32, UP), (4, 2, LOCAL)):
        assert k.rngs()[at].name in {"i", "k"}
        assert isinstance(k.apply_opt(Split(at, amount, target)), Ok)
    k = fresh(gram(64, 8, 64, DType.FLOAT32), replace(CUDA, shared_max=15))
    k.apply_opt(Split(1, 2, UP))
    refused(k, Split(4, 2, LOCAL), "16 bytes")


def test_20_grouping_inside_an_unrolled_sum():
    k = fresh(nested_sums())
    assert isinstance(k.apply_opt(Split(position(k, "out"), 2, UP)), Ok)
    refused(k, Split(position(k, "in"), 4, LOCAL), "unrolled reduction")


def test_20_grouping_inside_a_serial_sum():
    example = nested_sums()
    k = fresh(example)
    assert isinstance(k.apply_opt(Split(position(k, "in"), 4, LOCAL)), Ok)
    same_results(example, k)
    a = example.make()["a"]
    got = example.run(k.get_optimized_ast())["y"]
    np.testing.assert_allclose(got, a.max(-1).sum(-1), rtol=1e-14)


def test_local_needs_local_indices_and_room_in_the_group():
    plain = Renderer("plain", has_local=False)
    k = Scheduler(gram().kernel, plain)
    refused(k, Split(0, 4, LOCAL), "no local indices")
    k = fresh(gram(), replace(CUDA, max_workgroup=16))
    assert isinstance(k.apply_opt(Split(0, 8, LOCAL)), Ok)
    refused(k, Split(1, 4, LOCAL), "32 threads")


@pytest.mark.parametrize("at", [-1, 4])
def test_positions_out_of_range(at):
    refused(fresh(gram()), Split(at, 2, UP), f"axis {at} of 4")


def test_lanes_and_vectors_do_not_split_again():
    k = fresh(scale(), OPENCL)
    assert isinstance(k.apply_opt(Split(0, 4, UP)), Ok)
    lanes = k.axes_of((AxisRole.UPCAST,))[0]
    for target in Target:
        refused(k, Split(lanes, 2, target), "UPCAST axis")


def test_threads_may_become_lanes():
    example = scale(8, 4)
    k = fresh(example)
    assert isinstance(k.apply_opt(Split(0, 8, LOCAL)), Ok)
    threads = k.axes_of((AxisRole.LOCAL,))[0]
    refused(k, Split(threads, 2, LOCAL), "LOCAL axis")
    assert isinstance(k.apply_opt(Split(threads, 2, UP)), Ok)
    same_results(example, k)


def test_vectors_need_vector_types():
    refused(fresh(scale(), CUDA), Split(0, 4, VECTOR), "no vectors of 4 lanes")
    for target in (OPENCL, DPEX):
        refused(fresh(scale(), target), Split(0, 32, VECTOR), "no vectors of 32 lanes")
        assert isinstance(fresh(scale(), target).apply_opt(Split(0, 4, VECTOR)), Ok)


def test_symbolic_threads_make_the_memory_undecidable():
    from batchlas._kernels.build import KernelBuilder
    from batchlas._kernels.ir import DType

    w = KernelBuilder()
    n = w.scalar("n", multiple_of=64)
    x, y = w.array("x", DType.FLOAT64, (n, 8)), w.array("y", DType.FLOAT64, (n,))
    with w.nest(AxisRole.LOCAL, (n,), ("l",)) as (l,):  # noqa: E741
        y[l] = w.sum(8, lambda t: x[l, t])
    k = Scheduler(w.finish(), CUDA)
    before = k.ast()
    with pytest.raises(ValueError, match="symbolic size"):
        k.apply_opt(Split(1, 4, LOCAL))
    assert k.ast() is before
    assert k.applied_opts() == []


def test_18_buffers_of_the_author_count_as_well():
    from batchlas._kernels.build import KernelBuilder
    from batchlas._kernels.ir import DType

    def kernel():
        w = KernelBuilder()
        x, y = w.array("x", DType.FLOAT64, (4, 8)), w.array("y", DType.FLOAT64, (4,))
        sh = w.local("sh", DType.FLOAT64, (8,))
        with w.weak(4, "b") as b:
            sh[0] = 1.0
            y[b] = w.sum(8, lambda t: x[b, t])
        return w.finish()

    for limit, fits in ((95, False), (96, True)):
        k = Scheduler(kernel(), replace(CUDA, shared_max=limit))
        k.convert_loop_to_global()
        if fits:
            assert isinstance(k.apply_opt(Split(1, 4, LOCAL)), Ok)
        else:
            refused(k, Split(1, 4, LOCAL), "96 bytes")


def test_18_no_grouped_reduction_without_shared_memory():
    k = fresh(gram(), replace(CUDA, has_shared=False))
    refused(k, Split(3, 4, LOCAL), "no work-group memory")
