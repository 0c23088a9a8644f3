"""Making the Intel OpenCL CPU runtime of a pip environment visible.

The wheel ``intel-opencl-rt`` brings the CPU device that dpnp computes on, but its ICD
file lands where no OpenCL loader looks. dpctl then finds no device at all until
OCL_ICD_FILENAMES names the runtime's library. ``import batchlas`` sets it.
"""

from __future__ import annotations

import os
from importlib import metadata

VARIABLE = "OCL_ICD_FILENAMES"
_WHEEL = "intel-opencl-rt"
_LIBRARY = "libintelocl.so"


def runtime_library() -> str | None:
    """Return the path of the runtime that pip installed, or None without one."""
    try:
        files = metadata.files(_WHEEL) or []
    except metadata.PackageNotFoundError:
        return None
    for file in files:
        if file.name == _LIBRARY:
            return os.path.normpath(str(file.locate()))
    return None


def repair_discovery() -> str | None:
    """Name the runtime in OCL_ICD_FILENAMES unless the user named one.

    It must run before the first device query of the process; the loader reads the
    variable once.

    Returns
    -------
    str or None
        The library that was named, or None when nothing was changed.
    """
    if VARIABLE in os.environ:
        return None
    library = runtime_library()
    if library is not None:
        os.environ[VARIABLE] = library
    return library
