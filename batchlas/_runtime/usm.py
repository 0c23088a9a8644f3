"""USM memory of results that the caller has dropped, kept for the next results.

The allocations of a CPU device are pages fresh from the operating system, which zeroes
them when they are first written: for the 8 MB factor of 15,367 matrices of order 8 that
took 4 ms, ten times as long as the kernel. Large blocks ask for large pages as NumPy's
arrays do, which makes the first write three times as fast. Only the dpnp backend
imports this module.

A block is used again when nobody but the pool owns it. Who owns USM memory dpctl knows:
its arrays share a block, and so does work on any queue that still reads it after its
arrays are gone. Nothing is hung on the arrays themselves, since dpnp treats memory of
foreign owners differently: some of its functions then wait for ever on in-order queues.
"""

from __future__ import annotations

import ctypes
import mmap
from typing import TYPE_CHECKING, Any

from dpctl.memory import MemoryUSMDevice, MemoryUSMHost, MemoryUSMShared, _memory

from batchlas._runtime.lease import ALIGNMENT
from batchlas._runtime.reuse import SLACK
from batchlas._runtime.state import process_wide
from batchlas._runtime.sycl import in_turn

if TYPE_CHECKING:
    from collections.abc import Callable

# The runtime keeps smaller memory itself.
SMALLEST_BYTES = 2**13
# Of all blocks that are watched, the caller's among them: a loop holds one result while
# the next one is computed.
MOST_WATCHED_BYTES = 2**27
MOST_WATCHED = 16

# From here on NumPy asks for large pages; they begin at multiples of the second number.
_LARGE_BYTES = 2**22
_LARGE_PAGE_BYTES = 2**21

_KINDS = {"device": MemoryUSMDevice, "shared": MemoryUSMShared, "host": MemoryUSMHost}

# Gives the address of the ``std::shared_ptr<void>`` in which dpctl holds memory; from
# dpctl 0.18 on.
_shared_ptr_of = vars(_memory).get("__pyx_capi__", {}).get("Memory_GetOpaquePointer")


def _owner_counter() -> Callable[[_Block], int]:
    """Return what counts the owners of a block, to be compared with an earlier count.

    A ``shared_ptr`` is two pointers, of which the second one leads to a table of
    functions and the number of owners.
    """
    if _shared_ptr_of is None:
        return lambda _block: 0  # never one more than before: nothing is watched
    name_of = ctypes.pythonapi.PyCapsule_GetName
    name_of.argtypes, name_of.restype = [ctypes.py_object], ctypes.c_char_p
    address_of = ctypes.pythonapi.PyCapsule_GetPointer
    address_of.argtypes = [ctypes.py_object, ctypes.c_char_p]
    address_of.restype = ctypes.c_void_p
    function = address_of(_shared_ptr_of, name_of(_shared_ptr_of))
    shared_ptr = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(function)
    pointer = ctypes.sizeof(ctypes.c_void_p)

    def count(block: _Block) -> int:
        control = ctypes.c_void_p.from_address(shared_ptr(block.memory) + pointer).value
        return ctypes.c_int.from_address((control or 0) + pointer).value

    return count


class _Block:
    """An allocation; `owners` is their number while only the pool is one."""

    __slots__ = ("memory", "owners", "place")

    def __init__(self, nbytes: int, place: tuple[str, Any]) -> None:
        kind, queue = place
        is_large = nbytes >= _LARGE_BYTES
        alignment = _LARGE_PAGE_BYTES if is_large else ALIGNMENT
        self.memory = _KINDS[kind](nbytes, alignment=alignment, queue=queue)
        if is_large:
            _ask_for_large_pages(self.memory)
        self.place = place
        self.owners = _count(self)

    def lend(self) -> Any:
        """Return the memory as an owner of its own."""
        return _KINDS[self.place[0]](self.memory)


_count = _owner_counter()


def _ask_for_large_pages(memory: Any) -> None:
    """Have the operating system give an aligned block large pages, where it can."""
    advice = getattr(mmap, "MADV_HUGEPAGE", None)
    if advice is None:
        return
    address, _ = memory.__sycl_usm_array_interface__["data"]
    whole = memory.nbytes // mmap.PAGESIZE * mmap.PAGESIZE
    # Refused or not, the memory is the same: the answer does not matter.
    ctypes.pythonapi.madvise(ctypes.c_void_p(address), ctypes.c_size_t(whole), advice)


class _Pool:
    """Blocks that are lent or idle, the latest lent last; changed in turn."""

    def __init__(self) -> None:
        self.blocks: list[_Block] = []

    def lend(self, nbytes: int, place: tuple[str, Any]) -> Any:
        """Return memory of at least `nbytes` that nobody else uses."""
        with in_turn:
            block = self._take(nbytes, place) or _Block(nbytes, place)
            memory = block.lend()
            # What does not count as it should is not watched, and never used again.
            if _count(block) == block.owners + 1:
                self._watch(block)
        return memory

    def _take(self, nbytes: int, place: tuple[str, Any]) -> _Block | None:
        for at in reversed(range(len(self.blocks))):
            block = self.blocks[at]
            if (
                nbytes <= block.memory.nbytes <= SLACK * nbytes
                and block.place == place
                and _count(block) == block.owners
            ):
                return self.blocks.pop(at)
        return None

    def _watch(self, block: _Block) -> None:
        """Watch one more block, and the oldest ones beyond the limits no longer."""
        self.blocks.append(block)
        while (
            len(self.blocks) > MOST_WATCHED
            or sum(each.memory.nbytes for each in self.blocks) > MOST_WATCHED_BYTES
        ):
            self.blocks.pop(0)


_pool = process_wide("usm", _Pool)


def is_kept(nbytes: int, device: Any) -> bool:
    """Whether a device's memory of this size is kept when the caller drops it."""
    return nbytes >= SMALLEST_BYTES and device.is_cpu and _shared_ptr_of is not None


def reused_memory(nbytes: int, usm_type: str, queue: Any) -> Any:
    """Return at least `nbytes` uninitialised bytes, on kept memory if there is some."""
    # dpnp views a whole block as elements of the array on it, whatever they are.
    whole = -(-nbytes // ALIGNMENT) * ALIGNMENT
    return _pool.lend(whole, (usm_type, queue))
