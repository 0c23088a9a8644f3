"""The families that every op has: a library's routine, whole or in threads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from batchlas import _select as select

if TYPE_CHECKING:
    from batchlas._runtime.devices import Device

Threads = select.family("threads", uses_library=True)
Vendor = select.family("vendor", uses_library=True)


def library_families(_dtype: str, kind: str) -> tuple[select.Family, ...]:
    """Return the library's families for arrays of `kind`; the simpler one first."""
    return (Vendor(), Threads()) if kind == "numpy" else (Vendor(),)


def can_run_library(choice: select.Family, _call: object, device: Device) -> bool:
    """Whether a library family can serve a call: its library must be there."""
    return device.has_vendor and isinstance(choice, (Vendor, Threads))
