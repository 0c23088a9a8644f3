"""Kernels whose batch need not fill the last vector or the last group."""

import numpy as np
from kernel_zoo import F32, F64, Example, rng, spd

from batchlas._kernels.build import KernelBuilder
from batchlas._kernels.functions import (
    absolute,
    cast,
    conj,
    imag,
    isnan,
    make_complex,
    maximum,
    real,
    rsqrt,
    where,
)
from batchlas._kernels.ir import AxisRole, DType, Fma

C64, C128 = DType.COMPLEX64, DType.COMPLEX128


def batch_of(w, multiple=64):
    return w.scalar("nb"), w.scalar("padded", multiple_of=multiple)


def scalars(nb, multiple=64):
    return {"nb": nb, "padded": -(-nb // multiple) * multiple}


def packed_chol(nb, n=4, dtype=F32):
    """The lower triangle in packed registers, one guard around everything."""
    w = KernelBuilder("packed_chol")
    count, padded = batch_of(w)
    a = w.array("a", dtype, (count, n, n))
    l = w.array("l", dtype, (count, n, n))  # noqa: E741
    r = w.register("r", dtype, (n * (n + 1) // 2,))

    def at(i, j):
        return i * (i + 1) // 2 + j

    with w.weak(padded, "b") as b, w.guard(b < count):
        with w.weak(n, "i") as i, w.weak(i + 1, "c") as c:
            r[at(i, c)] = a[b, i, c]
        with w.serial(n, "j") as j:
            root = w.let(rsqrt(r[at(j, j)]), "root")
            with w.weak(n - j, "d") as d:
                r[at(j + d, j)] = r[at(j + d, j)] * root
            with w.serial(n - 1 - j, "e") as e, w.weak(e + 1, "f") as f:
                i, c = j + 1 + e, j + 1 + f
                r[at(i, c)] = r[at(i, c)] - r[at(i, j)] * r[at(c, j)]
        with w.weak(n, "x") as x, w.weak(x + 1, "y") as y:
            l[b, x, y] = r[at(x, y)]

    def make():
        t = dtype.value
        return {"a": spd(nb, n).astype(t), "l": np.full((nb, n, n), 7.0, t)}

    return Example(w.finish(), make, ("l",), scalars(nb))


def gated(nb):
    """No guard: each load and store has its gate."""
    w = KernelBuilder("gated")
    count, padded = batch_of(w)
    x, y = w.array("x", F64, (count, 3)), w.array("y", F64, (count,))
    with w.weak(padded, "b") as b, w.where(b < count):
        y[b] = w.sum(3, lambda k: x.get(b, k, gate=b < count))

    def make():
        return {"x": rng().standard_normal((nb, 3)), "y": np.full(nb, np.nan)}

    return Example(w.finish(), make, ("y",), scalars(nb))


def crossing(nb):
    """A value named outside the guard is used inside it: lanes must be masked."""
    w = KernelBuilder("crossing")
    count, padded = batch_of(w)
    x, y = w.array("x", F64, (count, 3)), w.array("y", F64, (count,))
    kept = w.register("kept", F64)
    with w.weak(padded, "b") as b:
        own = w.let(cast(b, F64) * 0.5, "own")
        kept.set(own + 1.0)
        with w.guard(b < count):
            kept.set(kept.get() + x[b, 1])
            y[b] = own + kept.get() + w.sum(3, lambda k: x[b, k])

    def make():
        return {"x": rng().standard_normal((nb, 3)), "y": np.full(nb, np.nan)}

    return Example(w.finish(), make, ("y",), scalars(nb))


def rounds(nb):
    """Each matrix goes its own number of rounds, one of them never converges."""
    w = KernelBuilder("rounds")
    count, padded = batch_of(w)
    x, y = w.array("x", F64, (count,)), w.array("y", F64, (count, 2))
    z, n = w.register("z", F64), w.register("n", F64)
    with w.weak(padded, "b") as b, w.guard(b < count):
        z.set(x[b])
        n.set(0.0)
        with w.repeat() as loop:
            z.set(z.get() * 0.5)
            n.set(n.get() + 1.0)
            y[b, 1] = n.get()
            loop.again_while((absolute(z.get()) > 1.0) & (n.get() < 20.0))
        y[b, 0] = z.get()

    def make():
        start = rng().standard_normal(nb) * 100
        start[0] = np.nan
        start[-1] = np.inf
        return {"x": start, "y": np.full((nb, 2), -1.0)}

    return Example(w.finish(), make, ("y",), scalars(nb))


def complex_mix(nb, dtype=C128):
    """Every complex operation once."""
    w = KernelBuilder("complex_mix")
    count, padded = batch_of(w)
    x, y = w.array("x", dtype, (count, 3)), w.array("y", dtype, (count, 3))
    r = w.register("r", dtype, (2,))
    s = w.array("s", dtype.real, (count,))
    with w.weak(padded, "b") as b, w.guard(b < count):
        r[0] = conj(x[b, 0]) * x[b, 1] / x[b, 2]
        r[1] = Fma(x[b, 0], x[b, 1], r[0])
        r[0] = conj(r[0]) - (1.0 + 2.0j) * r[1]
        total = w.sum(3, lambda k: x[b, k] * conj(x[b, k]))
        y[b, 0] = where(real(r[0]) > imag(r[1]), r[0], -r[1])
        y[b, 1] = total + make_complex(imag(r[0]), real(r[1]))
        y[b, 2] = cast(absolute(r[0]), dtype)
        s[b] = maximum(absolute(x[b, 0]), absolute(r[1]))
        with w.parallel():
            y[b, 1] = y[b, 2]
            y[b, 2] = y[b, 1]

    def make():
        re, im = rng().standard_normal((2, nb, 3))
        t = dtype.value
        return {
            "x": (re + 1j * im).astype(t),
            "y": np.full((nb, 3), 9.0, t),
            "s": np.zeros(nb, dtype.real.value),
        }

    return Example(w.finish(), make, ("y", "s"), scalars(nb))


def flags(nb):
    """Bools and integers in memory, in registers and as values."""
    w = KernelBuilder("flags")
    count, padded = batch_of(w)
    x, ok = w.array("x", F32, (count,)), w.array("ok", DType.BOOL, (count,))
    i32, i64 = w.array("i", DType.INT32, (count,)), w.array("l", DType.INT64, (count,))
    seen = w.register("seen", DType.BOOL)
    with w.weak(padded, "b") as b, w.guard(b < count):
        seen.set(ok[b] | isnan(x[b]))
        i32[b] = absolute(i32[b]) * 3 + cast(seen.get(), DType.INT32)
        i64[b] = where(seen.get() & (b > 2), b * 7 % 5, -l_of(b))
        x[b] = where(ok[b], cast(b, F32), x[b] + cast(i32[b], F32))
        ok[b] = ~seen.get()

    def make():
        values = np.arange(nb, dtype=np.float32)
        values[::3] = np.nan
        return {
            "x": values,
            "ok": np.arange(nb) % 2 == 0,
            "i": np.arange(nb, dtype=np.int32) - 4,
            "l": np.zeros(nb, np.int64),
        }

    return Example(w.finish(), make, ("x", "ok", "i", "l"), scalars(nb))


def staged(nb):
    """Eight matrices side by side in group memory, the matrix index innermost."""
    w = KernelBuilder("staged")
    count, padded = batch_of(w, 8)
    x, y = w.array("x", F64, (count, 4)), w.array("y", F64, (count, 4))
    sh = w.local("sh", F64, (4, 8))
    with w.nest(AxisRole.WEAK, (padded // 8, 8), ("g", "v")) as (g, v):
        item = g * 8 + v
        with w.guard(item < count):
            with w.weak(4, "e") as e:
                sh[e, v] = x[item, e]
            with w.serial(3, "j") as j:
                sh[j + 1, v] = sh[j + 1, v] * 0.5 + sh[j, v]
            with w.weak(4, "f") as f:
                y[item, f] = sh[f, v]

    def make():
        return {"x": rng().standard_normal((nb, 4)), "y": np.full((nb, 4), np.nan)}

    return Example(w.finish(), make, ("y",), scalars(nb, 8))


def l_of(b):
    return b // 2 + 10**12


TAILS = {
    "packed_chol": packed_chol,
    "gated": gated,
    "crossing": crossing,
    "rounds": rounds,
    "complex_mix": complex_mix,
    "complex_mix single": lambda nb: complex_mix(nb, C64),
    "flags": flags,
}
