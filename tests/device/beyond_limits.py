"""Launch every candidate of an op where `can_run` refuses it, and print what happens.

A program, run by ``test_candidates.py``: a driver that does not check what it is given
may end the process. One line of JSON per launch: the candidate, the shape, and the
outcome, which is "raised", "wrong" or "right".
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from candidates import all_candidates

from batchlas._runtime.settings import reload_settings


def outcome(candidate, call, shape):
    a = candidate.stack(shape, batch=3)
    try:
        found = candidate.run(call, a)
    except ValueError as error:
        return f"raised {error}"
    try:
        candidate.check(call, a, found)
    except AssertionError:
        return "wrong"
    return "right"


def refused_shapes(candidate, call):
    """Return the refused neighbour of every limit."""
    for shape_of in candidate.problem.shapes:
        for n in candidate.edges(call, shape_of):
            yield from (
                shape
                for shape in (shape_of(n), shape_of(n + 1))
                if not candidate.can_run(call, shape)
            )


def launches(op):
    """Yield one launch per candidate and shape, of the first call that is refused."""
    for candidate in all_candidates():
        if candidate.spec.op != op or candidate.choice.uses_library:
            continue
        shapes = {}
        for call in candidate.calls:
            for shape in refused_shapes(candidate, call):
                shapes.setdefault(shape, call)
        yield from ((candidate, call, shape) for shape, call in shapes.items())


def without_can_run(spec):
    """Let everything run; decisions made before are forgotten."""
    object.__setattr__(spec, "can_run", lambda *_question: True)
    reload_settings()


def main():
    planned = list(launches(sys.argv[1]))
    for spec in {each.spec for each, _, _ in planned}:
        without_can_run(spec)
    for candidate, call, shape in planned:
        line = {"candidate": str(candidate), "call": str(call), "shape": shape}
        sys.stderr.write(f"{line}\n")
        sys.stdout.write(
            json.dumps({**line, "outcome": outcome(candidate, call, shape)})
        )
        sys.stdout.write("\n")
        sys.stdout.flush()


main()
