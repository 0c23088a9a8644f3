"""Builds ``stage.cu`` for the host, so that its logic is tested without a GPU."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

STAGE = Path(__file__).parents[2] / "batchlas" / "_vendor" / "stage.cu"
SHIM = Path(__file__).with_name("stage_host.hpp")
REAL = {"f": "float", "d": "double", "F": "float", "D": "double"}


def compiler():
    return shutil.which("g++") or shutil.which("clang++")


def build(char, folder):
    """Return the kernels for a dtype by name, taking grid and block."""
    target = Path(folder) / f"stage_{char}.so"
    parts = 2 if char in "FD" else 1
    defines = (f"-DREAL={REAL[char]}", f"-DPARTS={parts}", f'-DSTAGE="{STAGE}"')
    command = [compiler(), "-std=c++20", "-O1", "-shared", "-fPIC", "-pthread"]
    command += [*defines, "-x", "c++", str(SHIM), "-o", str(target)]
    subprocess.run(command, check=True, capture_output=True)
    library = ctypes.CDLL(str(target))
    names = ("prepare", "arrange", "emit")
    return {name: _kernel(getattr(library, f"host_{name}")) for name in names}


def _kernel(function):
    def kernel(grid, block, arguments):
        # Fewer threads than on a GPU, which the kernels' strides make up for.
        shape = (ctypes.c_int * 4)(*grid[:2], min(block[0], 16), min(block[1], 4))
        function(shape, *(ctypes.c_int64(argument) for argument in arguments))

    return kernel
