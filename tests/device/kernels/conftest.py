"""Devices for kernel tests; dpctl must know the driver before its import."""

import os
import sys
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "null" / "kernels"))


def _driver():
    try:
        listed = files("intel-opencl-rt") or []
    except PackageNotFoundError:
        return None
    found = [f for f in listed if f.name == "libintelocl.so"]
    return str(Path(found[0].locate()).resolve()) if found else None


if "OCL_ICD_FILENAMES" not in os.environ and _driver():
    os.environ["OCL_ICD_FILENAMES"] = _driver()


@pytest.fixture(scope="session")
def queue():
    dpctl = pytest.importorskip("dpctl")
    try:
        return dpctl.SyclQueue("opencl:cpu")
    except dpctl.SyclQueueCreationError:
        pytest.skip("no OpenCL CPU device")
