"""Moves of a search, launch shapes, and which thread stores."""

from kernel_zoo import call, chol, gram, names, position, symbolic, syrk

from batchlas._kernels.ir import AxisRole
from batchlas._kernels.options import Ok, Split, Swap, Target
from batchlas._kernels.rules import Facts
from batchlas._kernels.schedule import Scheduler
from batchlas._kernels.search import LANES_MAX, beam_search, moves
from batchlas._kernels.target import CUDA, OPENCL
from batchlas._kernels.threads import launch_axes, launch_shape, single_thread_axes


def fresh(example, ren=OPENCL):
    k = Scheduler(example.kernel, ren)
    k.convert_loop_to_global()
    return k


def test_every_move_is_accepted_and_none_is_missing():
    k = fresh(chol(8, 4))
    found = moves(k)
    assert all(isinstance(k.copy().apply_opt(opt), Ok) for opt in found)
    every = {
        opt
        for at in range(k.shape_len())
        for amount in (2, 3, 4, 8)
        for target in Target
        if isinstance(k.copy().apply_opt(opt := Split(at, amount, target)), Ok)
    }
    assert set(found) == every
    assert {k.rngs()[opt.axis].name for opt in found} == {"i", "b"}
    assert k.applied_opts() == []


def test_moves_keep_the_copies_in_bounds():
    k = fresh(gram(64, 16, 32))
    for at, amount in ((1, 16), (1, 8)):
        assert isinstance(k.apply_opt(Split(at, amount, Target.UPCAST)), Ok)
    for opt in moves(k):
        trial = k.copy()
        trial.apply_opt(opt)
        assert trial.upcast_size() <= LANES_MAX
    assert any(opt.target is Target.UPCAST for opt in moves(k))


def test_beam_search_finds_what_the_cost_asks_for():
    asked = []

    def cost(k):
        asked.append(k)
        lanes = k.upcast_size()
        return abs(12 - lanes) + 0.001 * len(k.applied_opts())

    best = beam_search(fresh(gram(8, 6, 4)), cost, width=3)
    assert best.upcast_size() == 12
    assert len(best.applied_opts()) == 2
    # the cost was asked once for each code, not once for each order of splits
    codes = {k.ast() for k in asked}
    assert len(codes) == len(asked)


def test_a_search_without_gain_returns_the_kernel():
    k = fresh(call(4, 4))
    assert beam_search(k, lambda _k: 1.0) is k


def test_launch_shapes():
    k = fresh(gram(64, 8, 16))
    k.apply_opt(Split(0, 16, Target.LOCAL))
    k.apply_opt(Split(position(k, "k"), 4, Target.LOCAL))
    facts = Facts(k.ast())
    assert launch_shape(facts, {}) == (4 * 8 * 8, 16 * 4)
    groups, threads = launch_axes(facts)
    assert [a.name for a in groups] == ["b", "i", "j"]
    assert [a.name for a in threads] == ["bl", "kl"]
    k.apply_opt(Swap(0, 2))
    assert [a.name for a in launch_axes(Facts(k.ast()))[0]] == ["j", "i", "b"]


def test_launch_shapes_of_a_symbolic_batch():
    k = fresh(symbolic())
    k.apply_opt(Split(position(k, "b"), 32, Target.LOCAL))
    assert launch_shape(Facts(k.ast()), {"nb": 192}) == (6, 32)


def test_one_thread_of_a_shared_reduction_stores():
    k = fresh(gram(4, 2, 8), CUDA)
    k.apply_opt(Split(0, 2, Target.LOCAL))
    k.apply_opt(Split(position(k, "k"), 4, Target.LOCAL))
    facts = Facts(k.ast())
    (store,) = k.ast().body[0].body
    assert names(single_thread_axes(facts)[id(store)]) == {"kl"}
    assert single_thread_axes(facts, grouped=False)[id(store)] == ()


def test_which_thread_stores_follows_registers():
    from kernel_zoo import jac

    k = fresh(jac(4, 3))
    k.apply_opt(Split(position(k, "b"), 4, Target.LOCAL))
    facts = Facts(k.ast())
    assert all(axes == () for axes in single_thread_axes(facts).values())
    assert AxisRole.LOCAL in fresh(syrk()).axis_types() + k.axis_types()
