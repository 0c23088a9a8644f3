"""The reference interpreter: results, orders, the checks that it makes."""

import numpy as np
import pytest
from kernel_zoo import (
    BOOL,
    F32,
    F64,
    WEAK,
    call,
    chol,
    gram,
    jac,
    nested_sums,
    scale,
    solve,
    svd,
    symbolic,
    syrk,
)

from batchlas._kernels import functions as f
from batchlas._kernels.build import KernelBuilder
from batchlas._kernels.interpret import (
    DependenceError,
    InterpretError,
    check_independence,
    run,
)
from batchlas._kernels.ir import AxisRole, Cast, Const, DType, ReduceOp, ScalarArg

SMALL = {
    "gram": gram(3, 4, 5),
    "chol": chol(3, 4),
    "masked": chol(2, 4, masked=True),
    "syrk": syrk(3, 4, 3),
    "solve": solve(2, 4, 3),
    "jac": jac(2, 3),
    "svd": svd(2, 4, 3),
    "call": call(3, 4),
    "nested": nested_sums(3, 2, 4),
    "scale": scale(4, 3),
    "symbolic": symbolic(2),
}


@pytest.mark.parametrize("name", SMALL)
def test_any_order_gives_the_same(name):
    example = SMALL[name]
    want = example.run()
    for order in ("reverse", 1, 2):
        got = example.run(order=order)
        for key, value in want.items():
            np.testing.assert_allclose(got[key], value, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", SMALL)
def test_weak_axes_of_the_examples_are_independent(name):
    example = SMALL[name]
    arrays = example.make()
    before = {key: value.copy() for key, value in arrays.items()}
    check_independence(
        example.kernel, arrays, example.scalars, functions=example.functions
    )
    for key, value in arrays.items():
        np.testing.assert_array_equal(value, before[key])


def test_results_of_the_examples():
    a = SMALL["gram"].make()["a"]
    np.testing.assert_allclose(SMALL["gram"].run()["g"], a @ a.swapaxes(1, 2))
    a = SMALL["chol"].make()["a"]
    for name in ("chol", "masked"):
        want = np.linalg.cholesky(SMALL[name].make()["a"])
        np.testing.assert_allclose(SMALL[name].run()["l"], want)
    arrays = SMALL["syrk"].make()
    full = arrays["a"] @ arrays["a"].swapaxes(1, 2)
    want = np.where(np.tri(4, dtype=bool), full, arrays["g"])
    np.testing.assert_allclose(SMALL["syrk"].run()["g"], want)
    arrays = SMALL["solve"].make()
    want = np.linalg.solve(arrays["l"], arrays["y"])
    np.testing.assert_allclose(SMALL["solve"].run()["x"], want)


def test_jacobi_solves():
    got, a = SMALL["jac"].run(), SMALL["jac"].make()["a"]
    values = np.sort(np.diagonal(got["a"], axis1=1, axis2=2))
    np.testing.assert_allclose(values, np.linalg.eigvalsh(a), rtol=1e-12, atol=1e-12)
    back = got["v"] @ got["a"] @ got["v"].swapaxes(1, 2)
    np.testing.assert_allclose(back, a, atol=1e-12)


def test_34_a_wrongly_weak_column_loop_is_found():
    example = chol(2, 4, j_role=WEAK)
    with pytest.raises(DependenceError, match="WEAK axis j reads l"):
        check_independence(example.kernel, example.make())


def test_34_each_order_alone_would_miss_something():
    w = KernelBuilder()
    x, y = w.array("x", F64, (4,)), w.array("y", F64, (4,))
    with w.weak(4, "i") as i:
        y[i] = x.get(i + 1, gate=i < 3)
        x[i] = 0.0
    arrays = {"x": np.arange(4.0), "y": np.zeros(4)}
    kernel = w.finish()
    check_independence(kernel, arrays, orders=("forward",))
    with pytest.raises(DependenceError, match="axis i reads x"):
        check_independence(kernel, arrays)


def test_34_overwriting_another_step_is_found():
    w = KernelBuilder()
    x, y = w.array("x", F64, (4,)), w.array("y", F64, (1,))
    with w.weak(4, "i") as i:
        y[0] = x[i]
    with pytest.raises(DependenceError, match="axis i overwrites y"):
        check_independence(w.finish(), {"x": np.arange(4.0), "y": np.zeros(1)})


def test_34_a_flag_that_all_steps_set_alike_is_allowed():
    w = KernelBuilder()
    y = w.array("y", F64, (1,))
    with w.weak(4, "i"):
        y[0] = 1.0
    check_independence(w.finish(), {"y": np.zeros(1)})


def test_34_registers_of_another_step_are_found():
    w = KernelBuilder()
    x, r = w.array("x", F64, (4,)), w.register("r", F64)
    r.set(0.0)
    with w.weak(4, "i") as i:
        r.set(r.get() + x[i])
    x[0] = r.get()
    with pytest.raises(DependenceError, match="axis i reads r"):
        check_independence(w.finish(), {"x": np.arange(4.0)})


def test_39_a_repeat_stops_at_its_cap_and_leaves_neighbours_alone():
    example = jac(3, 3, max_sweeps=5)
    arrays = example.make()
    arrays["a"][1] = np.nan
    arrays["a"][2] = 1e300  # its squares overflow, so it never converges
    run(example.kernel, arrays)
    good = example.run()
    for name, value in good.items():
        np.testing.assert_array_equal(arrays[name][0], value[0])
    assert arrays["sweeps"][0] < 5
    assert np.isnan(arrays["a"][1]).all()

    never = jac(2, 3, max_sweeps=4, tol=-1.0)
    assert (never.run()["sweeps"] == 4).all()


def test_an_endless_repeat_is_an_error(monkeypatch):
    from batchlas._kernels import execute

    monkeypatch.setattr(execute, "REPEATS_MAX", 50)
    w = KernelBuilder()
    x = w.array("x", F64, (1,))
    with w.repeat() as loop:
        x[0] = x[0] + 1.0
        loop.again_while(x[0] > 0.0)
    with pytest.raises(InterpretError, match="went on 50 times"):
        run(w.finish(), {"x": np.zeros(1)})


def one_store(value, dtype, **arrays):
    """The value that an expression of the arrays' first elements has."""
    w = KernelBuilder()
    y = w.array("y", dtype, (1,))
    refs = [w.array(n, DType(a.dtype.name), a.shape) for n, a in arrays.items()]
    y[0] = value(*(ref[(0,) * len(ref.buffer.shape)] for ref in refs))
    out = np.zeros(1, dtype.value)
    run(w.finish(), {"y": out, **arrays})
    return out[0]


def arr(value, dtype):
    return np.array([value], dtype.value)


ONE = Const(1.0, F64)
C128, C64 = DType.COMPLEX128, DType.COMPLEX64


@pytest.mark.parametrize(
    ("fn", "dtype", "args", "want"),
    [
        (f.sqrt, F64, (2.0,), np.sqrt(2.0)),
        (f.rsqrt, F32, (2.0,), np.float32(1) / np.sqrt(np.float32(2))),
        (f.absolute, F64, (-2.0,), 2.0),
        (f.exp, F64, (2.0,), np.exp(2.0)),
        (f.log, F32, (2.0,), np.log(np.float32(2.0))),
        (lambda x: -x, F64, (-2.0,), 2.0),
        (f.minimum, F64, (2.0, 1.0), 1.0),
        (f.maximum, F64, (2.0, 1.0), 2.0),
        (f.maximum, F64, (2.0, np.nan), 2.0),
        (f.copysign, F64, (2.0, -0.0), -2.0),
        (f.fma, F64, (2.0, 3.0, 4.0), 10.0),
        (lambda a, b: a / b, F64, (1.0, 0.0), np.inf),
        (lambda a, b: a - b, F64, (1.0, 3.0), -2.0),
        (lambda a: 1.0 - a, F64, (3.0,), -2.0),
        (lambda a: 6.0 / a, F64, (3.0,), 2.0),
        (f.square, F64, (3.0,), 9.0),
        (f.conj, C128, (1 + 2j,), 1 - 2j),
        (f.sqrt, C128, (-4 + 0j,), 2j),
        (lambda a, b: a * b, C64, (1 + 2j, 3 - 1j), 5 + 5j),
        (lambda x: f.where(f.isnan(x), ONE, 0.0), F64, (np.nan,), 1.0),
        (lambda x: f.where(~(x > 1.0), ONE, 0.0), F64, (2.0,), 0.0),
        (lambda a, b: f.where((a <= b) | (a >= 9.0), ONE, 0.0), F64, (2.0, 2.0), 1.0),
        (lambda a, b: f.where(a.eq(b) & a.ne(b), ONE, 0.0), F64, (2.0, 2.0), 0.0),
    ],
)
def test_operations(fn, dtype, args, want):
    arrays = {f"x{n}": arr(value, dtype) for n, value in enumerate(args)}
    got = one_store(fn, dtype, **arrays)
    assert got == np.array(want, dtype.value)


def test_complex_parts():
    z = arr(3 - 4j, C64)
    assert one_store(f.real, F32, z=z) == 3
    assert one_store(f.imag, F32, z=z) == -4
    assert one_store(f.absolute, F32, z=z) == 5
    assert one_store(f.abs_squared, F32, z=z) == 25
    pair = {"re": arr(1.5, F32), "im": arr(-2.0, F32)}
    assert one_store(f.make_complex, C64, **pair) == 1.5 - 2j
    assert f.real(Const(1.0, F64)) == Const(1.0, F64)


def test_single_precision_rounds_at_every_step():
    big = arr(2.0**24, F32)
    assert one_store(lambda x: (x + 1.0) - x, F32, x=big) == 0.0


def test_integers_and_casts():
    seven = arr(7, DType.INT64)
    assert one_store(lambda x: x // 2, DType.INT64, x=seven) == 3
    assert one_store(lambda x: x % 4, DType.INT64, x=seven) == 3
    assert one_store(lambda x: f.cast(x, F32) / 2.0, F32, x=seven) == 3.5
    assert one_store(lambda x: Cast(x, DType.INT32), DType.INT32, x=arr(2.9, F64)) == 2
    for bad in (lambda x: (x - 9) // 2, lambda x: x % (x - 7)):
        with pytest.raises(InterpretError, match="division"):
            one_store(bad, DType.INT64, x=seven)


@pytest.mark.parametrize(
    ("op", "want"), [(ReduceOp.ADD, 6.0), (ReduceOp.MUL, -36.0), (ReduceOp.MAX, 6.0)]
)
def test_reductions(op, want):
    w = KernelBuilder()
    x, y = w.array("x", F64, (4,)), w.array("y", F64, (1,))
    y[0] = w.reduce(op, 4, lambda t: x[t])
    out = np.zeros(1)
    run(
        w.finish(),
        {
            "x": np.array([-1.0, 6.0, -1.0, 2.0])
            if op is ReduceOp.ADD
            else np.array([-1.0, 6.0, 2.0, 3.0]),
            "y": out,
        },
    )
    assert out[0] == want


def test_strides_offsets_and_scalars():
    w = KernelBuilder()
    nb, step = w.scalar("nb"), w.scalar("step")
    x = w.array("x", F64, (nb, 2, 2), strides=(step, -1, 2), offset=1)
    y = w.array("y", F64, (nb, 2, 2))
    with w.nest(WEAK, (nb, 2, 2), ("b", "i", "j")) as (b, i, j):
        y[b, i, j] = x[b, i, j]
    flat, out = np.arange(20.0), np.zeros((3, 2, 2))
    run(w.finish(), {"x": flat, "y": out}, {"nb": 3, "step": 5})
    for b in range(3):
        np.testing.assert_array_equal(out[b], 1 + 5 * b + np.array([[0, 2], [-1, 1]]))


def test_scalars_keep_their_promises():
    example = symbolic()
    with pytest.raises(InterpretError, match="nb = 65"):
        run(example.kernel, example.make(), {"nb": 65})


def test_arrays_must_fit():
    example = scale(4, 3)
    good = example.make()
    for bad in ({"x": good["x"][:2]}, {"x": good["x"].astype(np.float32)}, {}):
        arrays = {"y": good["y"], **bad}
        with pytest.raises(ValueError, match="x"):
            run(example.kernel, arrays)


def test_one_array_is_one_buffer():
    example = scale(4, 3)
    x = np.zeros((4, 3))
    with pytest.raises(ValueError, match="share memory"):
        run(example.kernel, {"x": x, "y": x})


@pytest.mark.parametrize("shift", [1, -1])
def test_reading_outside_is_an_error_and_a_gate_prevents_it(shift):
    def kernel(*, gated):
        w = KernelBuilder()
        x, y = w.array("x", F64, (4,)), w.array("y", F64, (4,))
        with w.weak(4, "i") as i:
            inside = (i + shift < 4) & (i + shift >= 0)
            y[i] = x.get(i + shift, gate=inside if gated else None)
        return w.finish()

    arrays = {"x": np.arange(1.0, 5.0), "y": np.zeros(4)}
    with pytest.raises(InterpretError, match="outside"):
        run(kernel(gated=False), arrays)
    run(kernel(gated=True), arrays)
    assert arrays["y"].sum() == 10.0 - (1.0 if shift == 1 else 4.0)


def test_the_gate_of_a_store_does_not_guard_its_loads():
    w = KernelBuilder()
    x, r = w.array("x", F64, (4,)), w.register("r", F64)
    with w.weak(5, "i") as i, w.where(i < 4):
        x[i] = x[i] + 1.0
    with pytest.raises(InterpretError, match="outside"):
        run(w.finish(), {"x": np.zeros(4)})
    w = KernelBuilder()
    x, r = w.array("x", F64, (4,)), w.register("r", F64)
    with w.weak(5, "i") as i, w.where(i < 0):
        x[i] = r.get()  # never written, never used
    run(w.finish(), {"x": np.zeros(4)})


def test_unwritten_registers_are_not_read():
    w = KernelBuilder()
    x, r = w.array("x", F64, (1,)), w.register("r", F64)
    x[0] = r.get()
    with pytest.raises(InterpretError, match="before it is written"):
        run(w.finish(), {"x": np.zeros(1)})


def test_parallel_stores_read_first():
    w = KernelBuilder()
    x = w.array("x", F64, (2,))
    with w.parallel():
        x[0] = x[1]
        x[1] = x[0]
    arrays = {"x": np.array([1.0, 2.0])}
    run(w.finish(), arrays)
    np.testing.assert_array_equal(arrays["x"], [2.0, 1.0])


def test_stages_fill_their_buffers():
    w = KernelBuilder()
    x, y = w.array("x", F64, (2, 3)), w.array("y", F64, (2,))
    s = w.register("s", F64, (3,))
    with w.weak(2, "b") as b:
        w.stage(s, lambda i: 2.0 * x[b, i])
        y[b] = w.sum(3, lambda t: s[t])
    arrays = {"x": np.arange(6.0).reshape(2, 3), "y": np.zeros(2)}
    run(w.finish(), arrays)
    np.testing.assert_array_equal(arrays["y"], [6.0, 24.0])


def test_guards_skip_their_block():
    w = KernelBuilder()
    nb = w.scalar("nb")
    x = w.array("x", F64, (nb,))
    with w.weak(8, "b") as b, w.guard(b < nb):
        x[b] = 1.0
    arrays = {"x": np.zeros(5)}
    run(w.finish(), arrays, {"nb": 5})
    assert arrays["x"].all()


def test_bool_buffers():
    w = KernelBuilder()
    x = w.array("x", BOOL, (2,))
    x[0] = ~x[1]
    arrays = {"x": np.array([False, False])}
    run(w.finish(), arrays)
    assert list(arrays["x"]) == [True, False]


def test_group_axes_run_effects_that_do_not_depend_on_them_once():
    w = KernelBuilder()
    x, y = w.array("x", F64, (4,)), w.array("y", F64, (1,))
    y[0] = y[0] + 1.0
    with w.nest(AxisRole.GLOBAL, (4,), ("g",)) as (g,):
        x[g] = 1.0
    arrays = {"x": np.zeros(4), "y": np.zeros(1)}
    run(w.finish(), arrays)
    assert arrays["y"][0] == 1.0
    assert arrays["x"].all()


def test_a_missing_maker_is_an_error():
    from batchlas._kernels.evaluate import Evaluator
    from batchlas._kernels.ir import Expr

    values = Evaluator({}, {}, range, None)
    with pytest.raises(InterpretError, match="has no value"):
        values.function(Expr())
    with pytest.raises(InterpretError, match="is not what"):
        Evaluator({"n": 1.5}, {}, range, None).function(ScalarArg("n"))
