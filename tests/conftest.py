"""What every test file shares: the array libraries, and settings that are put back."""

from __future__ import annotations

import os
import tempfile

import pytest
from libraries import parameters

import batchlas  # noqa: F401 - before dpnp: it makes the CPU device visible
from batchlas._runtime import settings as settings_module
from batchlas._runtime.notices import reset_warnings
from batchlas._runtime.settings import reload_settings
from batchlas._runtime.workspace import live_leases

# Tables that the person at this machine has measured are not what is tested.
os.environ["XDG_DATA_HOME"] = tempfile.mkdtemp(prefix="batchlas-tests-")


def pytest_collection_modifyitems(items):
    """Skip GPU tests where there is none, with the reason."""
    if not any(item.get_closest_marker("gpu") for item in items):
        return
    absent = _missing_gpu()
    if absent:
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.skip(reason=absent))


def _missing_gpu():
    try:
        import cupy

        cupy.cuda.runtime.getDeviceCount()
    except Exception as error:  # noqa: BLE001 - whatever is missing is the reason
        return f"no GPU: {type(error).__name__}: {error}"
    return ""


@pytest.fixture(params=parameters())
def library(request):
    """Run a test over NumPy, dpnp and, where it is installed, CuPy."""
    return request.param


@pytest.fixture(autouse=True)
def _no_lease_is_left():
    """Whatever a test runs, all scratch that it borrowed has come back."""
    yield
    assert live_leases() == ()


@pytest.fixture(autouse=True)
def _fresh_settings():
    """Read the environment again and let every warning be given again."""
    yield
    reset_warnings()
    settings_module._state.warned.clear()
    reload_settings()
