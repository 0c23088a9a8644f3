"""An op, a device and a clock that tests of the tuner rule: nothing real is timed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from batchlas import _select as select
from batchlas._select.absent import absent_device
from batchlas._select.testing import set_builtin_tables
from batchlas.tune import problems, tables, timing
from batchlas.tune.grid import Cell
from batchlas.tune.targets import Target

if TYPE_CHECKING:
    from batchlas._runtime.devices import Device

HOST: Device = replace(absent_device("cpu_avx512", "numpy"), name="of a test")
TARGET = Target(HOST, np.asarray, lambda _a: None)


class FakeCall(NamedTuple):
    dtype: str
    array: str
    uplo: str
    n: int
    batch: int


@dataclass(frozen=True, slots=True)
class Lane(select.Family):
    name: ClassVar[str] = "lane"
    width: int


Vendor = select.family("vendor", uses_library=True)
Broken = select.family("broken")
Wrong = select.family("wrong")
CHOICES = (Lane(4), Lane(8), Broken(), Wrong(), Vendor())

SPEC = select.OpSpec(
    op="potrf",
    library="lapack",
    keys=FakeCall._fields,
    candidates=lambda _dtype, _kind: CHOICES,
    can_run=lambda choice, _call, _device: choice != Broken(),
    last_resort=("vendor",),
)


class FakeProblem:
    """Runs a choice by sleeping as long as `cost` says, on a clock of its own."""

    call = FakeCall
    options = ("L",)

    def __init__(self, cost):
        self.cost = cost
        self.now = 0.0
        self.runs = []

    def make(self, call, _rng):
        return np.zeros((call.batch, 1))

    def run(self, call, a):
        """Take the time that the pinned choice costs for this part of the stack."""
        choice = select.decide(SPEC, call, HOST).choice
        self.runs.append((str(choice), len(a)))
        self.now += self.cost(choice, call._replace(batch=len(a))) / 1e3
        return (choice,)

    def error(self, _call, _a, results):
        return np.nan if results == ["wrong"] else 0.0


def install(monkeypatch, cost):
    """Let the tuner see the fake problem and its clock; return the problem."""
    problem = FakeProblem(cost)
    monkeypatch.setitem(problems.PROBLEMS, "potrf", problem)
    monkeypatch.setattr(timing.time, "perf_counter", lambda: problem.now)
    monkeypatch.setattr(
        timing, "checkable", lambda _target, choice: str(choice).partition(":")[0]
    )
    monkeypatch.setattr(tables, "specs", lambda: (SPEC,))
    set_builtin_tables({})
    return problem


def cell(n=8, batch=64, level=0):
    return Cell(SPEC, TARGET, FakeCall("float64", "numpy", "L", n, batch), level)


def by_work(choice, call):
    """Return milliseconds: lanes start slowly and run fast."""
    work = call.n**2 * call.batch
    each, start = {
        "vendor": (1e-4, 0.01),
        "lane:width=4": (2e-5, 0.05),
        "lane:width=8": (1.9e-5, 0.06),
        "wrong": (1e-6, 0.0),
    }[str(choice)]
    return start + each * work
