"""Goldens: kernels as text, fresh and scheduled."""

from pathlib import Path

import pytest
from kernel_zoo import BOOL, F32, F64, call, chol, gram, nested_sums, svd, syrk
from kernel_zoo_threads import coop_chol

from batchlas._kernels import functions as f
from batchlas._kernels.build import KernelBuilder
from batchlas._kernels.driver import apply_opts
from batchlas._kernels.ir import Const, DType, OpaqueValue
from batchlas._kernels.options import parse_schedule
from batchlas._kernels.show import show, show_expr
from batchlas._kernels.target import OPENCL

GOLDEN = Path(__file__).parent / "golden"
CASES = {
    "chol": (chol(), None),
    "coop_chol": (coop_chol(), None),
    "gram": (gram(6, 4, 8), "pad:0:4,split:3:4:local:top,split:2:2:lanes"),
    "syrk": (syrk(4, 5, 3), "pad:2:4"),
    "nested": (
        nested_sums(8, 4, 6),
        "pad:2:4,split:0:4:vector,split:3:2:lanes",
    ),
    "call": (call(4, 4), "split:1:2:local"),
    "svd": (svd(8, 4, 3), "split:2:2:lanes,split:4:4:vector"),
}


@pytest.mark.parametrize("name", CASES)
def test_kernels_as_text(name):
    """A wrong golden is rewritten by hand: its new text is in the failure."""
    example, text = CASES[name]
    kernel = example.kernel
    if text is not None:
        asked = kernel.with_info(opts_to_apply=parse_schedule(text))
        kernel = apply_opts(asked, OPENCL)
    assert show(kernel) == (GOLDEN / f"{name}.txt").read_text()


def test_every_statement_has_a_form():
    w = KernelBuilder("all")
    n = w.scalar("n")
    x, s = w.array("x", F64, (n,)), w.register("s", F64, (2,))
    w.stage(s, lambda i: x[i])
    with w.repeat(uniform=True) as loop:
        t = w.let(f.fma(x[0], 2.0, x[1]), "t")
        with w.guard(n > 2):
            w.barrier()
        with w.parallel():
            x[0] = -t
        loop.again_while(~(t < 1.0))
    assert show(w.finish()) == (
        "kernel all(n: int64, x: float64[n])\n"
        "  stage s[s00] = x[s00] for s00:2L\n"
        "  repeat uniform\n"
        "    let t = fma(x[0], 2.0, x[1])\n"
        "    if (n > 2)\n"
        "      barrier\n"
        "    together\n"
        "      x[0] = neg(t)\n"
        "  while not((t < 1.0))\n"
    )


def test_values_as_text():
    one, yes = Const(1, F32), Const(1, BOOL)
    assert show_expr(f.where(yes, one, 2.0)) == "select(True, 1.0, 2.0)"
    assert show_expr(f.cast(one, F64)) == "float64(1.0)"
    assert show_expr(f.minimum(one, 2.0)) == "min(1.0, 2.0)"
    assert show_expr(OpaqueValue("clz", (one,), DType.INT64)) == "clz(1.0)"
    assert "together" in show(svd().kernel)
