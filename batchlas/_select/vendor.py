"""The vendor seam: what happens where a vendor library is missing.

Decided here: how a call fails that nothing can serve. Whether a library is there is a
fact of the device (``has_vendor``) and all that a vendor family's ``can_run`` reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from batchlas._runtime.settings import settings
from batchlas._select import coverage
from batchlas.exceptions import NoRouteError

if TYPE_CHECKING:
    from batchlas._runtime.devices import Device
    from batchlas._select.spec import Call, OpSpec


def no_vendor(spec: OpSpec, call: Call, device: Device) -> NoReturn:
    """Record a coverage miss and raise: the vendor arm of an op without its library.

    Raises
    ------
    NoRouteError
        Always; the text names the op, the backend, the dtype and the library.
    """
    coverage.record_miss(spec, call, device)
    raise no_route(spec, call, device)


def no_route(spec: OpSpec, call: Call, device: Device) -> NoRouteError:
    """Return the error for a call that nothing can serve."""
    if device.has_vendor:
        why = f"the vendor library ({spec.library}) cannot serve it either"
    elif settings().no_vendor:
        why = f"BATCHLAS_NO_VENDOR hides the vendor library ({spec.library})"
    else:
        why = f"the vendor library ({spec.library}) is not available"
    return NoRouteError(
        f"{spec.op}: no kernel for {call.dtype} on the {device.kind} backend "
        f"({device.key}), and {why}: {call}"
    )
