"""Whose table decides for a device.

Decided here: the order in which the tables of other devices are asked. The device's own
comes first; then its family, the nearest architecture at or below before those above;
then the other families. A device that is no GPU never borrows a GPU's table, and a
table without rows for the call's kind of array is passed over (`walk`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from batchlas._runtime.devices import INSTRUCTION_SETS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from batchlas._runtime.devices import Device

# Who lends first to a device that has no relative: the list's own order.
_FAMILIES = ("sm", "gfx", "intel", "other", "cpu")
_CPU_RANK = {key: rank for _, key, rank in INSTRUCTION_SETS}
_KEY = re.compile(r"(?:(sm|intel|cpu)_|(gfx))(.*)")


def family_and_arch(key: str) -> tuple[str, int]:
    """Return the family that a table's device key belongs to, and its rank there."""
    match = _KEY.fullmatch(key)
    family, rest = (match[1] or match[2], match[3]) if match else ("other", key)
    if family == "cpu":
        return family, _CPU_RANK.get(key, 0)
    if family == "gfx":  # gfx90a comes between gfx908 and gfx942: they count in hex
        digits = re.match(r"[0-9a-f]+", rest)
        return family, int(digits[0], 16) if digits else 0
    digits = re.search(r"[0-9]+", rest)
    return family, int(digits[0]) if digits else 0


def borrow_order(device: Device, keys: Iterable[str]) -> list[str]:
    """Return the device keys among `keys` whose tables may decide for `device`."""

    def rank(key: str) -> tuple[int, int, bool, int, str]:
        family, arch = family_and_arch(key)
        if key == device.key:
            return (-2, 0, False, 0, key)
        if family == device.family:
            return (-1, 0, arch > device.arch, abs(arch - device.arch), key)
        return (0, _FAMILIES.index(family), False, -arch, key)

    lenders = [
        key
        for key in keys
        if key == device.key or device.is_gpu or family_and_arch(key)[0] == "cpu"
    ]
    return sorted(lenders, key=rank)
