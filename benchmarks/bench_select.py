"""What a warm decision costs, apart from the kernel it launches.

Prints median microseconds per call over repeats; the aim is less than 5 for ``run``
with trace and coverage off.
"""

from __future__ import annotations

import statistics
import timeit
from typing import TYPE_CHECKING, NamedTuple

from batchlas._runtime.devices import Device
from batchlas._select import OpSpec, ScopedPin, all_of, decide, family, pick, run
from batchlas._select.testing import set_builtin_tables

if TYPE_CHECKING:
    from collections.abc import Callable

CALLS, REPEATS = 5_000, 15

TABLE = """\
# op=potrf device=cpu_avx512
# keys: dtype:exact uplo:exact n:log:3 batch:log
dtype=float64 uplo=L n=8 batch=1024 | tiny 0.0123 | vendor 0.0456
"""


class Call(NamedTuple):
    """What selection knows of a call."""

    dtype: str
    uplo: str
    n: int
    batch: int


Tiny, Vendor = family("tiny"), family("vendor", uses_library=True)
SPEC = OpSpec(
    op="potrf",
    library="lapack",
    keys=Call._fields,
    candidates=lambda _dtype, _kind: all_of(Tiny, Vendor),
    can_run=lambda _choice, call, _device: call.n > 0,
)
DEVICE = Device(
    key="cpu_avx512",
    family="cpu",
    arch=30,
    kind="numpy",
    is_gpu=False,
    local_mem_bytes=262_144,
    max_work_group=8192,
    has_fp64=True,
    has_vendor=True,
    name="a processor",
)


def launch(choice: object) -> object:
    """Stand in for a kernel."""
    return choice


def microseconds(function: Callable[[], object]) -> float:
    """Return the median time of one call."""
    times = timeit.repeat(function, number=CALLS, repeat=REPEATS)
    return 1e6 * statistics.median(times) / CALLS


def main() -> None:
    """Print one line per way into selection."""
    set_builtin_tables({"potrf.cpu_avx512.txt": TABLE})
    call = Call("float64", "L", 8, 1024)

    def call_run() -> object:
        # A fresh call record each time, as an op makes it.
        return run(SPEC, Call("float64", "L", 8, 1024), DEVICE, launch)

    print(f"launch alone      {microseconds(lambda: launch(None)):6.3f} us")
    print(f"pick              {microseconds(lambda: pick(SPEC, call, DEVICE)):6.3f} us")
    print(
        f"decide            {microseconds(lambda: decide(SPEC, call, DEVICE)):6.3f} us"
    )
    print(f"run               {microseconds(call_run):6.3f} us")
    with ScopedPin("potrf", "vendor"):
        print(f"run, scoped pin   {microseconds(call_run):6.3f} us")
    sizes = iter(range(1, 10**9))

    def cold() -> object:
        return pick(SPEC, Call("float64", "L", 8, next(sizes)), DEVICE)

    print(f"pick, new call    {microseconds(cold):6.3f} us")


if __name__ == "__main__":
    main()
