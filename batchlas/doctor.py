"""``python -m batchlas doctor``: what is here, what is missing, and what mends it.

The report is meant to be pasted into a bug report. Nothing in it raises: a library that
is broken is reported as broken.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import threadpoolctl

import batchlas
from batchlas._kernels.renderer_choice import renderer_for
from batchlas._ops import SPECS
from batchlas._runtime import health, intel
from batchlas._runtime.devices import host_cpu_key, host_cpu_name
from batchlas._runtime.settings import PREFIX, settings
from batchlas._select import store
from batchlas._vendor import slices

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Module, what it is for, and the command that brings it.
_OPTIONAL = (
    ("dpctl", "SYCL devices", "pip install 'batchlas[sycl]'"),
    ("dpnp", "arrays on SYCL devices", "pip install 'batchlas[sycl]'"),
    ("cupy", "arrays on NVIDIA GPUs", "pip install 'batchlas[cuda]'"),
    (
        "numba_dpex",
        "kernels by numba-dpex",
        "an environment of its own: pip install -r requirements/numba-dpex.txt",
    ),
    ("dask", "chunked arrays", "pip install 'batchlas[dask]'"),
)


def report() -> str:
    """Return the whole report as text."""
    sections = (_software, _host, _sycl, _renderers, _cuda, _settings, _tables)
    return "\n".join(line for section in sections for line in _lines(section))


def _lines(section: Callable[[], Iterator[str]]) -> Iterator[str]:
    """Yield a section's lines, or what broke it: settings can break several."""
    try:
        yield from section()
    except Exception as error:  # noqa: BLE001 - a report, whatever is broken
        name = section.__name__.strip("_")
        yield f"{name:<10} BROKEN, {type(error).__name__}: {error}"


def _software() -> Iterator[str]:
    yield f"batchlas   {batchlas.__version__} ({Path(batchlas.__file__).parent})"
    yield f"python     {platform.python_version()} on {platform.platform()}"
    yield f"numpy      {np.__version__}"
    for module, purpose, command in _OPTIONAL:
        yield f"{module:<10} {_version(module, purpose, command)}"


def _version(module: str, purpose: str, command: str) -> str:
    if importlib.util.find_spec(module) is None:
        return f"absent, needed for {purpose}: {command}"
    try:
        importlib.import_module(module)
    except Exception as error:  # noqa: BLE001 - a report, whatever is broken
        return f"BROKEN, {type(error).__name__}: {error}"
    version: str = vars(sys.modules[module]).get("__version__", "of unknown version")
    return version


def _host() -> Iterator[str]:
    key, _ = host_cpu_key()
    yield f"host       {host_cpu_name()}, key {key}, {slices.thread_count()} threads"
    for library in threadpoolctl.threadpool_info():
        kind = library["user_api"]
        architecture = library.get("architecture", "")
        yield (
            f"  {kind:<8} {library['internal_api']} {library['version']} "
            f"{architecture} {library['num_threads']} threads"
        )
    yield f"  check    {_blas_health()}"


def _blas_health() -> str:
    """Say whether products are right, and if not, with which kernel they would be."""
    found = health.defect()
    if not found:
        sizes = ", ".join(map(str, health.SIZES))
        return f"float64 products are right at n = {sizes}"
    better = health.working_core_type()
    if better is None:
        advice = f"no {health.CORE_TYPE} helps; install another NumPy"
    else:
        advice = f"before Python starts: export {health.CORE_TYPE}={better}"
    return f"BROKEN, {found}. {advice}"


def _sycl() -> Iterator[str]:
    if importlib.util.find_spec("dpctl") is None:
        return
    named = os.environ.get(intel.VARIABLE)
    yield f"sycl       {intel.VARIABLE}={named}"
    try:
        import dpctl

        devices = dpctl.get_devices()
    except Exception as error:  # noqa: BLE001 - a report, whatever is broken
        yield f"  BROKEN, {type(error).__name__}: {error}"
        return
    for device in devices:
        yield (
            f"  {device.filter_string}: {device.name.strip()}, driver "
            f"{device.driver_version}, local memory {device.local_mem_size} bytes, "
            f"work-group {device.max_work_group_size}, fp64 {device.has_aspect_fp64}"
        )
    if not devices:
        yield f"  NO DEVICE. {_no_sycl_device()}"


def _no_sycl_device() -> str:
    if intel.runtime_library() is None:
        return "The CPU runtime is not installed: pip install intel-opencl-rt"
    return (
        "The CPU runtime is installed but was not found. Import batchlas before "
        f"anything that uses dpctl, or: export {intel.VARIABLE}="
        f"{intel.runtime_library()}"
    )


def _renderers() -> Iterator[str]:
    """Name what prints the kernels of each kind of array on each SYCL device."""
    if importlib.util.find_spec("dpctl") is None:
        return
    host = importlib.import_module("batchlas._backends.numpy")
    choice = renderer_for(host.device(np.empty(0)))
    yield f"renderer   numpy arrays: {choice or 'none'}"
    if importlib.util.find_spec("dpnp") is None:
        return
    import dpctl
    import dpnp

    backend = importlib.import_module("batchlas._backends.dpnp")
    for device in dpctl.get_devices():
        choice = renderer_for(backend.device(dpnp.empty(0, device=device)))
        yield f"  dpnp arrays on {device.filter_string}: {choice or 'none'}"


def _cuda() -> Iterator[str]:
    if importlib.util.find_spec("cupy") is None:
        return
    try:
        import cupy

        count = cupy.cuda.runtime.getDeviceCount()
        for index in range(count):
            facts = cupy.cuda.runtime.getDeviceProperties(index)
            name = facts["name"].decode()
            yield f"cuda       {index}: {name}, sm_{facts['major']}{facts['minor']}"
    except Exception as error:  # noqa: BLE001 - a report, whatever is broken
        yield f"cuda       NO DEVICE, {type(error).__name__}: {error}"


def _settings() -> Iterator[str]:
    exported = sorted(name for name in os.environ if name.startswith(PREFIX))
    yield "settings   " + (", ".join(exported) + " set" if exported else "defaults")
    try:
        yield f"  {settings()}"
    except ValueError as error:
        yield f"  BROKEN, {error}"


def _tables() -> Iterator[str]:
    for spec in SPECS:
        files = store.table_store(settings()).files(spec.op)
        told = sorted(_told(file) for file in files)
        yield f"tables     {spec.op}: {', '.join(told) or 'none'}"


def _told(file: store.TableFile) -> str:
    """Return a table's device, and what should be known of the table."""
    remarks = [] if file.place is store.Place.SHIPPED else [file.name]
    if any(store.is_stale(table) for table in file.tables().values()):
        remarks.append("stale: measured with other kernels")
    return f"{file.device} ({', '.join(remarks)})" if remarks else file.device
