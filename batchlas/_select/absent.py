"""Devices that are not here, as far as their keys tell what they are.

Decided here: which facts stand for a device of which only the tables are known. They
serve ``explain`` and the tests of shipped tables; nothing runs by them.
"""

from __future__ import annotations

from batchlas._runtime.devices import Device
from batchlas._select.borrow import family_and_arch

# Shared memory that a block may have after opting in, by compute capability (CUDA C++
# Programming Guide, "Technical Specifications per Compute Capability").
_SHARED_KIB = {70: 96, 75: 64, 80: 163, 86: 99, 87: 163, 89: 99, 90: 227, 100: 227}
_SHARED_KIB |= {120: 99}
_LEAST_SHARED_KIB = 48
_CPU_LOCAL_KIB = 256  # the OpenCL CPU runtime of 2026
_CPU_WORK_GROUP = 8192
_ARRAYS = {"sm": "cupy", "cpu": "numpy"}


def usual_kind(key: str) -> str:
    """Return the kind of array that most likely lies on a device of this key."""
    return _ARRAYS.get(family_and_arch(key)[0], "dpnp")


def absent_device(key: str, kind: str) -> Device:
    """Return the record of a device of which only the key is known."""
    family, arch = family_and_arch(key)
    is_cpu = family == "cpu"
    local = _CPU_LOCAL_KIB if is_cpu else _SHARED_KIB.get(arch, _LEAST_SHARED_KIB)
    return Device(
        key=key,
        family=family,
        arch=arch,
        kind=kind,
        is_gpu=not is_cpu,
        local_mem_bytes=local * 1024,
        max_work_group=_CPU_WORK_GROUP if is_cpu else 1024,
        has_fp64=True,
        has_vendor=True,
        name=f"not here; assumed: {local} KiB of local memory, a vendor library",
    )
