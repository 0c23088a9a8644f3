"""The status of every matrix: what it says, and the caller's array that receives it.

One int32 per matrix, on the device of the stack. 0 is good; a positive number says what
failed, as LAPACK does (the order of a minor, or 1 where nothing is counted); none is
negative, and a library's own negative status, a wrong argument, counts as a failure.

Each op writes the status of a matrix once, and that of a nested op passes through it
unchanged, so no launch can wipe out what another one has reported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from batchlas._backends import Backend


def from_flags(failed: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Return the status of matrices of which is known only whether they failed."""
    return failed.astype(np.int32)


def check_receiver(backend: Backend, a: Any, info: Any) -> None:
    """Refuse an array that cannot receive the status of `a`, before anything runs.

    Raises
    ------
    ValueError
        For another dtype, shape or device, memory that cannot be written, and memory
        that it shares with `a` or between its own elements.
    """
    receiver, _ = backend.lift(info)
    memory, stack = backend.extent(receiver), backend.extent(a)
    faults = (
        (receiver.dtype != np.int32, f"has dtype {receiver.dtype}, not int32"),
        (
            receiver.shape != a.shape[:-2],
            f"has shape {receiver.shape}; the batch has {a.shape[:-2]}",
        ),
        (memory.place != stack.place, "is on another device or queue than the stack"),
        (not memory.is_writable, "is read-only"),
        (memory.may_overlap_itself(), "has elements that share memory"),
        (memory.may_overlap(stack), "overlaps the stack, which is never written"),
    )
    for is_so, fault in faults:
        if is_so:
            message = f"info {fault}"
            raise ValueError(message)


def deliver(backend: Backend, status: Any, info: Any) -> None:
    """Write the status into the caller's array, without waiting."""
    receiver, _ = backend.lift(info)
    receiver[...] = status
