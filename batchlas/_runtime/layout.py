"""Where an array's elements lie in memory, by its strides alone.

A memory layout is read and never assumed: a C-ordered buffer may be padded, reversed,
broadcast or a slice of something larger. Decided here: what overlaps.
"""

from __future__ import annotations

from typing import NamedTuple


class Extent(NamedTuple):
    """The memory that an array's elements take; strides are in bytes.

    ``place`` is the device or queue that the memory belongs to.
    """

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int
    place: object = None
    is_writable: bool = True

    def bounds(self) -> tuple[int, int]:
        """Return the first byte and the one after the last; equal for no elements."""
        if 0 in self.shape:
            return self.address, self.address
        spans = [(n - 1) * s for n, s in zip(self.shape, self.strides, strict=True)]
        low = self.address + sum(span for span in spans if span < 0)
        high = self.address + sum(span for span in spans if span > 0)
        return low, high + self.itemsize

    def may_overlap(self, other: Extent) -> bool:
        """Whether bytes between the first and the last of both are the same."""
        (low, high), (other_low, other_high) = self.bounds(), other.bounds()
        return low < other_high and other_low < high

    def may_overlap_itself(self) -> bool:
        """Whether two elements may share bytes, as those of a broadcast array do."""
        if 0 in self.shape:
            return False
        axes = zip(self.strides, self.shape, strict=True)
        reach = self.itemsize
        for stride, length in sorted((abs(s), n) for s, n in axes if n > 1):
            if stride < reach:
                return True
            reach += stride * (length - 1)
        return False
