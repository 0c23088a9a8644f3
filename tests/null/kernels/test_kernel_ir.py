"""Nodes, the builder, the check of whole kernels, walks and digests."""

import subprocess
import sys
from dataclasses import FrozenInstanceError, replace

import pytest
from kernel_zoo import F32, F64, chol, gram, jac, svd, syrk

from batchlas._kernels.build import KernelBuilder
from batchlas._kernels.digest import digest
from batchlas._kernels.functions import rsqrt, where
from batchlas._kernels.ir import (
    INDEX,
    AddressOf,
    Axis,
    AxisRole,
    Binary,
    BinaryOp,
    Buffer,
    Cast,
    Const,
    DType,
    Fma,
    For,
    If,
    Kernel,
    KernelInfo,
    Let,
    Load,
    MemSpace,
    Node,
    OpaqueCall,
    ParallelStore,
    Reduce,
    ReduceOp,
    Repeat,
    ScalarArg,
    Select,
    Stage,
    Store,
    Temp,
    Unary,
    UnaryOp,
    index_const,
)
from batchlas._kernels.options import Split, Target
from batchlas._kernels.schedule import Scheduler
from batchlas._kernels.target import CUDA
from batchlas._kernels.validate import check_kernel
from batchlas._kernels.walk import (
    axes_in,
    const_int,
    fold,
    is_divisible,
    is_known_at_launch,
    launch_value,
    post_order,
    rewrite,
    substitute,
)

ONE, TRUE = Const(1.0, F64), Const(True, DType.BOOL)
X = Buffer("x", F64, (index_const(4),), slot=0)
I = Axis(0, index_const(4))  # noqa: E741
N = ScalarArg("n", multiple_of=12)


def test_40_literals_of_different_dtypes_differ():
    assert Const(2, INDEX) != Const(2.0, F64)
    assert Const(2.0, F32) != Const(2.0, F64)
    assert Const(1, INDEX) != Const(1, DType.BOOL)
    assert Const(2, INDEX) == Const(2, INDEX)
    assert hash(Const(2, INDEX)) == hash(Const(2, INDEX))
    assert Const(0.0, F64) != Const(-0.0, F64)
    assert Const(float("nan"), F64) == Const(float("nan"), F64)
    assert len({Const(1, INDEX), Const(1.0, F64), Const(True, DType.BOOL)}) == 3


def test_40_axis_sizes_stay_integers_after_rewrites():
    k = Scheduler(gram().kernel, CUDA)
    k.convert_loop_to_global()
    for _ in range(3):
        k.apply_opt(Split(0, 2, Target.UPCAST))
    k.apply_opt(Split(k.shape_len() - 1, 4, Target.UPCAST))
    sizes = [a.size for a in axes_in(k.ast())]
    assert all(type(size.value) is int and size.dtype is INDEX for size in sizes)
    assert all(type(size) is int for size in k.full_shape())


@pytest.mark.parametrize(
    "make",
    [
        lambda: Const(1.5, INDEX),
        lambda: Const(2, DType.BOOL),
        lambda: Const(1j, F64),
        lambda: ScalarArg("not a name"),
        lambda: ScalarArg("n", multiple_of=0),
        lambda: ScalarArg("x", F64, multiple_of=2),
        lambda: Axis(0, Const(2.0, F64)),
        lambda: Axis(0, index_const(-1)),
        lambda: Axis(0, "4"),
        lambda: Unary(UnaryOp.NOT, ONE),
        lambda: Unary(UnaryOp.SQRT, I),
        lambda: Unary(UnaryOp.NEG, TRUE),
        lambda: Unary(UnaryOp.RSQRT, Const(1j, DType.COMPLEX64)),
        lambda: Binary(BinaryOp.ADD, ONE, Const(1.0, F32)),
        lambda: Binary(BinaryOp.ADD, TRUE, TRUE),
        lambda: Binary(BinaryOp.AND, ONE, ONE),
        lambda: Binary(BinaryOp.MOD, ONE, ONE),
        lambda: Binary(BinaryOp.DIV, I, I),
        lambda: Binary(
            BinaryOp.LT, Const(1j, DType.COMPLEX64), Const(1j, DType.COMPLEX64)
        ),
        lambda: Binary(BinaryOp.COPYSIGN, I, I),
        lambda: Fma(ONE, ONE, Const(1.0, F32)),
        lambda: Select(ONE, ONE, ONE),
        lambda: Select(TRUE, ONE, Const(1.0, F32)),
        lambda: Cast(Const(1j, DType.COMPLEX64), F32),
        lambda: Buffer("x y", F64, ()),
        lambda: Buffer("x", F64, (ONE,)),
        lambda: Buffer("x", F64, (index_const(4),), strides=()),
        lambda: Buffer("x", F64, (N,), MemSpace.REGISTER),
        lambda: Buffer("x", F64, (), MemSpace.LOCAL, slot=1),
        lambda: Load(X, ()),
        lambda: Load(X, (ONE,)),
        lambda: Load(X, (I,), ONE),
        lambda: Reduce(ReduceOp.ADD, TRUE, (I,)),
        lambda: Reduce(ReduceOp.ADD, ONE, ()),
        lambda: Reduce(ReduceOp.ADD, ONE, (I, I)),
        lambda: Reduce(ReduceOp.ADD, ONE, (index_const(2),)),
        lambda: Reduce(ReduceOp.MAX, Const(1j, DType.COMPLEX64), (I,)),
        lambda: Let(Temp(0, F32), ONE),
        lambda: Store(X, (I,), Const(1.0, F32)),
        lambda: ParallelStore(()),
        lambda: For((I,), ()),
        lambda: For((I,), (ONE,)),
        lambda: Repeat(0, (Store(X, (I,), ONE),), ONE),
        lambda: If(ONE, (Store(X, (I,), ONE),)),
        lambda: OpaqueCall("f", (ONE,), (0,)),
        lambda: OpaqueCall("f", (), (0,)),
        lambda: Stage(X, (I,), ONE),
        lambda: Kernel((replace(X, slot=1),), (Store(X, (I,), ONE),)),
        lambda: Kernel((X, ScalarArg("x")), (Store(X, (I,), ONE),)),
    ],
)
def test_malformed_nodes_are_rejected(make):
    with pytest.raises(ValueError, match=r"\w"):
        make()


def test_nodes_are_values():
    first, second = chol().kernel, chol().kernel
    assert first is not second
    assert first == second
    assert hash(first) == hash(second)
    assert gram(nb=8).kernel != gram(nb=9).kernel
    with pytest.raises(FrozenInstanceError):
        I.id = 3


def test_expressions_have_no_truth_value():
    with pytest.raises(TypeError, match="no truth value"):
        bool(I < 3)
    with pytest.raises(TypeError, match="no truth value"):
        assert 0 < I < 3
    with pytest.raises(TypeError, match="Python numbers"):
        where(I < 3, 1.0, 2.0)


def test_operators_take_the_dtype_of_the_expression():
    value = 2 * Load(X, (I + 1,)) - 1
    assert value.dtype is F64
    assert value.b == Const(1.0, F64)
    assert (I + 1).b == Const(1, INDEX)
    assert rsqrt(value).dtype is F64
    with pytest.raises(ValueError, match="int64"):
        I + 1.5


def test_the_builder_writes_what_it_reads():
    w = KernelBuilder("scale")
    x = w.array("x", F64, (4,))
    with w.weak(4, "i") as i, w.where(i > 0), w.where(i < 3):
        x[i] = 2.0 * x[i]
    kernel = w.finish()
    (loop,) = kernel.body
    (store,) = loop.body
    assert store == Store(
        x.buffer,
        (i,),
        Binary(BinaryOp.MUL, Const(2.0, F64), Load(x.buffer, (i,))),
        Binary(BinaryOp.AND, i > 0, i < 3),
    )
    assert kernel.info.name == "scale"
    assert kernel.params == (x.buffer,)


def test_the_builder_rejects_loose_ends():
    w = KernelBuilder()
    x = w.array("x", F64, (4,))
    with pytest.raises(ValueError, match="again_while"), w.repeat():
        x[0] = 1.0
    w = KernelBuilder()
    with pytest.raises(ValueError, match="empty body"):
        w.finish()
    w = KernelBuilder()
    x = w.array("x", F64, (4,))
    with pytest.raises(ValueError, match="only stores"), w.parallel():
        w.let(x[0])
    with w.weak(4) as i:
        x[i] = 0.0
        with pytest.raises(ValueError, match="still open"):
            w.finish()


ZERO = index_const(0)
PLACE = Axis(9, index_const(2), AxisRole.PLACEHOLDER)
WRONG = {
    "axis": lambda x, i, t: Store(x, (i,), ONE),
    "value": lambda x, i, t: Store(x, (ZERO,), t),
    "buffer": lambda x, i, t: Store(Buffer("y", F64, ()), (), ONE),
    "two": lambda x, i, t: Store(Buffer("x", F64, (), MemSpace.REGISTER), (), ONE),
    "axis twice": lambda x, i, t: For((i,), (Store(x, (i,), ONE),)),
    "value twice": lambda x, i, t: Let(t, ONE),
    "address": lambda x, i, t: Store(x, (ZERO,), AddressOf(x, (ZERO,))),
    "placeholder": lambda x, i, t: For((PLACE,), (Store(x, (PLACE,), ONE),)),
    "bound": lambda x, i, t: For((Axis(9, i),), (Store(x, (ZERO,), ONE),)),
    "scalar": lambda x, i, t: Store(x, (ScalarArg("m"),), ONE),
}


def wrong_scope(kind):
    w = KernelBuilder()
    x = w.array("x", F64, (4,))
    with w.weak(4, "i") as i:
        t = w.let(x[i], "t")
        x[i] = t
    w.emit(WRONG[kind](x.buffer, i, t))
    return w


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("axis", "outside its loop"),
        ("value", "outside its block"),
        ("buffer", "no argument"),
        ("two", "two things"),
        ("axis twice", "closed twice"),
        ("value twice", "named twice"),
        ("address", "outside a call"),
        ("placeholder", "placeholder"),
        ("bound", "outside its loop"),
        ("scalar", "no argument"),
    ],
)
def test_whole_kernels_are_checked(kind, text):
    with pytest.raises(ValueError, match=text):
        wrong_scope(kind).finish()


def test_a_sum_may_be_used_twice():
    w = KernelBuilder()
    x, y = w.array("x", F64, (4, 4)), w.array("y", F64, (4,))
    with w.weak(4, "b") as b:
        total = w.sum(4, lambda t: x[b, t])
        y[b] = total * total
    assert check_kernel(w.finish())


def test_the_condition_sees_the_values_of_its_body():
    w = KernelBuilder()
    x = w.array("x", F64, (4,))
    with w.repeat() as loop:
        t = w.let(x[0], "t")
        x[0] = t - 1.0
        loop.again_while(t > 0.0)
    assert w.finish()


def test_walks_visit_sources_first_and_once():
    kernel = svd().kernel
    nodes = list(post_order(kernel))
    place = {id(node): n for n, node in enumerate(nodes)}
    assert len(place) == len(nodes)
    assert nodes[-1] is kernel
    from batchlas._kernels.walk import children

    for node in nodes:
        assert all(place[id(c)] < place[id(node)] for c in children(node))


def test_rewriting_shares_what_stays():
    kernel = jac().kernel
    assert rewrite(kernel, lambda node: node) is kernel
    assert substitute(kernel, {}) == kernel


def test_substitution_flattens_and_reaches_sizes():
    kernel = syrk().kernel
    b, i = kernel.body[0].axes
    inner = Axis(99, index_const(2))
    outer = replace(i, size=index_const(4))
    new = substitute(kernel, {i.id: outer * 2 + inner})
    assert new.body[0].axes == (b, outer, inner)
    (j,) = new.body[0].body[0].axes
    assert axes_in(j.size) == [outer, inner]
    check_kernel(new)
    assert substitute(new, {}) == new


def test_folding():
    assert fold(index_const(2) * 3 + 4) == index_const(10)
    for same in (I + 0, 0 + I, I * 1, 1 * I, I // 1, I - 0):
        assert fold(same) == I
    assert const_int(fold(I * 0)) == 0
    assert fold(I % 0) == I % 0
    assert fold(index_const(7) // 0) == index_const(7) // 0


def test_known_at_launch_and_divisible():
    assert is_known_at_launch(N * 2 + 1)
    assert not is_known_at_launch(4 * (I + 1))
    assert not is_known_at_launch(Load(Buffer("c", INDEX, ()), ()))
    assert is_divisible(N, 4)
    assert not is_divisible(N, 5)
    assert is_divisible(N // 4, 3)
    assert not is_divisible(N // 4, 2)
    assert is_divisible(N * 5, 5)
    assert is_divisible(N + 24, 12)
    assert not is_divisible(N + 1, 12)
    assert launch_value(N // 4 * 2 - 1, {"n": 24}) == 11
    with pytest.raises(ValueError, match="not known"):
        launch_value(I, {})


def test_digests():
    base = digest(chol().kernel)
    assert base == digest(chol().kernel)
    assert base == digest(chol().kernel.with_info(name="other", optimized=True))
    others = [chol(nb=65), chol(masked=True), chol(j_role=AxisRole.WEAK), gram(), svd()]
    assert len({base, *(digest(e.kernel) for e in others)}) == 6
    kernel = Kernel((X,), (Store(X, (index_const(0),), ONE),))
    minus = Kernel((X,), (Store(X, (index_const(0),), Const(-1.0, F64)),))
    f32 = replace(X, type=F32)
    single = Kernel((f32,), (Store(f32, (index_const(0),), Const(1.0, F32)),))
    assert len({digest(k) for k in (kernel, minus, single)}) == 3


def test_digests_are_the_same_in_every_process():
    code = (
        "from batchlas._kernels.ir import *\n"
        "from batchlas._kernels.digest import digest\n"
        "x = Buffer('x', DType.FLOAT64, (index_const(4),), slot=0)\n"
        "s = Store(x, (index_const(0),), Const(1.0, DType.FLOAT64))\n"
        "print(digest(Kernel((x,), (s,))))"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    kernel = Kernel((X,), (Store(X, (index_const(0),), ONE),))
    assert out.stdout.strip() == digest(kernel)


def test_the_compiler_needs_numpy_alone():
    code = (
        "import sys\n"
        "import batchlas._kernels.driver, batchlas._kernels.interpret\n"
        "import batchlas._kernels.build, batchlas._kernels.functions\n"
        "bad = {'dpctl', 'dpnp', 'cupy', 'numba', 'dask'} & set(sys.modules)\n"
        "assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_info_defaults():
    assert KernelInfo() == KernelInfo("test", (), None, 0, False, 0, 0)
    assert isinstance(gram().kernel, Node)
