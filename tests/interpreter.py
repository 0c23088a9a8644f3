"""Running Python in a process of its own, with this batchlas."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import batchlas

ROOT = Path(batchlas.__file__).resolve().parents[1]
OPTIONAL = ("dpctl", "dpnp", "cupy", "numba_dpex", "dask")

# An import of one of these fails as it would where it is not installed.
BLOCK = f"""
import sys
for library in {OPTIONAL}:
    sys.modules[library] = None
"""


def run_python(code, *, check=True, timeout=60, **variables):
    """Run a program text; variables are added to the environment, None removes one."""
    return run_module(
        "-c", textwrap.dedent(code), check=check, timeout=timeout, **variables
    )


def run_module(*arguments, check=True, timeout=60, cwd=None, **variables):
    """Run ``python *arguments`` and return the finished process with its texts."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("BATCHLAS_")}
    paths = [str(ROOT), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    for name, value in variables.items():
        environment.pop(name, None)
        if value is not None:
            environment[name] = value
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        check=False,
        cwd=cwd,
        env=environment,
        text=True,
        timeout=timeout,
    )
    if check:
        assert done.returncode == 0, done.stderr
    return done
