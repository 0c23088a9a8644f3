"""The devices of this machine, and arrays on them."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from interpreter import run_python

from batchlas.tune.targets import host_copy, targets

TARGETS = targets()


def test_the_processor_comes_first():
    assert TARGETS[0].device.kind == "numpy"
    assert not TARGETS[0].device.is_gpu


def test_no_device_comes_twice():
    names = [(each.device.key, each.device.kind) for each in TARGETS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.device.kind)
def test_arrays_get_there_and_back(target):
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    a = target.place(values)
    target.wait(a)
    assert type(a).__module__.startswith(target.device.kind)
    assert (host_copy(target, a) == values).all()


@pytest.mark.skipif(
    importlib.util.find_spec("dpnp") is None, reason="dpnp is not installed"
)
def test_a_broken_library_is_left_out_with_a_warning():
    code = """
    import warnings
    import dpctl
    def broken():
        raise RuntimeError("no runtime")
    dpctl.get_devices = broken
    from batchlas.tune.targets import targets
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        print([each.device.kind for each in targets()])
    print(given[0].message)
    """
    done = run_python(code)
    assert done.stdout.splitlines()[0].startswith("['numpy'")
    assert "dpnp is left out: RuntimeError: no runtime" in done.stdout
