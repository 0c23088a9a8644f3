"""Which axes take lanes and threads, and that the refused ones would go wrong."""

import numpy as np
import pytest
from kernel_zoo import (
    F64,
    axis,
    call,
    chol,
    gram,
    jac,
    names,
    position,
    solve,
    svd,
)

from batchlas._kernels import rules
from batchlas._kernels.build import KernelBuilder
from batchlas._kernels.depend import Dependence, depending
from batchlas._kernels.interpret import InterpretError
from batchlas._kernels.ir import AxisRole, Const, ReduceOp
from batchlas._kernels.options import Ok, PadTo, Refused, Split, Target
from batchlas._kernels.rules import Facts
from batchlas._kernels.schedule import Scheduler
from batchlas._kernels.target import CUDA

UP, LOCAL = Target.UPCAST, Target.LOCAL


def fresh(example_or_builder, ren=CUDA):
    kernel = getattr(example_or_builder, "kernel", None)
    k = Scheduler(kernel or example_or_builder.finish(), ren)
    k.convert_loop_to_global()
    return k


def refusal(k, opt):
    answer = k.copy().apply_opt(opt)
    assert isinstance(answer, Refused), opt
    return answer.reason


def differs(example, k, order="forward"):
    want = example.run()
    try:
        got = example.run(k.get_optimized_ast(), order=order)
    except InterpretError:
        return True
    return any(
        not np.allclose(got[n], want[n], rtol=1e-9, atol=1e-9, equal_nan=True)
        for n in want
    )


def test_21_the_batch_of_a_convergence_loop():
    k = fresh(jac())
    b = position(k, "b")
    assert k.axis_types()[b] is AxisRole.GLOBAL
    assert "condition depends" in refusal(k, Split(b, 4, UP))
    assert isinstance(k.apply_opt(Split(b, 4, LOCAL)), Ok)


def test_22_threadless():
    assert names(fresh(jac()).threadless()) == {"ic", "ir", "iv"}
    assert names(fresh(chol()).threadless()) == {"i"}
    assert fresh(gram()).threadless() == []
    assert names(fresh(svd()).threadless()) == {"i", "h"}


def test_22_the_literal_rule_would_forbid_the_batch():
    facts = Facts(jac().kernel)
    b = next(a for a in facts.axes if a.name == "b")
    literal = depending(facts.effects, b.id, frozenset())
    closed = depending(facts.effects, b.id, facts.private(to_groups=False))
    shared = rules.Shared(
        facts.effects, literal, facts.private(to_groups=False), facts.memory
    )
    assert "holds the last step" in rules.leaves_register(facts, b, shared)
    assert literal < closed
    assert facts.thread_conflict(b) is None


def test_23_read_back_keeps_rotations_off_threads(monkeypatch):
    example = jac(2, 3)
    k = fresh(example)
    at = position(k, "iv")
    assert "read a back" in refusal(k, Split(at, 3, LOCAL))
    monkeypatch.delitem(rules.THREAD_RULES, "X1")
    k = fresh(example)
    assert isinstance(k.apply_opt(Split(at, 3, LOCAL)), Ok)
    # thread 0 alone rotates a; the others compute angles from what they find there
    assert differs(example, k)


def test_24_svd_takes_lanes_on_rows_and_sums():
    example = svd(2, 4, 3)
    k = fresh(svd())
    up, down = k.upcastable_dims(), k.upcastable_dims(reduce=True)
    assert [k.rngs()[p].name for p in up] == ["i", "h"]
    assert [k.rngs()[p].name for p in down] == ["ka", "kb", "kg"]
    example = svd(2, 8, 4)
    k = fresh(example)
    for name, amount in (("i", 4), ("h", 2), ("ka", 4), ("kb", 4), ("kg", 4)):
        assert isinstance(k.apply_opt(Split(position(k, name), amount, UP)), Ok)
    got = example.run(k.get_optimized_ast(), order=3)
    values = np.sort(np.linalg.norm(got["u"], axis=1))[:, ::-1]
    want = np.linalg.svd(example.make()["u"], compute_uv=False)
    np.testing.assert_allclose(values, want, rtol=1e-13)
    eye = got["v"].swapaxes(1, 2) @ got["v"]
    np.testing.assert_allclose(eye, np.broadcast_to(np.eye(4), eye.shape), atol=1e-13)


def test_25_opaque_calls():
    example = call(4, 4)
    k = fresh(example)
    assert names(k.read_by_opaque()) == {"b"}
    assert names(k.unread_by_opaque()) == {"j"}
    assert axis(k, "b").role is AxisRole.GLOBAL
    b, j = position(k, "b"), position(k, "j")
    assert "opaque operation reads" in refusal(k, Split(b, 2, UP))
    assert "does not read the axis" in refusal(k, Split(j, 2, LOCAL))
    assert "encloses a call" in refusal(k, PadTo(b, 3))
    assert isinstance(k.apply_opt(Split(b, 2, LOCAL)), Ok)
    assert isinstance(k.apply_opt(Split(position(k, "j"), 2, UP)), Ok)
    assert not differs(example, k)


def test_33_masked_sums_take_lanes():
    example = chol(4, 4, masked=True)
    k = fresh(example)
    sums = [p for p in k.upcastable_dims(reduce=True) if k.rngs()[p].name == "k"]
    assert len(sums) == 2
    assert isinstance(k.apply_opt(Split(sums[0], 2, UP)), Ok)
    assert isinstance(k.apply_opt(Split(sums[0], 0, UP)), Ok)
    got = example.run(k.get_optimized_ast())["l"]
    want = np.linalg.cholesky(example.make()["a"])
    np.testing.assert_allclose(got, want, atol=1e-12)


def test_33_no_grouped_sum_of_what_the_kernel_writes():
    k = fresh(chol(4, 8, masked=True))
    reason = refusal(k, Split(k.axes_of(reduce=True)[0], 4, LOCAL))
    assert "sums l, which this kernel writes" in reason


def test_x1_of_grouped_sums():
    w = KernelBuilder()
    x, y, z = (
        w.array("x", F64, (4, 8)),
        w.array("y", F64, (4,)),
        w.array("z", F64, (4,)),
    )
    with w.weak(4, "b") as b:
        y[b] = w.sum(8, lambda t: x[b, t])
        z[b] = sqrt_of(w, y[b])
    k = fresh(w)
    assert "read y back" in refusal(k, Split(position(k, "k"), 4, LOCAL))


def sqrt_of(w, value):
    return w.let(value * 0.5, "half") + value


def test_grouped_sums_stay_out_of_conditional_code():
    w = KernelBuilder()
    x, y, c = w.array("x", F64, (4, 8)), w.array("y", F64, (4,)), w.register("c", F64)
    with w.weak(4, "b") as b:
        c.set(0.0)
        with w.repeat() as loop:
            c.set(c.get() + w.sum(8, lambda t: x[b, t] * x[b, t]))
            loop.again_while(c.get() < 5.0)
        y[b] = c.get()
    k = fresh(w)
    assert "under a condition" in refusal(k, Split(position(k, "k"), 4, LOCAL))


def test_dot_products_as_accumulators_block_lanes_and_as_sums_do_not():
    blocked = KernelBuilder()
    x, acc = blocked.array("x", F64, (8, 4)), blocked.register("acc", F64)
    with blocked.weak(8, "b") as b, blocked.serial(4, "i") as i:
        acc.set(acc.get() + x[b, i])
    assert names(fresh(blocked).ast().body[0].axes) == {"b"}
    assert fresh(blocked).upcastable_dims() == []
    free = KernelBuilder()
    x, y = free.array("x", F64, (8, 4)), free.array("y", F64, (8,))
    with free.weak(8, "b") as b:
        y[b] = free.sum(4, lambda t: x[b, t])
    k = fresh(free)
    assert (k.upcastable_dims(), k.upcastable_dims(reduce=True)) == ([0], [1])


def test_named_values_do_not_block_lanes():
    w = KernelBuilder()
    x, y = w.array("x", F64, (8, 4)), w.array("y", F64, (8, 4))
    with w.weak(8, "b") as b:
        half = w.let(0.5 * x[b, 0], "half")
        with w.weak(4, "i") as i:
            y[b, i] = half * x[b, i]
    k = fresh(w)
    assert len(k.upcastable_dims()) == 2


def test_dependence_of_values():
    w = KernelBuilder()
    x, r = w.array("x", F64, (8, 8)), w.register("r", F64, (8,))
    with w.weak(8, "b") as b, w.weak(b + 1, "i") as i:
        t = w.let(x[b, 0], "t")
        r[0] = t
        x[b, i] = r[0]
    kernel = w.finish()
    dep = Dependence(kernel)
    outer, inner = kernel.body[0].axes[0], kernel.body[0].body[0].axes[0]
    assert dep.of(t) == {outer.id}
    assert dep.of(inner) == {outer.id, inner.id}
    assert dep.of(r[0]) == frozenset()
    assert dep.of(r[outer]) == {outer.id}
    assert dep.of(x[outer, 0] + r[0]) == {outer.id}


def test_a_reduction_depends_on_its_bound_but_not_on_its_axes():
    w = KernelBuilder()
    x = w.array("x", F64, (8, 8))
    with w.weak(8, "b") as b:
        x[b, 0] = w.sum(b + 1, lambda _t: Const(1.0, F64))
    kernel = w.finish()
    store = kernel.body[0].body[0]
    assert Dependence(kernel).of(store.value) == {kernel.body[0].axes[0].id}


def test_rule_b_a_register_read_after_the_loop():
    w = KernelBuilder()
    x, y, r = w.array("x", F64, (8,)), w.array("y", F64, (1,)), w.register("r", F64)
    with w.weak(8, "i") as i:
        r.set(x[i])
    y[0] = r.get()
    k = fresh(w)
    assert axis(k, "i").role is AxisRole.WEAK
    assert names(k.threadless()) == {"i"}
    reason = refusal(k, Split(position(k, "i"), 2, LOCAL))
    assert "r holds the last step of i" in reason


def carried(*, own_cells):
    """A right-looking update inside a serial loop."""
    w = KernelBuilder()
    a, y = w.array("a", F64, (4, 6, 6)), w.array("y", F64, (4, 6))
    with (
        w.weak(4, "b") as b,
        w.serial(5, "j") as j,
        w.weak(6, "i") as i,
        w.where(i > j),
    ):
        read = y[b, i] if own_cells else y.get(b, i - 1 - j, gate=i > j)
        y[b, i] = read + a[b, i, j]
    return w


def test_x2_a_serial_loop_carries_memory_between_steps():
    k = fresh(carried(own_cells=False))
    assert "carries y" in refusal(k, Split(position(k, "i"), 2, LOCAL))
    k = fresh(carried(own_cells=True))
    assert isinstance(k.apply_opt(Split(position(k, "i"), 2, LOCAL)), Ok)
    # what is left of i still owns its cells: y[2*i' + s]
    assert names(k.threadless()) == set()


def test_solve_takes_both_on_both_axes():
    example = solve(4, 4, 4)
    k = fresh(example)
    for name in ("b", "c"):
        assert isinstance(k.apply_opt(Split(position(k, name), 2, UP)), Ok)
        assert isinstance(k.apply_opt(Split(position(k, name), 2, LOCAL)), Ok)
    assert not differs(example, k, order="reverse")


def group_copy(*, owned):
    """Steps of b pass through work-group memory, each by its own cells or not."""
    w = KernelBuilder()
    x, y = w.array("x", F64, (8, 4)), w.array("y", F64, (8, 4))
    sh = w.local("sh", F64, (8, 4) if owned else (1, 4))
    with w.weak(8, "b") as b:
        row = b if owned else 0
        with w.weak(4, "i") as i:
            sh[row, i] = x[b, i]
        with w.weak(4, "k") as k:
            y[b, k] = 2.0 * sh[row, k]
    return w


@pytest.mark.parametrize("target", list(Target))
def test_steps_at_once_must_not_write_the_same_group_cells(target):
    from batchlas._kernels.target import OPENCL

    k = fresh(group_copy(owned=False), OPENCL)
    assert axis(k, "b").role is AxisRole.GLOBAL  # each group has its own memory
    assert "same cells of sh" in refusal(k, Split(position(k, "b"), 2, target))
    k = fresh(group_copy(owned=True), OPENCL)
    assert isinstance(k.apply_opt(Split(position(k, "b"), 2, target)), Ok)


def test_an_if_forbids_lanes():
    w = KernelBuilder()
    x = w.array("x", F64, (8, 4))
    with w.weak(8, "b") as b, w.guard(b < 6), w.weak(4, "i") as i:
        x[b, i] = 1.0
    k = fresh(w)
    assert [k.rngs()[p].name for p in k.upcastable_dims()] == ["i"]


def test_a_condition_that_reads_memory_forbids_lanes():
    w = KernelBuilder()
    x = w.array("x", F64, (8,))
    with w.weak(8, "b") as b, w.repeat() as loop:
        x[b] = 0.5 * x[b]
        loop.again_while(x[b] > 1.0)
    k = fresh(w)
    assert "condition depends" in refusal(k, Split(0, 2, UP))


def test_how_often_a_loop_repeats_is_a_dependence():
    w = KernelBuilder()
    x, r, c = w.array("x", F64, (8,)), w.register("r", F64), w.register("c", F64)
    with w.weak(8, "b") as b:
        r.set(x[b])
        c.set(0.0)
        with w.repeat() as loop:
            c.set(c.get() + 1.0)
            r.set(r.get() - 1.0)
            loop.again_while(r.get() > 0.0)
    facts = Facts(w.finish())
    b = next(a for a in facts.axes if a.name == "b")
    yes = facts.shared(b, to_groups=False).yes
    counted = [e for e in yes if e.writes == {"c"}]
    # the count differs between steps of b; that it starts from zero does not
    assert [e.reads for e in counted] == [{"c"}]


def test_opaque_values_count_as_opaque():
    from batchlas._kernels.ir import DType, OpaqueValue

    w = KernelBuilder()
    x, y = w.array("x", DType.INT64, (8,)), w.array("y", DType.INT64, (8, 4))
    with w.nest(AxisRole.WEAK, (8, 4), ("b", "i")) as (b, i):
        y[b, i] = OpaqueValue("popcount", (x[b],), DType.INT64)
    k = fresh(w)
    assert names(k.read_by_opaque()) == {"b"}
    assert names(k.unread_by_opaque()) == {"i"}
    assert names(k.threadless()) == {"i"}


def test_max_reductions_are_reductions():
    w = KernelBuilder()
    x, y = w.array("x", F64, (8, 4)), w.array("y", F64, (8,))
    with w.weak(8, "b") as b:
        y[b] = w.reduce(ReduceOp.MAX, 4, lambda t: x[b, t])
    assert isinstance(fresh(w).apply_opt(Split(1, 4, LOCAL)), Ok)
