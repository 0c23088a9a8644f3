"""Synthetic families, calls, devices and tables: selection needs no device to test."""

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

from batchlas._runtime.devices import Device
from batchlas._select import Family, OpSpec, family

Tiny = family("tiny")
Cta = family("cta")
Blocked = family("blocked")
Vendor = family("vendor", uses_library=True)


@dataclass(frozen=True, slots=True)
class Lpanel(Family):
    name: ClassVar[str] = "lpanel"
    panel: int


class Call(NamedTuple):
    dtype: str
    uplo: str
    n: int
    batch: int


def call(n=8, batch=1024, uplo="L", dtype="float64"):
    return Call(dtype, uplo, n, batch)


def candidates(dtype, kind):
    if kind == "numpy":
        return (Tiny(), Blocked(), Vendor())
    wide = (Lpanel(16),) if dtype == "float32" else ()
    return (Tiny(), Cta(), Lpanel(8), *wide, Blocked(), Vendor())


def can_run(choice, asked, device):
    return {
        "tiny": asked.n <= 32,
        "cta": asked.n <= 77,
        "lpanel": asked.uplo == "L",
        "blocked": asked.uplo == "L",
        "vendor": device.has_vendor,
    }[choice.name]


def op_spec(op="potrf", **changes):
    fields = {
        "op": op,
        "library": "lapack",
        "keys": Call._fields,
        "candidates": candidates,
        "can_run": can_run,
    }
    return OpSpec(**{**fields, **changes})


POTRF = op_spec()

SM_90 = Device(
    key="sm_90",
    family="sm",
    arch=90,
    kind="cupy",
    is_gpu=True,
    local_mem_bytes=232_448,
    max_work_group=1024,
    has_fp64=True,
    has_vendor=True,
    name="a GPU",
)
CPU = replace(
    SM_90, key="cpu_avx512", family="cpu", arch=30, kind="numpy", is_gpu=False
)


def gpu(key, family_name, arch):
    return replace(SM_90, key=key, family=family_name, arch=arch)


KEYS = "dtype:exact uplo:exact n:log:3 batch:log"


def table(*rows, device="sm_90", op="potrf", keys=KEYS, source="measured"):
    """Return the text of a table file; a row is its text after the dtype."""
    header = f"# op={op} device={device} batchlas=1a2b3c4 kernels=0123abcd"
    return "\n".join([f"{header} source={source}", f"# keys: {keys}", *rows]) + "\n"


def row(ranking, n=8, batch=1024, uplo="L", dtype="float64"):
    return f"dtype={dtype} uplo={uplo} n={n} batch={batch} | {ranking}"
