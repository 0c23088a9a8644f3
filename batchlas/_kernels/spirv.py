"""SPIR-V of OpenCL C, by the compiler library that ships with the OpenCL CPU runtime.

Level Zero takes no source text, and a machine need not have a compiler installed.  The
``intel-opencl-rt`` wheel brings `libcommon_clang.so`; its one C function is used here.
"""

from __future__ import annotations

import ctypes
from functools import cache
from importlib.metadata import PackageNotFoundError, files
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_OPTIONS: Final = b"-cl-std=CL2.0 -x cl -Dcl_khr_fp64=1"
# Extensions that newer compilers use are refused by runtimes that read the module.
_OPTIONS_EX: Final = b"-triple spir64 -emit-spirv --spirv-ext=-all"
_CL_VERSION: Final = b"200"
# virtual functions of the result object
_SIZE, _BYTES, _LOG = 0, 1, 4


def compile_spirv(source: str) -> bytes:
    """Return the SPIR-V module of an OpenCL C text.

    Raises
    ------
    ValueError
        If the compiler library is not installed, or refuses the text.
    """
    library = _library()
    result = ctypes.c_void_p()
    status = library.Compile(
        source.encode(),
        None,
        0,
        None,
        None,
        0,
        _OPTIONS,
        _OPTIONS_EX,
        _CL_VERSION,
        ctypes.byref(result),
    )
    if status != 0 or not result:
        log = _text(result, _LOG) if result else ""
        msg = f"the compiler returned {status}: {log}"
        raise ValueError(msg)
    return ctypes.string_at(_number(result, _BYTES), _number(result, _SIZE))


def _number(obj: ctypes.c_void_p, slot: int) -> int:
    """Call a virtual function that returns a size or a pointer."""
    return int(_method(obj, slot, ctypes.c_size_t)(obj))


def _text(obj: ctypes.c_void_p, slot: int) -> str:
    """Call a virtual function that returns text."""
    return bytes(_method(obj, slot, ctypes.c_char_p)(obj) or b"").decode()


def _method(obj: ctypes.c_void_p, slot: int, kind: type) -> Callable[..., Any]:
    table = ctypes.cast(obj, ctypes.POINTER(ctypes.POINTER(ctypes.c_void_p)))[0]
    return ctypes.CFUNCTYPE(kind, ctypes.c_void_p)(table[slot])


@cache
def _library() -> ctypes.CDLL:
    try:
        listed = files("intel-opencl-rt") or []
    except PackageNotFoundError:
        listed = []
    for item in listed:
        if item.name.startswith("libcommon_clang.so") and ".py" not in item.name:
            return ctypes.CDLL(str(item.locate()))
    msg = "SPIR-V needs libcommon_clang.so of the intel-opencl-rt package"
    raise ValueError(msg)
