"""What a benchmark found out: rows of times, as a table and as CSV."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

OURS = "batchlas"
PEERS = ("numpy", "dpnp", "cupy", "torch", "jax")
ABSENT = "absent"
_FIELDS = (
    "function",
    "dtype",
    "shape",
    "n",
    "batch",
    "device",
    "array",
    "side",
    "what",
    "ms",
    "least_ms",
    "us_per_matrix",
    "times_faster",
    "floor_ms",
)


@dataclass(frozen=True, slots=True)
class Row:
    """One side of a comparison.

    Attributes
    ----------
    side : str
        batchlas or a peer.
    what : str
        What ran: our choice, the thread count that was better, or why nothing did.
    ms, least_ms : float or None
        Median and minimum of a call on the whole stack; None without a result.
    """

    side: str
    what: str
    ms: float | None = None
    least_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """A comparison at one shape; print it.

    Attributes
    ----------
    function, dtype : str
    shape : tuple of int
    device, array : str
        The key of the device and the kind of arrays that batchlas was given.
    rows : tuple of Row
        batchlas first.
    floor_ms : float
        Reading the input and writing the results once, by copying.
    """

    function: str
    dtype: str
    shape: tuple[int, ...]
    device: str
    array: str
    rows: tuple[Row, ...]
    floor_ms: float

    @property
    def batch(self) -> int:
        """Matrices in the stack."""
        return prod(self.shape[:-2])

    @property
    def ours(self) -> Row:
        """What batchlas did."""
        return self.rows[0]

    @property
    def best_peer(self) -> Row | None:
        """Return the fastest peer with a right result, None without one."""
        timed = [row for row in self.rows[1:] if row.ms is not None]
        return min(timed, key=lambda row: row.ms or 0.0, default=None)

    def times_faster(self, peer: Row) -> float | None:
        """Return a peer's time in units of ours, None if either has none."""
        if peer.ms is None or self.ours.ms is None:
            return None
        return peer.ms / self.ours.ms

    def per_matrix_us(self, ms: float) -> float:
        """Return microseconds per matrix."""
        return 1e3 * ms / self.batch

    @property
    def title(self) -> str:
        """What was compared, on one line."""
        sizes = "x".join(map(str, self.shape))
        return f"{self.function} {sizes} {self.dtype}, {self.array} on {self.device}"

    def __str__(self) -> str:
        return "\n".join([self.title, *(f"  {line}" for line, _ in self.lines())])

    def lines(self) -> Iterator[tuple[str, bool | None]]:
        """Yield the table's lines, each with whether we win it, None if it says not."""
        absent = [row.side for row in self.rows if row.what == ABSENT]
        for row in self.rows:
            if row.ms is not None:
                ratio = self.times_faster(row) if row is not self.ours else None
                won = None if ratio is None else ratio >= 1
                faster = "" if ratio is None else f"{ratio:.2f}x"
                numbers = f"{self._times(row.ms)} {faster:>9}"
                yield f"{row.side:<12} {numbers}  {row.what}".rstrip(), won
            elif row.what != ABSENT:
                yield f"{row.side:<12} {row.what}", None
        yield f"{'floor':<12} {self._times(self.floor_ms)}", None
        if absent:
            yield f"{ABSENT:<12} {', '.join(absent)}", None

    def _times(self, ms: float) -> str:
        return f"{ms:>10.4g} ms {self.per_matrix_us(ms):>10.4g} us/matrix"

    def to_csv(self, path: Path | str) -> None:
        """Write the rows as a CSV file with a header."""
        write_csv([self], path)


def write_csv(results: Iterable[Result], path: Path | str) -> None:
    """Write the rows of several results as one CSV file."""
    with open(path, "w", encoding="utf-8", newline="") as file:  # noqa: PTH123 - str too
        writer = csv.DictWriter(file, _FIELDS)
        writer.writeheader()
        for result in results:
            writer.writerows(_record(result, row) for row in result.rows)


def _record(result: Result, row: Row) -> dict[str, object]:
    timed = row.ms is not None
    return {
        "function": result.function,
        "dtype": result.dtype,
        "shape": "x".join(map(str, result.shape)),
        "n": result.shape[-1],
        "batch": result.batch,
        "device": result.device,
        "array": result.array,
        "side": row.side,
        "what": row.what,
        "ms": _short(row.ms),
        "least_ms": _short(row.least_ms),
        "us_per_matrix": _short(result.per_matrix_us(row.ms or 0)) if timed else "",
        "times_faster": _short(result.times_faster(row)),
        "floor_ms": _short(result.floor_ms),
    }


def _short(value: float | None) -> str:
    return "" if value is None else f"{value:.5g}"


def geometric_mean(values: Sequence[float]) -> float:
    """Return the geometric mean of ratios."""
    return float(prod(values) ** (1 / len(values)))
