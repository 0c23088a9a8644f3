"""Builds CUDA sources of batchlas for the host, so that they are tested without a GPU."""

from __future__ import annotations

import ctypes
import hashlib
import shutil
import subprocess
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "batchlas" / "_kernels" / "cuda"
SHIM = Path(__file__).with_name("cuda_host.hpp")


def compiler():
    return shutil.which("g++") or shutil.which("clang++")


def build(source, defines, names, folder):
    """Return the kernels of a source by name, each taking grid, block, args and bytes."""
    mark = hashlib.sha1(f"{source} {defines}".encode()).hexdigest()[:12]
    target = Path(folder) / f"{source}_{mark}.so"
    entries = " ".join(f"ENTRY({name})" for name in names)
    command = [compiler(), "-std=c++20", "-O1", "-shared", "-fPIC", "-w"]
    command += [*defines, f'-DELEMENT="{FOLDER / "element.cuh"}"']
    command += [f'-DSOURCE="{FOLDER / source}"', f"-DENTRIES={entries}"]
    command += ["-x", "c++", str(SHIM), "-o", str(target)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    library = ctypes.CDLL(str(target))
    return {name: _kernel(library[f"host_{name}"]) for name in names}


def _kernel(function):
    def kernel(grid, block, arguments, shared_mem=0):
        grid, block = (*grid, 1)[:2], (*block, 1)[:2]
        shape = (ctypes.c_longlong * 5)(*grid, *block, shared_mem)
        values = (ctypes.c_longlong * len(arguments))(*arguments)
        function(shape, values)

    return kernel
