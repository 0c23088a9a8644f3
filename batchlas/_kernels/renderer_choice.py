"""Which renderer prints a kernel for arrays on SYCL devices.

Decided here, for `can_run`, the launch, the trace and the doctor alike: numba-dpex on
dpnp arrays where it works, OpenCL C elsewhere; BATCHLAS_SYCL_RENDERER asks for one of
the two, and where that one is not to be had the other one runs and says so.
"""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from batchlas._runtime.settings import settings

if TYPE_CHECKING:
    from batchlas._runtime.devices import Device

OPENCL = "opencl"
DPEX = "dpex"


@dataclass(frozen=True, slots=True)
class Choice:
    """A renderer, and why it is not the one that comes first; empty if it is."""

    renderer: str
    reason: str = ""

    @property
    def is_noteworthy(self) -> bool:
        """Whether the trace names it: OpenCL C where it comes first goes unsaid."""
        return bool(self.reason) or self.renderer != OPENCL

    def __str__(self) -> str:
        """Return the choice as the trace and the doctor say it."""
        return f"{self.renderer}: {self.reason}" if self.reason else self.renderer


def renderer_for(device: Device, reluctant: str = "") -> Choice | None:
    """Return the renderer for kernels on a device's arrays; None if it has none.

    `reluctant` is why numba-dpex, unless it is asked for, prints these kernels only
    where OpenCL C does not run.
    """
    return _choose(device, settings().sycl_renderer, reluctant)


@lru_cache(maxsize=64)
def _choose(device: Device, asked: str, reluctant: str = "") -> Choice | None:
    first = asked
    if asked == "auto":
        first = DPEX if device.kind == "dpnp" else OPENCL
    other = OPENCL if first == DPEX else DPEX
    missing = _MISSING[first](device)
    if not missing and first == DPEX and asked == "auto" and not _no_opencl(device):
        missing = reluctant
    if not missing:
        return Choice(first)
    if _MISSING[other](device):
        return None
    return Choice(other, f"not {first}, {missing}")


def _no_opencl(device: Device) -> str:
    """Return why OpenCL C kernels do not run on a device, empty if they do."""
    if not device.max_work_group:
        return "the device takes no kernels"
    return "" if device.family == "cpu" else "its kernels need a CPU device"


def _no_dpex(device: Device) -> str:
    """Return why numba-dpex kernels do not run on a device, empty if they do."""
    if device.kind != "dpnp":
        return "it takes dpnp arrays only"
    return _broken_dpex()


@cache
def _broken_dpex() -> str:
    """Return why numba-dpex cannot be imported, empty if it can; imports it."""
    if importlib.util.find_spec("numba_dpex") is None:
        return "numba-dpex is not installed"
    try:
        importlib.import_module("numba_dpex")
    except Exception as error:  # noqa: BLE001 - a broken install breaks in its own way
        return f"numba-dpex cannot be imported: {type(error).__name__}: {error}"
    return ""


_MISSING = {OPENCL: _no_opencl, DPEX: _no_dpex}
