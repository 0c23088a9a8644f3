"""A stand-in for CuPy that builds CUDA sources for the host and runs them there.

Arrays are NumPy's, blocks are coroutines (see cuda_host.hpp). It shows that logic,
launches and memory are right, without a GPU.
"""

from __future__ import annotations

import ctypes
import hashlib
import shutil
import subprocess
import sys
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
from host_cupy import HostArray, empty, matrix, vector

SHIM = Path(__file__).with_name("cuda_host.hpp")
LOCAL_BYTES = 227 << 10
OURS = ("launch", "launch_reductions")
MEMORY = "batchlas._vendor.cuda_memory"


def compiler():
    return shutil.which("g++") or shutil.which("clang++")


def build(code, options, name, folder):
    """Return one kernel of a source, taking grid, block, arguments and bytes."""
    mark = hashlib.sha1(f"{code} {options} {name}".encode()).hexdigest()[:16]
    source, target = Path(folder) / f"{mark}.cu", Path(folder) / f"{mark}.so"
    if not target.exists():
        source.write_text(code, encoding="utf-8")
        command = [compiler(), "-O1", "-shared", "-fPIC", "-w", *options, "-std=c++20"]
        command += [f'-DSOURCE="{source}"', f"-DENTRY={name}"]
        command += ["-x", "c++", str(SHIM), "-o", str(target)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    return Kernel(ctypes.CDLL(str(target)).host_entry)


class Kernel:
    """What CuPy's RawKernel offers, and its limit of shared memory."""

    max_dynamic_shared_size_bytes = 48 << 10

    def __init__(self, function):
        self._function = function

    def __call__(self, grid, block, arguments, shared_mem=0):
        assert shared_mem <= self.max_dynamic_shared_size_bytes <= LOCAL_BYTES
        grid, block = (*grid, 1)[:2], (*block, 1)[:2]
        # Two blocks at most, so that every kernel's stride over the batch is at work.
        shape = (min(grid[0], 2), grid[1], *block, shared_mem)
        values = (ctypes.c_longlong * len(arguments))(*arguments)
        self._function((ctypes.c_longlong * 5)(*shape), values)


def gemm(char):
    """Return cuBLAS's strided batched product for a dtype, on column-major memory."""

    def product(_handle, op_a, op_b, m, n, k, alpha, *rest):
        a, lda, step_a, b, ldb, step_b, beta, c, ldc, step_c, batch = rest
        size = np.dtype(char).itemsize
        factor, keep = (vector(x, 1, char)[0] for x in (alpha, beta))
        for i in range(batch):
            shape = (k, m) if op_a else (m, k)
            left = matrix(a + i * step_a * size, *shape, lda, char)
            shape = (n, k) if op_b else (k, n)
            right = matrix(b + i * step_b * size, *shape, ldb, char)
            target = matrix(c + i * step_c * size, m, n, ldc, char)
            left = left.conj().T if op_a else left
            right = right.conj().T if op_b else right
            with np.errstate(all="ignore"):  # infinities of matrices that fail
                target[...] = factor * (left @ right) + keep * target

    return product


def _modules(folder):
    cupy = ModuleType("cupy")

    def raw_module(code, options):
        return SimpleNamespace(
            get_function=lambda name: build(code, options, name, folder)
        )

    vars(cupy).update(
        ndarray=HostArray,
        empty=empty,
        ascontiguousarray=lambda a: np.ascontiguousarray(a).view(HostArray),
        RawModule=raw_module,
        get_default_memory_pool=lambda: SimpleNamespace(free_bytes=lambda: 0),
        cuda=SimpleNamespace(
            Device=lambda _id: nullcontext(),
            device=SimpleNamespace(get_cublas_handle=lambda: 1),
            runtime=SimpleNamespace(
                getDevice=lambda: 0,
                memGetInfo=lambda: (1 << 30, 1 << 32),
                deviceGetAttribute=lambda _attribute, _id: LOCAL_BYTES,
                cudaDevAttrMaxSharedMemoryPerBlockOptin=97,
            ),
        ),
    )
    cublas = ModuleType("cupy_backends.cuda.libs.cublas")
    vars(cublas).update(CUBLAS_OP_N=0, CUBLAS_OP_C=2)
    for letter, char in zip("sdcz", "fdFD", strict=True):
        vars(cublas)[f"{letter}gemmStridedBatched"] = gemm(char)
    libs = ModuleType("cupy_backends.cuda.libs")
    vars(libs).update(cublas=cublas)
    return {
        "cupy": cupy,
        "cupy_backends": ModuleType("cupy_backends"),
        "cupy_backends.cuda": ModuleType("cupy_backends.cuda"),
        "cupy_backends.cuda.libs": libs,
        "cupy_backends.cuda.libs.cublas": cublas,
    }


@contextmanager
def launcher(folder):
    """Yield ``launch`` and ``launch_reductions`` as they are on this stand-in."""
    fakes = _modules(folder)
    ours = [f"batchlas._kernels.cuda.{name}" for name in OURS] + [MEMORY]
    saved = {name: sys.modules.pop(name, None) for name in (*fakes, *ours)}
    sys.modules.update(fakes)
    try:
        from batchlas._kernels.cuda import launch, launch_reductions

        yield launch, launch_reductions
    finally:
        for name in (*fakes, *ours):
            sys.modules.pop(name, None)
        sys.modules.update({k: v for k, v in saved.items() if v is not None})
        import batchlas._kernels.cuda as package
        import batchlas._vendor as vendor

        for name in OURS:
            vars(package).pop(name, None)
        vars(vendor).pop("cuda_memory", None)
