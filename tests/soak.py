"""Change ops, shapes, dtypes and batches for a long time, check all, watch the memory.

``python tests/soak.py --minutes 10``. Several threads call batchlas at once, on NumPy
arrays and on dpnp arrays where dpnp is installed. Every matrix of every result is
checked. It exits with 1 for the first wrong result, and if at the end the process holds
more memory than after its first minute.

What is asked is drawn first and asked once before the clock starts: a kernel stays
compiled for the life of the process, which is no leak.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import random
import sys
import threading
import time
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from candidates import all_candidates
from checks import assert_all_nan
from libraries import DPNP, NUMPY

import batchlas
from batchlas._ops import SPECS
from batchlas._runtime import reuse
from batchlas._runtime.sycl import in_turn

if TYPE_CHECKING:
    from calls import Call
    from candidates import Candidate

ORDERS = (1, 2, 3, 4, 5, 8, 12, 16, 32, 33, 48)
BATCHES = (1, 2, 7, 8, 31, 100, 1000, 5000)
MOST_ELEMENTS = 60_000
PAGE_BYTES = 4096
# What allocators may keep between two levels of the same use: each thread has a heap
# of its own, and which sizes lie free in it is chance. A leak of 300 bytes a call would
# show within ten minutes.
TOLERANCE_BYTES = 24 * 2**20


@dataclass(frozen=True, slots=True)
class Question:
    """A call on a stack of some shape, by a pin or by the tables."""

    candidate: Candidate
    call: Call
    shape: tuple[int, int]
    batch: int
    is_pinned: bool

    def __str__(self):
        who = self.candidate if self.is_pinned else f"auto for {self.candidate}"
        return f"{who} {self.call} on {self.batch} of {self.shape}"

    def answer(self, array):
        """Return the results on the host; dpnp's own copies take turns with calls."""
        pin = self.candidate.pinned() if self.is_pinned else nullcontext()
        with pin, batchlas.errstate(linalg="nan"):
            return self.candidate.library.answers(self.call, array)


def drawn(count, seed):
    """Return different questions, as many of each op."""
    chance = random.Random(seed)
    candidates = all_candidates([NUMPY, DPNP])
    found = {}
    while len(found) < count:
        spec = SPECS[len(found) % len(SPECS)]
        candidate = chance.choice([each for each in candidates if each.spec is spec])
        call = chance.choice(candidate.calls)
        shape = chance.choice(candidate.problem.shapes)(chance.choice(ORDERS))
        most = max(1, MOST_ELEMENTS // (shape[0] * shape[1]))
        batch = chance.choice([each for each in BATCHES if each <= most])
        question = Question(candidate, call, shape, batch, chance.random() < 0.7)
        if not question.is_pinned or candidate.can_run(call, shape, batch):
            found[str(question)] = question
    return list(found.values())


@dataclass(slots=True)
class Report:
    """What the threads have done so far."""

    calls: int = 0
    matrices: int = 0
    failed_on_purpose: int = 0
    levels: list[tuple[float, int]] = field(default_factory=list)
    error: BaseException | None = None
    question: Question | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


def held_bytes():
    """Return the resident memory after all that can be given back is; 0 if unknown."""
    with reuse._pool._lock:
        reuse._pool._blocks.clear()
    usm = sys.modules.get("batchlas._runtime.usm")
    if usm is not None:
        with in_turn:  # memory is freed
            usm._pool.blocks.clear()
    gc.collect()
    statm = Path("/proc/self/statm")
    if not statm.exists():
        return 0
    ctypes.CDLL(None).malloc_trim(0)
    return int(statm.read_text(encoding="ascii").split()[1]) * PAGE_BYTES


def views(a, chance):
    """Return the stack in one of several layouts."""
    layout = chance.randrange(4)
    if layout == 0:
        whole = np.full((len(a), a.shape[1] + 1, a.shape[2] + 3), -999, a.dtype)
        whole[:, 1:, 2:-1] = a
        return whole[:, 1:, 2:-1]
    if layout == 1:
        return np.ascontiguousarray(a.swapaxes(-1, -2)).swapaxes(-1, -2)
    if layout == 2:
        return a[::-1].copy()[::-1]
    return a


def ask(question, chance, report):
    """Make a call and check every matrix of its results."""
    candidate, batch = question.candidate, question.batch
    a = candidate.stack(question.shape, batch=batch)
    good = np.ones(batch, bool)
    if chance.random() < 0.1:
        bad = chance.randrange(batch)
        a[bad, 0, 0] = np.nan
        good[bad] = False
    found = question.answer(views(a, chance))
    for each in found:
        if not good.all():
            assert_all_nan(each[~good])
    if good.any():
        gate = 256  # whichever family runs without a pin, one by rotations too
        results = tuple(each[good] for each in found)
        candidate.problem.check(question.call, a[good], results, gate)
    with report.lock:
        report.calls += 1
        report.matrices += batch
        report.failed_on_purpose += not good.all()


def work(questions, seed, deadline, report):
    chance = random.Random(seed)
    while time.monotonic() < deadline and report.error is None:
        question = chance.choice(questions)
        try:
            ask(question, chance, report)
        except BaseException as error:  # noqa: BLE001 - whatever it is ends the soak
            report.error, report.question = error, question


def soak(questions, seconds, threads, *, say=lambda _text: None):
    """Ask for some seconds and return the report; its levels are (second, bytes)."""
    report = Report()
    start = time.monotonic()
    workers = [
        threading.Thread(target=work, args=(questions, i, start + seconds, report))
        for i in range(threads)
    ]
    for each in workers:
        each.start()
    while any(each.is_alive() for each in workers):
        workers[0].join(timeout=min(60.0, seconds / 10))
        level = time.monotonic() - start, held_bytes()
        report.levels.append(level)
        say(
            f"{level[0]:6.0f} s  {report.calls:8d} calls  {report.matrices:10d} "
            f"matrices  {level[1] / 2**20:8.1f} MiB"
        )
    if report.error is not None:
        message = f"{report.question}: {report.error}"
        raise RuntimeError(message) from report.error
    return report


def growth(report, settled_after):
    """Return how many bytes more are held at the end than after some seconds."""
    settled = next(held for at, held in report.levels if at >= settled_after)
    return report.levels[-1][1] - settled


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--questions", type=int, default=120)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    questions = drawn(asked.questions, asked.seed)
    for question in questions:
        ask(question, random.Random(0), Report())
    print(f"{len(questions)} different calls are warm")
    report = soak(questions, 60 * asked.minutes, asked.threads, say=print)
    grown = growth(report, min(60.0, 6 * asked.minutes))
    print(
        f"{report.calls} calls, {report.matrices} matrices, all right, "
        f"{report.failed_on_purpose} stacks with a bad one; memory "
        f"{grown / 2**20:+.1f} MiB since the first minute, "
        f"{TOLERANCE_BYTES / 2**20:.0f} MiB allowed"
    )
    return 1 if grown > TOLERANCE_BYTES else 0


if __name__ == "__main__":
    sys.exit(main())
