"""One decision: the pin in force, then the walk, remembered for the next same call.

Decided here: what each kind of pin does, and how long a decision stays true. A decision
depends on the op, the call, the device, the pin, the settings and the tables; the memo
is keyed on all of them, so nothing ever has to be invalidated.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from batchlas._runtime.notices import warn_once
from batchlas._runtime.settings import mark_used, settings
from batchlas._select import pins, store
from batchlas._select.families import Family, parse
from batchlas._select.vendor import no_route
from batchlas._select.walk import Decision, Origin, walk
from batchlas.exceptions import PinError, SpellingError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from batchlas._runtime.devices import Device
    from batchlas._runtime.settings import Settings
    from batchlas._select.spec import Call, OpSpec

MEMO_LIMIT = 4096
_memo: dict[tuple[object, ...], Decision] = {}


def decide(spec: OpSpec, call: Call, device: Device) -> Decision:
    """Return the decision for a call, with every step that led to it.

    Raises
    ------
    PinError
        If a pin names what does not exist or cannot run.
    NoRouteError
        If no candidate can run.
    TableError
        If a table that is asked is malformed.
    """
    now = settings()
    pin = pins.scoped_pin(spec.op)
    key = (spec, call, device, pin, now.generation, store.generation())
    decision = _memo.get(key)
    if decision is None:
        mark_used()  # a size query and its call must see one configuration
        decision = _decide(spec, call, device, now)
        if len(_memo) >= MEMO_LIMIT:
            _memo.clear()
        _memo[key] = decision
    return decision


def standing() -> tuple[object, ...] | None:
    """Return what a decision hangs on besides its call and device.

    None while somebody looks on (trace, coverage).
    """
    now = settings()
    if now.select_trace or now.coverage_out is not None:
        return None
    return now.generation, store.generation(), pins.scoped_pins()


def pick(spec: OpSpec, call: Call, device: Device) -> Family:
    """Return the choice that ``run`` would launch for the same call."""
    return decide(spec, call, device).choice


def _decide(spec: OpSpec, call: Call, device: Device, now: Settings) -> Decision:
    pin = pins.scoped_pin(spec.op) or pins.exported_pin(spec.op, now)
    if now.no_vendor and device.has_vendor:
        device = replace(device, has_vendor=False)
    candidates = spec.candidates(call.dtype, device.kind)
    if pin is not None and pin.word not in pins.WORDS:
        choice = _spelled(pin, spec, call, device, candidates)
        return Decision(spec, call, device, choice, Origin.PINNED)
    tables = store.table_store(now)
    if pin is not None and pin.word != pins.AUTO:
        members = [each for each in candidates if _is_in_class(each, pin.word)]
        decision = walk(spec, call, device, members, tables)
        if decision is not None:
            return replace(decision, pin=pin.word)
        _no_member(pin, spec, call, device, candidates)
    decision = walk(spec, call, device, candidates, tables)
    if decision is None:
        raise no_route(spec, call, device)
    return decision


def _is_in_class(choice: Family, word: str) -> bool:
    if word == pins.VENDOR:
        return choice.name == pins.VENDOR
    return not choice.uses_library


def _no_member(
    pin: pins.Pin,
    spec: OpSpec,
    call: Call,
    device: Device,
    candidates: Sequence[Family],
) -> None:
    """Warn, or raise for a strict pin, that a class word has nothing to run."""
    why = f"no {pin.word} candidate can run {spec.op} for {call} on {device.key}"
    if pin.strict:
        _refuse(pin, why, candidates)
    warn_once(
        ("pin", spec.op, device.key, pin.word), f"{pin.where}: {why}; taking auto"
    )


def _spelled(
    pin: pins.Pin,
    spec: OpSpec,
    call: Call,
    device: Device,
    candidates: Sequence[Family],
) -> Family:
    """Return the choice that a pin spells."""
    try:
        choice = parse(pin.word, {type(each): None for each in candidates})
    except SpellingError as error:
        _refuse(pin, str(error), candidates)
    if choice not in candidates:
        why = f"{choice} is no candidate of {spec.op} for {call.dtype} on {device.kind}"
        _refuse(pin, why, candidates)
    if not spec.can_run(choice, call, device):
        _refuse(pin, f"{choice} cannot run {call} on {device.key}", candidates)
    return choice


def _refuse(pin: pins.Pin, why: str, candidates: Sequence[Family]) -> NoReturn:
    valid = dict.fromkeys([*pins.WORDS, *map(str, candidates)])
    message = f"{pin.where}: {why}; valid: {', '.join(valid)}"
    raise PinError(message)
