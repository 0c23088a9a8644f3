"""Statements of the reference interpreter: each becomes a program of a thread.

A program takes the thread's lanes and is a generator: it yields where threads meet (a
barrier, a vote on going on) and, if runs are to be mixed, after memory stores.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from batchlas._kernels.cells import InterpretError
from batchlas._kernels.ir import (
    Axis,
    AxisRole,
    Barrier,
    Block,
    For,
    If,
    Let,
    MemSpace,
    OpaqueCall,
    ParallelStore,
    Prefetch,
    Repeat,
    Stage,
    Stmt,
    Store,
)

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Generator, Mapping
    from typing import TypeAlias

    from batchlas._kernels.cells import Cells, Index, Lane, Tracker
    from batchlas._kernels.evaluate import Evaluator

    Meeting: TypeAlias = "tuple[str, int, bool]"
    Thread: TypeAlias = Generator[Meeting, bool, None]
    Program: TypeAlias = Callable[[list[Lane]], Thread]
    Write: TypeAlias = tuple[Cells, Index, Any, Lane]

REPEATS_MAX = 10_000  # a loop that goes on longer is taken for an endless one
PAUSE: Meeting = ("pause", 0, False)
_THREADS = frozenset({AxisRole.GLOBAL, AxisRole.WARP, AxisRole.LOCAL})


class Executor:
    """Turns statements into programs."""

    def __init__(
        self,
        values: Evaluator,
        single: Mapping[int, tuple[Axis, ...]],
        rng: random.Random | None,
    ) -> None:
        self.values = values
        self.single = single
        self.pauses = rng is not None
        self.entry = 0

    def block(self, body: Block) -> Program:
        """Return a block as a program."""
        programs = [self.statement(stmt) for stmt in body]

        def program(lanes: list[Lane]) -> Thread:
            for part in programs:
                yield from part(lanes)

        return program

    def statement(self, stmt: Stmt) -> Program:
        maker = _MAKERS.get(type(stmt))
        if maker is None:
            msg = f"{type(stmt).__name__} cannot run"
            raise InterpretError(msg)
        return maker(self, stmt)

    def let(self, stmt: Let) -> Program:
        value, ident = self.values.function(stmt.value), stmt.temp.id

        def program(lanes: list[Lane]) -> Thread:
            for lane in lanes:
                if lane.active:
                    lane.temps[ident] = value(lane)
            yield from ()

        return program

    def writer(self, stmt: Store, owner: Stmt) -> Callable[[list[Lane]], list[Write]]:
        """Return a function that reads all that the store needs, and writes nothing."""
        index = self.values.functions_of(stmt.index)
        value = self.values.function(stmt.value)
        gate = None if stmt.gate is None else self.values.function(stmt.gate)
        alone = [axis.id for axis in self.single.get(id(owner), ())]

        def writes(lanes: list[Lane]) -> list[Write]:
            out: list[Write] = []
            for lane in lanes:
                if not lane.active or any(lane.at[axis] for axis in alone):
                    continue
                if gate is not None and not gate(lane):
                    self.values.probe(value, lane)
                    continue
                place = tuple(fn(lane) for fn in index)
                cells = self.values.cells(stmt.buffer, lane)
                out.append((cells, place, value(lane), lane))
            return out

        return writes

    def store(self, stmt: Store, owner: Stmt | None = None) -> Program:
        return self.parallel((stmt,), owner)

    def parallel_store(self, stmt: ParallelStore) -> Program:
        return self.parallel(stmt.stores)

    def parallel(self, stores: tuple[Store, ...], owner: Stmt | None = None) -> Program:
        writers = [self.writer(stmt, owner or stmt) for stmt in stores]
        tracker = self.values.tracker
        memory = any(stmt.buffer.space is not MemSpace.REGISTER for stmt in stores)

        def program(lanes: list[Lane]) -> Thread:
            for write in [write for writes in writers for write in writes(lanes)]:
                cells, place, value, lane = write
                if tracker is not None:
                    tracker.write(cells, place, value, lane)
                cells.write(place, value)
            if self.pauses and memory:
                yield PAUSE

        return program

    def stage(self, stmt: Stage) -> Program:
        store = self.store(Store(stmt.buffer, stmt.axes, stmt.value), stmt)
        return self.nest(stmt.axes, store)

    def loop(self, stmt: For) -> Program:
        return self.nest(stmt.axes, self.block(stmt.body))

    def nest(self, axes: tuple[Axis, ...], body: Program) -> Program:
        for axis in reversed(axes):
            if axis.role in {AxisRole.UPCAST, AxisRole.VECTOR}:
                body = self.lanes(axis, body)
            elif axis.role not in _THREADS:
                body = self.serial(axis, body)
        return body

    def serial(self, axis: Axis, body: Program) -> Program:
        size, ident = self.values.function(axis.size), axis.id
        weak = axis.role is AxisRole.WEAK

        def program(lanes: list[Lane]) -> Thread:
            count = _agreed([size(lane) for lane in _asked(lanes)], axis.name)
            self.entry += 1
            entry = self.entry
            for step in self.values.order(count) if weak else range(count):
                for lane in lanes:
                    lane.at[ident] = step
                    if weak:
                        lane.steps[ident] = (entry, step)
                yield from body(lanes)
            for lane in lanes:
                lane.steps.pop(ident, None)

        return program

    def lanes(self, axis: Axis, body: Program) -> Program:
        size = self.values.function(axis.size)
        own = axis.role is AxisRole.VECTOR

        def program(lanes: list[Lane]) -> Thread:
            count = _agreed([size(lane) for lane in _asked(lanes)], axis.name)
            self.entry += 1
            wide = [
                lane.fork(axis.id, step, self.entry, own_registers=own)
                for lane in lanes
                for step in range(count)
            ]
            if own:
                for place, lane in enumerate(wide):
                    first = place // count * count
                    lane.mates = wide[first : first + count]
            yield from body(wide)

        return program

    def repeat(self, stmt: Repeat) -> Program:
        body, cond = self.block(stmt.body), self.values.function(stmt.cond)

        def program(lanes: list[Lane]) -> Thread:
            before = [lane.active for lane in lanes]
            for _ in range(REPEATS_MAX):
                yield from body(lanes)
                goes_on = [lane.active and bool(cond(lane)) for lane in lanes]
                _check_lock_step(lanes, goes_on)
                for lane, on in zip(lanes, goes_on, strict=True):
                    lane.active = on
                again = any(goes_on)
                if stmt.uniform:
                    again = yield ("vote", stmt.id, again)
                if not again:
                    break
            else:
                msg = f"repeat {stmt.id} went on {REPEATS_MAX} times"
                raise InterpretError(msg)
            for lane, active in zip(lanes, before, strict=True):
                lane.active = active

        return program

    def guard(self, stmt: If) -> Program:
        body, cond = self.block(stmt.body), self.values.function(stmt.cond)

        def program(lanes: list[Lane]) -> Thread:
            before = [lane.active for lane in lanes]
            for lane in lanes:
                lane.active = lane.active and bool(cond(lane))
            if any(lane.active for lane in lanes):
                yield from body(lanes)
            for lane, active in zip(lanes, before, strict=True):
                lane.active = active

        return program

    def call(self, stmt: OpaqueCall) -> Program:
        fn = self.values.functions[stmt.fn]
        args = self.values.functions_of(stmt.args)

        def program(lanes: list[Lane]) -> Thread:
            for lane in lanes:
                if lane.active:
                    fn(*(arg(lane) for arg in args))
            yield from ()

        return program

    def prefetch(self, _stmt: Prefetch) -> Program:
        def program(_lanes: list[Lane]) -> Thread:
            yield from ()

        return program

    def barrier(self, _stmt: Barrier) -> Program:
        def program(_lanes: list[Lane]) -> Thread:
            yield ("barrier", 0, False)

        return program


_MAKERS: dict[type, Callable[[Executor, Any], Program]] = {
    Let: Executor.let,
    Store: Executor.store,
    ParallelStore: Executor.parallel_store,
    Stage: Executor.stage,
    For: Executor.loop,
    Repeat: Executor.repeat,
    If: Executor.guard,
    OpaqueCall: Executor.call,
    Barrier: Executor.barrier,
    Prefetch: Executor.prefetch,
}


def run_threads(
    threads: list[Thread], tracker: Tracker | None, rng: random.Random | None
) -> None:
    """Run the threads of one group from meeting to meeting until all have ended.

    Raises
    ------
    InterpretError
        If some wait at a meeting that others do not come to.
    """
    answer: bool | None = None
    while threads:
        waiting = _advance(threads, answer, rng)
        meetings = [meeting for meeting in waiting if meeting is not None]
        if not meetings:
            return
        kinds = {meeting[:2] for meeting in meetings}
        if len(meetings) != len(threads) or len(kinds) > 1:
            names = sorted(kind for kind, _ in kinds)
            msg = f"only some threads come to a {' or '.join(names)}"
            raise InterpretError(msg)
        answer = any(flag for _, _, flag in meetings)
        if tracker is not None:
            tracker.phase += 1


def _advance(
    threads: list[Thread], answer: bool | None, rng: random.Random | None
) -> list[Meeting | None]:
    """Run every thread to its next meeting; None stands for its end."""
    waiting: list[Meeting | None] = [None] * len(threads)
    running = list(range(len(threads)))
    fresh = set(running)
    while running:
        place = rng.randrange(len(running)) if rng is not None else 0
        number = running[place]
        try:
            first = number in fresh and answer is not None
            fresh.discard(number)
            meeting = (
                threads[number].send(bool(answer)) if first else next(threads[number])
            )
        except StopIteration:
            running.pop(place)
            continue
        if meeting is not PAUSE:
            waiting[number] = meeting
            running.pop(place)
    return waiting


def _asked(lanes: list[Lane]) -> list[Lane]:
    """Return the lanes that decide on a bound: the active ones, if there are any."""
    return [lane for lane in lanes if lane.active] or lanes


def _agreed(sizes: list[int], name: str) -> int:
    if len(set(sizes)) > 1:
        msg = f"lanes of one thread run axis {name} {sorted(set(sizes))} times"
        raise InterpretError(msg)
    return sizes[0]


def _check_lock_step(lanes: list[Lane], goes_on: list[bool]) -> None:
    """Raise if lanes that share registers do not agree on going on."""
    answers: dict[int, bool] = {}
    for lane, on in zip(lanes, goes_on, strict=True):
        if answers.setdefault(id(lane.regs), on) is not on:
            msg = "lanes that share registers do not agree on repeating"
            raise InterpretError(msg)
