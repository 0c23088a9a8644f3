"""Linear forms of subscripts, and which cells belong to one step of an axis."""

import pytest

from batchlas._kernels.affine import linear, owner_keys
from batchlas._kernels.ir import Axis, ScalarArg, index_const

R, X, Y = Axis(0, index_const(4)), Axis(1, index_const(3)), Axis(2, index_const(8))
N = ScalarArg("n")


@pytest.mark.parametrize(
    ("expr", "factors", "constant", "others"),
    [
        (R * 4 + X - 2, {0: 4, 1: 1}, -2, 0),
        (2 * (R - X) - R, {0: 1, 1: -2}, 0, 0),
        (R - R, {}, 0, 0),
        (R * N + 1, {}, 1, 1),
        (X + R // 2, {1: 1}, 0, 1),
        (N - R, {0: -1}, 0, 1),
        (R - N, {0: 1}, 0, 1),
        (R * X, {}, 0, 1),
        (index_const(3) * 5 + 0 * R, {}, 15, 0),
    ],
)
def test_linear_forms(expr, factors, constant, others):
    form = linear(expr)
    assert {ident: factor for ident, (_, factor) in form.axes.items()} == factors
    assert form.constant == constant
    assert len(form.others) == others


def owned(*exprs):
    """Whether cells of all these subscripts tell one step of R from another."""
    cells = [owner_keys((expr,), R) for expr in exprs]
    return bool(frozenset.intersection(*cells))


@pytest.mark.parametrize(
    "exprs",
    [
        (R,),
        (R, R),
        (5 * R + 1, 5 * R + 1),
        (3 * R + X, 3 * R),
        (4 * X + R, 8 * Y + R),
        (4 * X + R, 4 * X + R),
    ],
)
def test_cells_of_one_step(exprs):
    assert owned(*exprs)


@pytest.mark.parametrize(
    "exprs",
    [
        (X,),
        (R + X,),
        (2 * R + X,),
        (3 * R + Y,),
        (3 * R - X,),
        (3 * X + R,),
        (R + N,),
        (R, R + 1),
        (R, 3 * R + X),
        (4 * X + R + 1,),
        (R // 2,),
    ],
)
def test_cells_of_several_steps(exprs):
    assert not owned(*exprs)


def test_any_dimension_may_tell():
    assert owner_keys((X, R), R) & owner_keys((Y, R), R)
    assert not owner_keys((R, X), R) & owner_keys((X, R), R)


def test_an_axis_of_unknown_size_owns_what_it_indexes_alone():
    wide = Axis(9, N)
    assert owner_keys((wide,), wide)
    assert not owner_keys((4 * X + wide,), wide)
    assert not owner_keys((3 * R + wide,), R)
