"""The example kernels that scheduler and interpreter are tested on.

Each comes with a maker of arguments and the names of the arrays to compare.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from batchlas._kernels.build import KernelBuilder
from batchlas._kernels.functions import absolute, maximum, rsqrt, sqrt, where
from batchlas._kernels.interpret import run
from batchlas._kernels.ir import AxisRole, Const, DType, Kernel, ReduceOp

if TYPE_CHECKING:
    from collections.abc import Callable

F64, F32, BOOL = DType.FLOAT64, DType.FLOAT32, DType.BOOL
WEAK = AxisRole.WEAK


@dataclass
class Example:
    kernel: Kernel
    make: Callable[[], dict[str, np.ndarray]]
    outputs: tuple[str, ...]
    scalars: dict[str, Any] = field(default_factory=dict)
    functions: dict[str, Callable[..., Any]] = field(default_factory=dict)

    def run(self, kernel=None, order="forward"):
        arrays = self.make()
        run(
            kernel or self.kernel,
            arrays,
            self.scalars,
            functions=self.functions,
            order=order,
        )
        return {name: arrays[name] for name in self.outputs}


def axis(kernel_or_scheduler, name):
    """The axis of this name among those a scheduler lists."""
    return next(a for a in kernel_or_scheduler.rngs() if a.name == name)


def position(scheduler, name):
    """The position of the axis of this name."""
    return [a.name for a in scheduler.rngs()].index(name)


def names(axes):
    return {a.name for a in axes}


def rng():
    return np.random.default_rng(7)


def spd(batch, n):
    x = rng().standard_normal((batch, n, n))
    return x @ x.swapaxes(-1, -2) + n * np.eye(n)


def gram(nb=64, n=8, k=16, dtype=F64):
    w = KernelBuilder("gram")
    a, g = w.array("a", dtype, (nb, n, k)), w.array("g", dtype, (nb, n, n))
    with w.nest(WEAK, (nb, n, n), ("b", "i", "j")) as (b, i, j):
        g[b, i, j] = w.sum(k, lambda t: a[b, i, t] * a[b, j, t])

    def make():
        np_type = dtype.value
        return {
            "a": rng().standard_normal((nb, n, k)).astype(np_type),
            "g": np.full((nb, n, n), np.nan, np_type),
        }

    return Example(w.finish(), make, ("g",))


def chol(nb=64, n=8, *, masked=False, j_role=AxisRole.LOOP):
    """Left-looking Cholesky; `masked` sums over all k and selects those below j."""
    w = KernelBuilder("chol")
    a, l = w.array("a", F64, (nb, n, n)), w.array("l", F64, (nb, n, n))  # noqa: E741

    def dot(b, i, j):
        if masked:
            zero = Const(0.0, F64)
            return w.sum(
                n, lambda t: where(t < j, l.get(b, i, t, gate=t < j) * l[b, j, t], zero)
            )
        return w.sum(j, lambda t: l[b, i, t] * l[b, j, t])

    with w.weak(nb, "b") as b, w.nest(j_role, (n,), ("j",)) as (j,):
        l[b, j, j] = sqrt(a[b, j, j] - dot(b, j, j))
        with w.weak(n, "i") as i, w.where(i > j):
            l[b, i, j] = (a[b, i, j] - dot(b, i, j)) / l[b, j, j]

    def make():
        return {"a": spd(nb, n), "l": np.zeros((nb, n, n))}

    return Example(w.finish(), make, ("l",))


def syrk(nb=64, n=8, k=16):
    w = KernelBuilder("syrk")
    a, g = w.array("a", F64, (nb, n, k)), w.array("g", F64, (nb, n, n))
    with (
        w.nest(WEAK, (nb, n), ("b", "i")) as (b, i),
        w.weak(i + 1, "j") as j,
    ):
        g[b, i, j] = w.sum(k, lambda t: a[b, i, t] * a[b, j, t])

    def make():
        return {
            "a": rng().standard_normal((nb, n, k)),
            "g": np.full((nb, n, n), 99.0),
        }

    return Example(w.finish(), make, ("g",))


def solve(nb=64, n=8, nrhs=4):
    w = KernelBuilder("solve")
    l = w.array("l", F64, (nb, n, n))  # noqa: E741
    y, x = w.array("y", F64, (nb, n, nrhs)), w.array("x", F64, (nb, n, nrhs))
    with (
        w.nest(WEAK, (nb, nrhs), ("b", "c")) as (b, c),
        w.serial(n, "i") as i,
    ):
        dot = w.sum(i, lambda t: l[b, i, t] * x[b, t, c])
        x[b, i, c] = (y[b, i, c] - dot) / l[b, i, i]

    def make():
        return {
            "l": np.linalg.cholesky(spd(nb, n)),
            "y": rng().standard_normal((nb, n, nrhs)),
            "x": np.full((nb, n, nrhs), np.nan),
        }

    return Example(w.finish(), make, ("x",))


def jac(nb=64, n=4, *, max_sweeps=12, tol=1e-26):
    """Cyclic Jacobi with register temporaries; a and v are worked on in place."""
    w = KernelBuilder("jac")
    a, v = w.array("a", F64, (nb, n, n)), w.array("v", F64, (nb, n, n))
    sweeps = w.array("sweeps", F64, (nb,))
    t, c, s, off, norm, sweep = (
        w.register(name, F64) for name in ("t", "c", "s", "off", "norm", "sweep")
    )

    def rotate(ref, name, first, second):
        x1, x2 = w.register(f"x1{name}", F64), w.register(f"x2{name}", F64)
        with w.weak(n, name) as i:
            x1.set(ref[first(i)])
            x2.set(ref[second(i)])
            ref[first(i)] = c.get() * x1.get() - s.get() * x2.get()
            ref[second(i)] = s.get() * x1.get() + c.get() * x2.get()

    with w.weak(nb, "b") as b:
        total = w.sum(
            n, lambda u: w.sum(n, lambda z: a[b, u, z] * a[b, u, z], "nv"), "nu"
        )
        norm.set(total)
        sweep.set(0.0)
        with w.repeat() as loop:
            with w.serial(n - 1, "p") as p, w.serial(n - 1 - p, "d") as d:
                q = p + 1 + d
                theta = w.let((a[b, q, q] - a[b, p, p]) / (2.0 * a[b, p, q]), "theta")
                sign = where(theta < 0.0, -1.0, Const(1.0, F64))
                root = sign / (absolute(theta) + sqrt(theta * theta + 1.0))
                small = absolute(a[b, p, q]) <= 1e-300
                t.set(where(small, 0.0, root))
                c.set(rsqrt(1.0 + t.get() * t.get()))
                s.set(c.get() * t.get())
                rotate(a, "ic", lambda i: (b, i, p), lambda i: (b, i, q))
                rotate(a, "ir", lambda i: (b, p, i), lambda i: (b, q, i))
                rotate(v, "iv", lambda i: (b, i, p), lambda i: (b, i, q))
            zero = Const(0.0, F64)
            off.set(
                w.sum(
                    n,
                    lambda u: w.sum(
                        n,
                        lambda z: where(u.ne(z), a[b, u, z] * a[b, u, z], zero),
                        "ov",
                    ),
                    "ou",
                )
            )
            sweep.set(sweep.get() + 1.0)
            more = off.get() > norm.get() * tol
            loop.again_while(more & (sweep.get() < float(max_sweeps)))
        sweeps[b] = sweep.get()

    def make():
        x = rng().standard_normal((nb, n, n))
        return {
            "a": x + x.swapaxes(-1, -2),
            "v": np.broadcast_to(np.eye(n), (nb, n, n)).copy(),
            "sweeps": np.zeros(nb),
        }

    return Example(w.finish(), make, ("a", "v", "sweeps"))


def svd(nb=64, m=8, n=4, *, max_sweeps=12):
    """One-sided Jacobi with simultaneous row updates; u and v in place."""
    w = KernelBuilder("svd")
    u, v = w.array("u", F64, (nb, m, n)), w.array("v", F64, (nb, n, n))
    big, sweep = w.register("big", F64), w.register("sweep", F64)
    with w.weak(nb, "b") as b:
        sweep.set(0.0)
        with w.repeat() as loop:
            big.set(0.0)
            with w.serial(n - 1, "p") as p, w.serial(n - 1 - p, "d") as d:
                q = p + 1 + d
                alpha = w.let(
                    w.sum(m, lambda i: u[b, i, p] * u[b, i, p], "ka"), "alpha"
                )
                beta = w.let(w.sum(m, lambda i: u[b, i, q] * u[b, i, q], "kb"), "beta")
                gamma = w.let(
                    w.sum(m, lambda i: u[b, i, p] * u[b, i, q], "kg"), "gamma"
                )
                size = absolute(gamma) * rsqrt(alpha * beta)
                big.set(maximum(big.get(), size))
                zeta = w.let((beta - alpha) / (2.0 * gamma), "zeta")
                sign = where(zeta < 0.0, -1.0, Const(1.0, F64))
                root = sign / (absolute(zeta) + sqrt(1.0 + zeta * zeta))
                t = w.let(where(absolute(gamma) <= 1e-300, 0.0, root), "t")
                c = w.let(rsqrt(1.0 + t * t), "c")
                s = w.let(c * t, "s")
                with w.weak(m, "i") as i, w.parallel():
                    u[b, i, p] = c * u[b, i, p] - s * u[b, i, q]
                    u[b, i, q] = s * u[b, i, p] + c * u[b, i, q]
                with w.weak(n, "h") as h, w.parallel():
                    v[b, h, p] = c * v[b, h, p] - s * v[b, h, q]
                    v[b, h, q] = s * v[b, h, p] + c * v[b, h, q]
            sweep.set(sweep.get() + 1.0)
            more = (big.get() > 1e-15) & (sweep.get() < float(max_sweeps))
            loop.again_while(more)

    def make():
        return {
            "u": rng().standard_normal((nb, m, n)),
            "v": np.broadcast_to(np.eye(n), (nb, n, n)).copy(),
        }

    return Example(w.finish(), make, ("u", "v"))


def call(nb=64, n=8):
    """An opaque factorisation of each matrix, beside a loop over j."""
    w = KernelBuilder("call")
    a, x = w.array("a", F64, (nb, n, n)), w.array("x", F64, (nb, n))
    with w.weak(nb, "b") as b:
        w.call("potrf8", a.address(b, 0, 0), writes=(0,))
        with w.weak(n, "j") as j:
            x[b, j] = 2.0 * x[b, j]

    def potrf8(flat):
        flat[: n * n] = np.linalg.cholesky(flat[: n * n].reshape(n, n)).reshape(-1)

    def make():
        return {"a": spd(nb, n), "x": rng().standard_normal((nb, n))}

    return Example(w.finish(), make, ("a", "x"), functions={"potrf8": potrf8})


def nested_sums(nb=8, m=4, k=16):
    w = KernelBuilder("nested")
    a, y = w.array("a", F64, (nb, m, k)), w.array("y", F64, (nb,))
    with w.weak(nb, "b") as b:

        def inner(o):
            return w.reduce(ReduceOp.MAX, k, lambda t: a[b, o, t], "in")

        y[b] = w.sum(m, inner, "out")

    def make():
        return {"a": rng().standard_normal((nb, m, k)), "y": np.zeros(nb)}

    return Example(w.finish(), make, ("y",))


def scale(nb=64, n=8):
    """Elementwise: nothing reduces."""
    w = KernelBuilder()
    x, y = w.array("x", F64, (nb, n)), w.array("y", F64, (nb, n))
    with w.nest(WEAK, (nb, n), ("b", "i")) as (b, i):
        y[b, i] = 2.0 * x[b, i]

    def make():
        return {"x": rng().standard_normal((nb, n)), "y": np.zeros((nb, n))}

    return Example(w.finish(), make, ("y",))


def symbolic(n=8, nb=64):
    """The batch is an argument, a multiple of 64."""
    w = KernelBuilder()
    count = w.scalar("nb", multiple_of=64)
    x, y = w.array("x", F64, (count, n)), w.array("y", F64, (count, n))
    with w.weak(count, "b") as b, w.weak(n, "i") as i:
        y[b, i] = 2.0 * x[b, i]

    def make():
        return {"x": rng().standard_normal((nb, n)), "y": np.zeros((nb, n))}

    return Example(w.finish(), make, ("y",), {"nb": nb})
