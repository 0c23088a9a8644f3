"""Schedules that all renderers must print right, and how to apply them by axis name."""

import numpy as np
from kernel_zoo import (
    chol,
    gram,
    jac,
    nested_sums,
    position,
    solve,
    svd,
    symbolic,
    syrk,
)
from kernel_zoo_threads import coop_chol, interleaved_solve, register_chol

from batchlas._kernels.ir import DType
from batchlas._kernels.options import Ok, PadTo, Split, Target
from batchlas._kernels.schedule import Scheduler

LANES, LOCAL, VECTOR = Target.UPCAST, Target.LOCAL, Target.VECTOR


def split(name, amount, target, *, top=False):
    return lambda k: Split(position(k, name), amount, target, top)


def pad(name, amount):
    return lambda k: PadTo(position(k, name), amount)


def scheduled(example, target, steps):
    """The example's kernel with every step applied; a refused step is an error."""
    k = Scheduler(example.kernel, target)
    k.convert_loop_to_global()
    for step in steps:
        answer = k.apply_opt(step(k))
        assert isinstance(answer, Ok), answer
    return k.get_optimized_ast()


# what needs no vectors: the schedules of the specification, and cooperative kernels
PLAIN = {
    "gram": (gram(8, 6, 10), ()),
    "gram float32": (gram(8, 6, 10, DType.FLOAT32), (split("i", 2, LANES),)),
    "chol threads": (chol(8, 6), (split("b", 4, LOCAL),)),
    "chol lanes": (chol(8, 6), (split("b", 4, LANES),)),
    "chol threads and rows": (
        chol(8, 6),
        (split("b", 4, LOCAL), split("i", 2, LANES)),
    ),
    "chol masked": (chol(8, 8, masked=True), (split("k", 4, LANES),)),
    "chol masked whole": (chol(8, 8, masked=True), (split("k", 0, LANES),)),
    "gram grouped": (gram(8, 6, 16), (split("k", 4, LOCAL),)),
    "gram grouped from the top": (
        gram(8, 6, 16),
        (split("k", 4, LOCAL, top=True), split("i", 2, LANES)),
    ),
    "gram tile": (
        gram(8, 6, 16),
        (split("i", 2, LANES), split("j", 2, LANES), split("k", 4, LANES)),
    ),
    "gram padded": (gram(8, 5, 7), (pad("j", 3), split("j", 3, LANES))),
    "gram sum padded": (gram(8, 5, 7), (pad("k", 5), split("k", 5, LANES))),
    "syrk": (syrk(8, 5, 6), (split("b", 4, LOCAL),)),
    "solve": (solve(8, 5, 4), (split("c", 2, LANES), split("b", 4, LOCAL))),
    "svd rows": (
        svd(8, 8, 4),
        (split("i", 4, LANES), split("ka", 2, LANES), split("h", 4, LANES)),
    ),
    "jac": (jac(8, 3), ()),
    "nested": (nested_sums(8, 4, 16), (split("in", 4, LOCAL),)),
    "symbolic": (symbolic(5, 64), (split("b", 32, LOCAL),)),
    "cooperative": (coop_chol(4, 8, 4), ()),
    "registers": (register_chol(3, 8), (split("b", 4, LOCAL),)),
    "interleaved": (interleaved_solve(8, 3, 4), ()),
}
# threads that leave a loop at different times; numba-dpex cannot
PARTING = {
    "jac threads": (jac(16, 3), (split("b", 8, LOCAL),)),
    "svd threads": (svd(16, 5, 3), (split("b", 8, LOCAL),)),
}
VECTORS = {
    f"{name} {width}": (example, (split("b", width, VECTOR),))
    for width in (2, 8, 16)
    for name, example in {
        "gram": gram(16, 5, 7),
        "gram float32": gram(16, 5, 7, DType.FLOAT32),
        "chol": chol(16, 6),
        "chol masked": chol(16, 5, masked=True),
        "syrk": syrk(16, 5, 4),
        "solve": solve(16, 5, 3),
        "jac": jac(16, 3),
        "svd": svd(16, 5, 3),
        "nested": nested_sums(16, 3, 4),
    }.items()
} | {
    "jac threads and vectors": (
        jac(64, 3),
        (split("b", 4, LOCAL), split("b", 8, VECTOR)),
    ),
    "svd threads and vectors": (
        svd(64, 5, 3),
        (split("b", 4, LOCAL), split("b", 8, VECTOR)),
    ),
    "registers": (register_chol(5, 21), (split("b", 8, VECTOR),)),
    "columns": (gram(8, 8, 6), (split("j", 8, VECTOR), split("i", 2, LANES))),
    "right-hand sides": (solve(8, 5, 8), (split("c", 8, VECTOR),)),
    "padded": (gram(5, 6, 4), (pad("b", 8), split("b", 8, VECTOR))),
}


SINGLE = (np.float32, np.complex64)


def assert_same(example, got, want):
    """Relative to the largest number, as a sum may be taken in another order."""
    single = any(a.dtype in SINGLE for a in example.make().values())
    for name, expected in want.items():
        if expected.dtype.kind in "bi":
            np.testing.assert_array_equal(got[name], expected, err_msg=name)
            continue
        finite = np.abs(expected[np.isfinite(expected)])
        atol = (2e-5 if single else 1e-12) * finite.max(initial=1.0)
        np.testing.assert_allclose(got[name], expected, rtol=0, atol=atol, err_msg=name)
