"""From a call to its result: decide, look on if asked to, launch.

Decided here: what surrounds a launch. With trace and coverage off, nothing does.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, TypeVar

from batchlas._runtime.settings import settings
from batchlas._select.coverage import coverage_scope, record_miss
from batchlas._select.decide import decide
from batchlas._select.trace import trace_scope
from batchlas.exceptions import NoRouteError

if TYPE_CHECKING:
    from collections.abc import Callable

    from batchlas._runtime.devices import Device
    from batchlas._select.family import Family
    from batchlas._select.spec import Call, OpSpec
    from batchlas._select.walk import Decision

Result = TypeVar("Result")


def run(
    spec: OpSpec, call: Call, device: Device, launch: Callable[[Family], Result]
) -> Result:
    """Return what `launch` returns for the choice that this call gets.

    Parameters
    ----------
    spec : OpSpec
        The op.
    call : NamedTuple
        Its keys; sizes are at least 1.
    device : Device
        Where the arrays are.
    launch : callable (choice) -> result
        Runs the choice.

    Raises
    ------
    NoRouteError
        If no candidate can run, or the launch finds its vendor library missing.
    PinError, TableError
        As ``decide`` does.
    """
    try:
        decision = decide(spec, call, device)
    except NoRouteError:
        record_miss(spec, call, device)
        raise
    now = settings()
    if not now.select_trace and now.coverage_out is None:
        return launch(decision.choice)
    return _observed(decision, launch, trace=now.select_trace)


def _observed(
    decision: Decision, launch: Callable[[Family], Result], *, trace: bool
) -> Result:
    with trace_scope(decision) if trace else nullcontext(), coverage_scope(decision):
        return launch(decision.choice)
