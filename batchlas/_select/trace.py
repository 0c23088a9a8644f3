"""The trace: one line on stderr per decision, indented under the op that asked.

Decided here: the text of that line::

    batchlas: potrf float64 uplo=L n=8 batch=1024 -> tiny (0.0123 ms, next ...) [sm_90]
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from batchlas._runtime.settings import settings
from batchlas._runtime.state import process_wide
from batchlas._select.store import Place
from batchlas._select.walk import Decision, Origin

if TYPE_CHECKING:
    from collections.abc import Iterator

# Two choices within this ratio count as equally fast, here as in the tuner's ranking.
TIE_RATIO = 1.03

_depth: ContextVar[int] = process_wide(
    "trace_depth", lambda: ContextVar("batchlas_trace_depth", default=0)
)


@contextmanager
def trace_scope(decision: Decision) -> Iterator[None]:
    """Print a decision's line and indent those of the ops that run inside."""
    depth = _depth.get()
    sys.stderr.write(f"batchlas: {'  ' * depth}{line_of(decision)}\n")
    token = _depth.set(depth + 1)
    try:
        yield
    finally:
        _depth.reset(token)


def note(fact: object) -> None:
    """Print a further fact about the decision that runs, if decisions are printed."""
    if settings().select_trace:
        sys.stderr.write(f"batchlas: {'  ' * _depth.get()}by {fact}\n")


def line_of(decision: Decision) -> str:
    """Return the trace line of a decision, without prefix and indentation."""
    spec, call = decision.spec, decision.call
    values = call._asdict()
    keys = [f"{key}={values[key]}" for key in spec.keys if key != "dtype"]
    words = [spec.op, call.dtype, *keys, "->", str(decision.choice)]
    words += [*_detail(decision), f"[{tag_of(decision)}]"]
    return " ".join(words)


def tag_of(decision: Decision) -> str:
    """Return what a decision rests on, as the trace says it."""
    tuned, me = decision.table, decision.device.key
    if tuned is None:
        tag = decision.origin.value
    else:
        shipped = tuned.place is Place.SHIPPED
        prefix = "" if shipped else f"{tuned.place.value} "
        owner = f"{prefix}{tuned.table.device}"
        tag = {
            Origin.OWN: owner,
            Origin.BORROWED: f"{owner} table, borrowed for {me}",
            Origin.FALLTHROUGH: f"{owner} table, fallthrough from {me}",
        }[decision.origin]
    return f"{tag}, pinned {decision.pin}" if decision.pin else tag


def _detail(decision: Decision) -> list[str]:
    """Return the time and the runner-up in brackets, nothing without a table row."""
    chosen, next_best = decision.chosen, decision.runner_up
    if chosen is None or decision.table is None:
        return []
    if chosen.ms is None:
        return ["(transcribed)"]
    detail = format_ms(chosen.ms)
    if next_best is not None and next_best.ms is not None:
        ratio = next_best.ms / chosen.ms
        if 1 / TIE_RATIO <= ratio <= TIE_RATIO:
            detail += f", tied with {next_best.choice} ({100 * (ratio - 1):+.1f}%)"
        else:
            detail += f", next {next_best.choice} {format_ms(next_best.ms)}"
    return [f"({detail})"]


def format_ms(ms: float) -> str:
    """Return a time with 3 significant digits below 1 ms and 2 decimals above."""
    exponent = int(f"{ms:.2e}".partition("e")[2])
    return f"{ms:.{2 if exponent >= 0 else 2 - exponent}f} ms"
