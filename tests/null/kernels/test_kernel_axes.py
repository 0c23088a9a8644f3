"""Axes of a scheduler: order, shape, roles, positions, names, colours."""

import pytest
from kernel_zoo import (
    WEAK,
    axis,
    call,
    chol,
    gram,
    jac,
    names,
    nested_sums,
    position,
    scale,
    solve,
    svd,
    symbolic,
    syrk,
)

from batchlas._kernels.build import KernelBuilder
from batchlas._kernels.ir import AxisRole, DType, Load, Store
from batchlas._kernels.names import colour, letter
from batchlas._kernels.options import Ok, PadTo, Refused, Split, Swap, Target
from batchlas._kernels.schedule import Scheduler
from batchlas._kernels.target import CUDA, Renderer

G, W, L, U, LOOP = (
    AxisRole.GLOBAL,
    AxisRole.WEAK,
    AxisRole.LOCAL,
    AxisRole.UPCAST,
    AxisRole.LOOP,
)
NO_LOCALS = Renderer("plain", has_local=False, has_shared=False)


def fresh(example, ren=CUDA, *, promote=True):
    k = Scheduler(example.kernel, ren)
    if promote:
        k.convert_loop_to_global()
    return k


def test_01_fresh_axes_are_weak():
    k = fresh(gram(), promote=False)
    assert k.axis_types() == [W] * 4
    assert k.full_shape() == [64, 8, 8, 16]
    assert k.shape_len() == 4
    assert k.axes_of(reduce=True) == [3]
    assert k.axes_of(reduce=False) == [0, 1, 2]
    assert k.axes_of((G,)) == []
    assert k.applied_opts() == []


def test_02_outermost_weak_axes_become_global():
    k = fresh(gram())
    assert k.axis_types() == [G, G, G, W]
    assert k.get_optimized_ast().info.name == "r_64_8_8_16"


def test_02_without_local_indices_nothing_changes():
    k = fresh(gram(), NO_LOCALS)
    assert k.axis_types() == [W] * 4
    assert k.ast() is not None
    assert k.ast() == gram().kernel


@pytest.mark.parametrize(
    ("example", "promoted"),
    [(chol(), {"b"}), (syrk(), {"b", "i"}), (solve(), {"b", "c"}), (jac(), {"b"})],
)
def test_02_only_axes_of_outermost_loops(example, promoted):
    k = fresh(example)
    assert names(k.rngs()[p] for p in k.axes_of((G,))) == promoted


def test_02_nothing_is_promoted_beside_a_stage():
    w = KernelBuilder()
    x, z = w.array("x", DType.FLOAT64, (8, 4)), w.array("z", DType.FLOAT64, (4,))
    inside = w.register("s", DType.FLOAT64, (4,))
    outside = w.register("o", DType.FLOAT64, (4,))
    with w.weak(8, "b") as b:
        w.stage(inside, lambda i: x[b, i])
        x[b, 0] = inside[1]
    assert axis(fresh_of(w), "b").role is G
    w.stage(outside, lambda i: z[i])
    k = fresh_of(w)
    assert axis(k, "b").role is W
    assert "b" not in names(k.threadless())  # only the stage keeps it


def test_02_a_size_in_memory_is_not_known_at_launch():
    w = KernelBuilder()
    count, x = w.array("count", DType.INT64, (1,)), w.array("x", DType.FLOAT64, (8,))
    with w.weak(count[0], "i") as i:
        x[i] = 1.0
    k = fresh_of(w)
    assert axis(k, "i").role is W
    assert k.threadless() == []


def fresh_of(builder):
    k = Scheduler(builder.finish(), CUDA)
    k.convert_loop_to_global()
    return k


def test_03_output_axes_precede_reductions_whatever_their_ids():
    w = KernelBuilder()
    x, y = w.array("x", DType.FLOAT64, (4, 8)), w.array("y", DType.FLOAT64, (4,))
    # the reduction takes id 0 because the sum is written before the loop is opened
    columns = []
    total = w.sum(8, lambda t: columns.append(t) or x[0, t], "r")
    with w.weak(4, "i") as i:
        y[i] = total
    k = Scheduler(w.finish(), CUDA)
    assert columns[0].id == 0
    assert [a.name for a in k.rngs()] == ["i", "r"]


def test_03_cholesky_order():
    assert [a.name for a in fresh(chol()).rngs()] == ["j", "i", "b", "k", "k"]
    sizes = fresh(chol()).full_shape()
    assert sizes[:3] == [8, 8, 64]
    assert sizes[3] == axis(fresh(chol()), "j")


def test_05_lanes_of_a_reduction_are_reduce_axes():
    k = fresh(gram())
    assert isinstance(k.apply_opt(Split(3, 4, Target.UPCAST)), Ok)
    assert k.full_shape() == [64, 8, 8, 4, 4]
    assert k.axes_of((U,), reduce=True) == [4]
    assert k.axes_of((U,), reduce=False) == []


def test_06_a_whole_axis_leaves_no_outer_axis():
    k = fresh(gram())
    answer = k.apply_opt(Split(1, 0, Target.UPCAST))
    assert isinstance(answer, Ok)
    assert [a.size.value for a in answer.axes] == [1, 8]
    assert k.axis_types() == [G, G, U, W]


def test_positions_move_after_a_split():
    k = fresh(gram())
    assert position(k, "k") == 3
    for name in ("i", "j"):
        assert isinstance(k.apply_opt(Split(position(k, name), 2, Target.UPCAST)), Ok)
    assert k.axis_types() == [G, G, G, U, U, W]
    assert position(k, "k") == 5


def test_10_read_by_bounds():
    assert names(fresh(chol()).read_by_bounds()) == {"j"}
    assert names(fresh(syrk()).read_by_bounds()) == {"i"}
    assert fresh(gram()).read_by_bounds() == []


def test_10_a_ragged_bound_reads_the_batch():
    w = KernelBuilder()
    count = w.array("count", DType.INT64, (8,))
    x, y = w.array("x", DType.FLOAT64, (8, 4)), w.array("y", DType.FLOAT64, (8,))
    with w.weak(8, "b") as b:
        y[b] = w.sum(count[b], lambda t: x[b, t])
    k = fresh_of(w)
    assert names(k.read_by_bounds()) == {"b"}
    assert k.upcastable_dims() == []


def test_10_a_bound_may_read_an_axis_through_a_named_value():
    w = KernelBuilder()
    count = w.array("count", DType.INT64, (8,))
    x = w.array("x", DType.FLOAT64, (8, 4))
    with w.weak(8, "b") as b:
        stop = w.let(count[b], "stop")
        with w.weak(stop, "i") as i:
            x[b, i] = 1.0
    assert names(fresh_of(w).read_by_bounds()) == {"b"}


def test_reduce_ranges_are_not_what_their_bounds_read():
    assert names(fresh(syrk()).reduce_ranges()) == {"k"}


def test_upcast_size_counts_both_kinds():
    k = fresh(gram())
    k.apply_opt(Split(1, 2, Target.UPCAST))
    k.apply_opt(Split(position(k, "k"), 4, Target.UPCAST))
    assert k.upcast_size() == 8


def test_upcastable_dims():
    before = fresh(chol(), promote=False)
    assert before.upcastable_dims() == [0, 2]
    assert before.upcastable_dims(reduce=True) == []
    k = fresh(gram())
    assert (k.upcastable_dims(), k.upcastable_dims(reduce=True)) == ([0, 1, 2], [3])
    k = fresh(syrk(), promote=False)
    assert (k.upcastable_dims(), k.upcastable_dims(reduce=True)) == ([0], [3])
    k = fresh(jac())
    assert k.upcastable_dims() == []
    assert len(k.upcastable_dims(reduce=True)) == 4


def test_reductions_in_walk_order():
    assert len(fresh(chol()).reduceops()) == 2
    assert fresh(scale()).reduceops() == []
    assert fresh(scale()).reduceop() is None
    inner, outer = fresh(nested_sums()).reduceops()
    assert inner.axes[0].name == "in"
    assert outer.axes[0].name == "out"
    assert fresh(nested_sums()).reduceop() == inner


def test_bufs_are_accesses_in_reverse_walk_order():
    found = fresh(gram()).bufs()
    assert [type(access) for access in found] == [Store, Load, Load]
    assert [access.buffer.name for access in found] == ["g", "a", "a"]


def test_29_swap_changes_the_launch_order():
    k = fresh(gram())
    assert k.apply_opt(Swap(0, 1)) == Ok(())
    assert k.full_shape() == [8, 64, 8, 16]
    assert [a.name for a in k.rngs()] == ["i", "b", "j", "k"]


@pytest.mark.parametrize("opt", [Swap(0, 3), Swap(3, 0), Swap(0, 4), Swap(-1, 0)])
def test_29_swap_of_other_axes_is_refused(opt):
    k = fresh(gram())
    before = k.ast()
    assert isinstance(k.apply_opt(opt), Refused)
    assert k.ast() is before


def test_30_copies_are_independent():
    k = fresh(gram())
    other = k.copy()
    other.apply_opt(Split(3, 4, Target.UPCAST))
    assert k.full_shape() == [64, 8, 8, 16]
    assert k.applied_opts() == []
    assert len(other.applied_opts()) == 1
    assert other.copy().applied_opts() == other.applied_opts()


def test_30_new_ids_never_repeat():
    k = fresh(gram())
    other = k.copy()
    for scheduler in (k, other):
        for _ in range(2):
            assert isinstance(scheduler.apply_opt(Split(0, 2, Target.UPCAST)), Ok)
    ids = [a.id for a in other.rngs()]
    assert len(set(ids)) == len(ids)


def test_30_an_option_may_stay_unrecorded():
    k = fresh(gram())
    assert isinstance(k.apply_opt(Split(3, 4, Target.UPCAST), append_opt=False), Ok)
    assert k.applied_opts() == []
    assert k.shape_len() == 5
    k.apply_opt(PadTo(0, 3))
    assert k.applied_opts() == [PadTo(0, 3)]


def test_31_names():
    assert fresh(scale()).get_optimized_ast().info.name == "E_64_8"
    assert fresh(scale()).get_optimized_ast("mine").info.name == "mine"
    w = KernelBuilder()
    x = w.array("x", DType.FLOAT64, (1,))
    x[0] = 1.0
    assert Scheduler(w.finish(), CUDA).get_optimized_ast().info.name == "E"
    name = fresh(syrk()).get_optimized_ast().info.name
    assert name == "r_28i12B129_64_8_16"
    assert name.isidentifier()


def test_31_optimized_kernels_say_so():
    k = fresh(gram())
    opt = Split(3, 4, Target.UPCAST)
    k.apply_opt(opt)
    info = k.get_optimized_ast().info
    assert info.optimized
    assert info.applied_opts == (opt,)
    assert Scheduler(k.get_optimized_ast(), CUDA).applied_opts() == [opt]


def test_32_symbolic_batch():
    k = fresh(symbolic())
    assert axis(k, "b").role is G
    at = position(k, "b")
    assert at not in k.upcastable_dims()
    assert isinstance(k.copy().apply_opt(Split(at, 32, Target.LOCAL)), Ok)
    assert isinstance(k.apply_opt(Split(at, 48, Target.LOCAL)), Refused)
    assert isinstance(k.apply_opt(Split(at, 0, Target.LOCAL)), Refused)
    assert isinstance(k.apply_opt(PadTo(at, 64)), Refused)


def test_32_a_symbolic_axis_may_be_split_twice():
    k = fresh(symbolic())
    assert isinstance(k.apply_opt(Split(position(k, "b"), 16, Target.LOCAL)), Ok)
    assert isinstance(k.copy().apply_opt(Split(position(k, "b"), 4, Target.UPCAST)), Ok)
    assert isinstance(k.apply_opt(Split(position(k, "b"), 8, Target.UPCAST)), Refused)


def test_colored_shape():
    k = fresh(gram(16, 32, 32))
    k.apply_opt(Split(2, 16, Target.UPCAST))
    text = k.colored_shape()
    assert text == (
        "\x1b[34m  16\x1b[0m \x1b[34m  32\x1b[0m \x1b[34m   2\x1b[0m "
        "\x1b[33m  16\x1b[0m \x1b[97m  32\x1b[0m"
    )


def test_letters_and_colours():
    roles = [role for role in AxisRole if role is not AxisRole.PLACEHOLDER]
    assert "".join(letter(role) for role in roles) == "dLLgwluv"
    assert colour(AxisRole.LOCAL) == 36
    for show in (letter, colour):
        with pytest.raises(ValueError, match="placeholder"):
            show(AxisRole.PLACEHOLDER)


def test_one_step_axes_and_device_axes_are_not_listed():
    w = KernelBuilder()
    x = w.array("x", DType.FLOAT64, (2, 4))
    with (
        w.nest(AxisRole.DEVICE, (2,), ("d",)) as (d,),
        w.nest(WEAK, (1, 4), ("one", "i")) as (one, i),
    ):
        x[d, i + one] = 0.0
    assert [a.name for a in Scheduler(w.finish(), CUDA).rngs()] == ["i"]


def test_svd_roles():
    k = fresh(svd())
    assert k.axis_types()[:2] == [LOOP, LOOP]
    assert k.group_for_reduces() == 0
    assert k.opaque() == []
    assert len(fresh(call()).opaque()) == 1
