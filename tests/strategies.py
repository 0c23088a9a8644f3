"""What fuzzing feeds to the public functions: stacks of every kind, and options.

A draw is small: shapes, a seed, and words for what is done to the matrices. Values come
from the seed, so that hypothesis has little to choose and much to shrink.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

COMPUTED = ("float32", "float64", "complex64", "complex128")
CONVERTED = ("bool", "int8", "int32", "int64", "uint8", "uint64")
SWAPPED = (">f4", ">f8", ">c8", ">c16")
REFUSED = ("float16", "longdouble", "object", "U3", "M8[s]")

SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, -1.0, "max", "tiny", "subnormal")


def _random(rng, shape, is_complex):
    a = rng.standard_normal(shape)
    return a + 1j * rng.standard_normal(shape) if is_complex else a


def _square_part(a):
    return a[..., : min(a.shape[-2:]), : min(a.shape[-2:])]


def _definite(a):
    n = min(a.shape[-2:])
    part = _square_part(a)
    part[...] = part @ part.conj().swapaxes(-1, -2) + 0.1 * n * np.eye(n)
    return a


def _hermitian(a):
    part = _square_part(a)
    part[...] = part + part.conj().swapaxes(-1, -2)
    return a


def _rank_one(a):
    return a[..., :, :1] * a[..., :1, :]


def _singular(a):
    if a.shape[-1] > 1:
        a[..., -1] = a[..., 0]
    return a


def _graded(a):
    steps = np.geomspace(1, 1e-12, max(a.shape[-2:], default=1) or 1)
    return a * steps[: a.shape[-2], None] * steps[: a.shape[-1]]


MATRICES = {
    "random": lambda a: a,
    "definite": _definite,
    "hermitian": _hermitian,
    "zero": np.zeros_like,
    "identity": lambda a: np.zeros_like(a) + np.eye(*a.shape[-2:]),
    "rank-one": _rank_one,
    "singular": _singular,
    "graded": _graded,
    "integers": lambda a: np.round(3 * a),
}
SCALES = {"unit": 1.0, "huge": 2.0**-12, "tiny": 2.0**32, "subnormal": 2.0**-3}


def _unaligned(a):
    memory = np.empty(a.nbytes + 1, np.uint8)
    view = memory[1:].view(a.dtype).reshape(a.shape)
    view[...] = a
    return view


def _spread(a, step):
    axes = [n * abs(step) for n in a.shape]
    whole = np.full(axes, 99, a.dtype)
    view = whole[tuple(slice(None, None, step) for _ in axes)]
    view[...] = a
    return view


LAYOUTS = {
    "C": lambda a: a,
    "F": np.asfortranarray,
    "spread": lambda a: _spread(a, 2),
    "negative": lambda a: _spread(a, -3),
    "reversed": lambda a: a[..., ::-1, ::-1],
    "transposed": lambda a: np.ascontiguousarray(a.swapaxes(-1, -2)).swapaxes(-1, -2),
    "broadcast": lambda a: np.broadcast_to(a, (3, *a.shape)),
    "unaligned": _unaligned,
    "moved": lambda a: np.moveaxis(np.moveaxis(a, 0, -1).copy(), -1, 0),
}


@dataclass(frozen=True, slots=True)
class Sample:
    """One drawn argument, in words that a failure prints."""

    shape: tuple[int, ...]
    dtype: str
    matrix: str
    scale: str
    layout: str
    read_only: bool
    seed: int
    specials: tuple[tuple[int, Any], ...] = field(default=())

    def array(self):
        """Return the array itself, built anew each time."""
        if len(self.shape) < 2 or self.dtype in REFUSED:
            return np.ones(self.shape).astype(self.dtype)
        dtype = np.dtype(self.dtype)
        rng = np.random.default_rng(self.seed)
        a = MATRICES[self.matrix](_random(rng, self.shape, dtype.kind == "c"))
        if dtype.kind in "biu":
            a = np.abs(np.round(4 * a)).clip(0, 100)
        else:
            a = self._scaled(a, np.finfo(dtype))
        a = np.ascontiguousarray(a.astype(dtype))
        if dtype.kind in "fc" and a.size:
            for place, value in self.specials:
                a.reshape(-1)[place % a.size] = _special(value, dtype)
        a = LAYOUTS[self.layout](a)
        if self.read_only:
            a = a.view()
            a.flags.writeable = False
        return a

    def _scaled(self, a, limits):
        base = {"huge": limits.max, "tiny": limits.tiny, "subnormal": limits.tiny}
        largest = np.abs(a).max(initial=0) or 1.0
        scale = SCALES[self.scale] * float(base.get(self.scale, 1.0))
        return a / largest * scale if self.scale != "unit" else a


def _special(value, dtype):
    limits = np.finfo(dtype)
    words = {
        "max": limits.max,
        "tiny": limits.tiny,
        "subnormal": limits.smallest_subnormal,
    }
    return words.get(value, value)


def samples(orders, *, rectangles):
    """Return a strategy of samples whose matrices are of some orders."""
    order = st.sampled_from(orders)
    square = order.map(lambda n: (n, n))
    pairs = st.tuples(order, order)
    matrix = st.one_of(square, pairs) if rectangles else square
    batch = st.lists(st.sampled_from([2, 3, 1, 7, 2, 3, 0]), max_size=3).map(tuple)
    shape = st.one_of(
        st.tuples(batch, matrix).map(lambda parts: (*parts[0], *parts[1])),
        st.tuples(st.sampled_from([(), (4,), (17,)]), square).map(
            lambda parts: (*parts[0], *parts[1])
        ),
    )
    odd_shape = st.one_of(
        st.just(()), st.sampled_from([(0,), (3,)]), pairs, st.just((2, 3, 4))
    )
    special = st.tuples(st.integers(0, 500), st.sampled_from(SPECIAL))
    specials = st.one_of(
        st.just(()), st.lists(special, min_size=1, max_size=3).map(tuple)
    )
    dtype = st.sampled_from(3 * COMPUTED + CONVERTED + SWAPPED)
    common = {
        "matrix": st.sampled_from(tuple(MATRICES)),
        "scale": st.sampled_from(("unit", "unit", *SCALES)),
        "layout": st.sampled_from(tuple(LAYOUTS)),
        "read_only": st.booleans(),
        "seed": st.integers(0, 999),
        "specials": specials,
    }
    good = st.builds(Sample, shape=shape, dtype=dtype, **common)
    odd = st.one_of(
        st.builds(Sample, shape=odd_shape, dtype=dtype, **common),
        st.builds(Sample, shape=shape, dtype=st.sampled_from(REFUSED), **common),
    )
    return st.integers(0, 9).flatmap(lambda ten: odd if ten == 9 else good)
