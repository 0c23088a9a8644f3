"""Example kernels with threads, work-group memory or registers placed by the author."""

from __future__ import annotations

import numpy as np
from kernel_zoo import F64, WEAK, Example, rng, spd

from batchlas._kernels.build import KernelBuilder
from batchlas._kernels.functions import rsqrt, sqrt, where


def coop_chol(nb=4, n=8, threads=4, *, drop=None):
    """One matrix per work-group: rows go round over the threads of the group.

    `drop` leaves out the barrier of this number, for tests that must find it missing.
    """
    w = KernelBuilder("coop_chol")
    a, l = w.array("a", F64, (nb, n, n)), w.array("l", F64, (nb, n, n))  # noqa: E741
    sh = w.local("sh", F64, (n, n))
    count = iter(range(9))

    def barrier():
        if next(count) != drop:
            w.barrier()

    with w.weak(nb, "b") as b, w.threads(threads, "t") as t:
        with w.weak(n // threads, "r0") as r, w.weak(n, "c0") as c:
            sh[r * threads + t, c] = a[b, r * threads + t, c]
        barrier()
        with w.serial(n, "j") as j:
            sh[j, j] = sqrt(sh[j, j])
            barrier()
            with w.weak(n // threads, "r1") as r:
                i = r * threads + t
                with w.where(i > j):
                    sh[i, j] = sh[i, j] / sh[j, j]
            barrier()
            with w.weak(n // threads, "r2") as r, w.weak(n, "c2") as c:
                i = r * threads + t
                with w.where((c > j) & (c <= i)):
                    sh[i, c] = sh[i, c] - sh[i, j] * sh[c, j]
            barrier()
        with w.weak(n // threads, "r3") as r, w.weak(n, "c3") as c:
            i = r * threads + t
            l[b, i, c] = where(c <= i, sh[i, c], 0.0)

    def make():
        return {"a": spd(nb, n), "l": np.full((nb, n, n), np.nan)}

    return Example(w.finish(), make, ("l",))


def interleaved_solve(nb=8, n=3, width=4):
    """One matrix per thread, kept in group memory with the thread innermost.

    The copy in is by consecutive threads from consecutive addresses.
    """
    w = KernelBuilder("interleaved")
    cells = n * n
    a, y = w.array("a", F64, (nb * cells,)), w.array("y", F64, (nb, n))
    sh = w.local("sh", F64, (cells, width))
    with w.weak(nb // width, "g") as g, w.threads(width, "t") as t:
        with w.weak(cells, "e") as e:
            flat = e * width + t
            sh[flat % cells, flat // cells] = a[g * (width * cells) + flat]
        w.barrier()
        with w.serial(n, "i") as i:
            dot = w.sum(i, lambda k: sh[i * n + k, t] * y[g * width + t, k])
            y[g * width + t, i] = (y[g * width + t, i] - dot) / sh[i * (n + 1), t]

    def make():
        lower = np.tril(spd(nb, n))
        return {"a": lower.reshape(-1), "y": rng().standard_normal((nb, n))}

    return Example(w.finish(), make, ("y",))


def register_chol(n=3, nb=8):
    """Right-looking, the matrix in registers, the batch padded and guarded."""
    w = KernelBuilder("register_chol")
    count, padded = w.scalar("nb"), w.scalar("nb_padded", multiple_of=8)
    a = w.array("a", F64, (count, n, n))
    l = w.array("l", F64, (count, n, n))  # noqa: E741
    r = w.register("r", F64, (n, n))
    with w.weak(padded, "b") as b, w.guard(b < count):
        with w.weak(n, "i0") as i, w.weak(n, "c0") as c:
            r[i, c] = a[b, i, c]
        with w.serial(n, "j") as j:
            root = w.let(rsqrt(r[j, j]), "root")
            with w.weak(n, "i1") as i, w.where(i >= j):
                r[i, j] = r[i, j] * root
            pair = w.nest(WEAK, (n, n), ("i2", "c2"))
            with pair as (i, c), w.where((c > j) & (c <= i)):
                r[i, c] = r[i, c] - r[i, j] * r[c, j]
        with w.weak(n, "i3") as i, w.weak(n, "c3") as c:
            l[b, i, c] = where(c <= i, r[i, c], 0.0)

    def make():
        return {"a": spd(nb, n), "l": np.full((nb, n, n), np.nan)}

    scalars = {"nb": nb, "nb_padded": -(-nb // 8) * 8}
    return Example(w.finish(), make, ("l",), scalars)
