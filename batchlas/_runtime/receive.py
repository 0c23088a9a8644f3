"""The caller's arrays that receive results (``out=``) or the status (``info=``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from batchlas._backends import Backend


def check_receiver(
    backend: Backend,
    a: Any,
    name: str,
    receiver: Any,
    shape: tuple[int, ...],
    kind: Any,
) -> None:
    """Refuse an array that cannot receive a result of `a`, before anything runs.

    Parameters
    ----------
    backend : Backend
        Of `a` and `receiver`.
    a : array
        The stack.
    name : str
        What the caller calls the receiver.
    receiver : array
    shape : tuple of int
        The result's shape.
    kind : dtype
        The result's dtype.

    Raises
    ------
    ValueError
        For another dtype, shape or device, memory that cannot be written, and memory
        that it shares with `a` or between its own elements.
    """
    array, _ = backend.lift(receiver)
    memory, stack = backend.extent(array), backend.extent(a)
    faults = (
        (array.dtype != kind, f"has dtype {array.dtype}, not {kind}"),
        (array.shape != shape, f"has shape {array.shape}, not {shape}"),
        (memory.place != stack.place, "is on another device or queue than the stack"),
        (not memory.is_writable, "is read-only"),
        (memory.may_overlap_itself(), "has elements that share memory"),
        (memory.may_overlap(stack), "overlaps the stack, which is never written"),
    )
    for is_so, fault in faults:
        if is_so:
            message = f"{name} {fault}"
            raise ValueError(message)


def check_apart(backend: Backend, receivers: Mapping[str, Any]) -> None:
    """Refuse arrays that would overwrite each other.

    Raises
    ------
    ValueError
        If the memory of two may overlap.
    """
    extents = {
        name: backend.extent(backend.lift(each)[0]) for name, each in receivers.items()
    }
    names = list(extents)
    for at, name in enumerate(names):
        for other in names[:at]:
            if extents[name].may_overlap(extents[other]):
                message = f"{name} overlaps {other}"
                raise ValueError(message)


def deliver(backend: Backend, result: Any, receiver: Any) -> None:
    """Write a result into the caller's array, without waiting."""
    array, _ = backend.lift(receiver)
    array[...] = result
