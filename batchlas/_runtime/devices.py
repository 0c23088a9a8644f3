"""The device record that selection reads, and the key of the host's processor.

Decided here: what is known about a device, and how a processor is named. A key names a
device's tuned tables: devices that share a key share tables.
"""

from __future__ import annotations

import importlib
import platform
from dataclasses import dataclass
from functools import cache

CACHE_LINE_BYTES = 64
"""Of the caches of every processor whose memory kernels work in."""


@dataclass(frozen=True, slots=True)
class Device:
    """The facts that ``can_run`` and the table look-up may read, and nothing else.

    Attributes
    ----------
    key : str
        Names the tables: ``cpu_avx512``, ``sm_90``, ``intel_...``.
    family : str
        What keys are compared within when a table is borrowed: cpu, sm, gfx, intel.
    arch : int
        Rank inside the family; the nearest at or below lends first.
    kind : str
        Which backend's arrays it serves: numpy, dpnp or cupy.
    is_gpu : bool
        Whether it is a GPU. A CPU never borrows a GPU's table.
    local_mem_bytes : int
        Local (shared) memory of a work-group; 0 where no kernels can be launched.
    max_work_group : int
        Most work-items of a work-group; 0 where no kernels can be launched.
    has_fp64 : bool
        Whether it computes in double precision.
    has_vendor : bool
        Whether the vendor's linear algebra library can be called.
    name : str
        What the driver calls it, for people.
    """

    key: str
    family: str
    arch: int
    kind: str
    is_gpu: bool
    local_mem_bytes: int
    max_work_group: int
    has_fp64: bool
    has_vendor: bool
    name: str


# Instruction sets by rank: the name that NumPy's own dispatch uses, our key, our rank.
INSTRUCTION_SETS = (
    ("AVX512_SKX", "cpu_avx512", 30),
    ("AVX2", "cpu_avx2", 20),
    ("SSE2", "cpu_sse2", 10),
    ("ASIMD", "cpu_neon", 15),
)


@cache
def host_cpu_key() -> tuple[str, int]:
    """Return the host processor's table key and its rank within the cpu family.

    NumPy has already asked the processor; its answer serves every platform it runs on.
    """
    try:
        umath = importlib.import_module("numpy._core._multiarray_umath")
    except ImportError:  # NumPy 1.x keeps it elsewhere
        umath = importlib.import_module("numpy.core._multiarray_umath")
    features = vars(umath)["__cpu_features__"]
    for feature, key, rank in INSTRUCTION_SETS:
        if features.get(feature, False):
            return key, rank
    return "cpu_generic", 0


@cache
def host_cpu_name() -> str:
    """Return the processor's name as the operating system gives it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:  # noqa: PTH123 - procfs
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass  # not Linux
    return platform.processor() or platform.machine()
