"""Which renderer serves which device, without any device."""

from __future__ import annotations

from dataclasses import replace

import pytest

import batchlas
from batchlas._kernels import renderer_choice
from batchlas._kernels.renderer_choice import renderer_for
from batchlas._runtime.devices import Device

CPU = Device(
    key="cpu_generic",
    family="cpu",
    arch=0,
    kind="dpnp",
    is_gpu=False,
    local_mem_bytes=32768,
    max_work_group=1024,
    has_fp64=True,
    has_vendor=True,
    name="a processor",
)
GPU = replace(CPU, key="intel_x", family="intel", is_gpu=True)
HOST = replace(CPU, kind="numpy")
BARE = replace(HOST, local_mem_bytes=0, max_work_group=0)


@pytest.mark.parametrize(
    ("device", "installed", "asked", "said"),
    [
        (CPU, True, "auto", "dpex"),
        (CPU, True, "dpex", "dpex"),
        (CPU, True, "opencl", "opencl"),
        (CPU, False, "auto", "opencl: not dpex, it is away"),
        (CPU, False, "dpex", "opencl: not dpex, it is away"),
        (CPU, False, "opencl", "opencl"),
        (HOST, True, "auto", "opencl"),
        (HOST, True, "dpex", "opencl: not dpex, it takes dpnp arrays only"),
        (GPU, True, "auto", "dpex"),
        (GPU, True, "opencl", "dpex: not opencl, its kernels need a CPU device"),
        (GPU, False, "auto", "None"),
        (BARE, True, "auto", "None"),
    ],
)
def test_choice(monkeypatch, device, installed, asked, said):
    reason = "" if installed else "it is away"
    monkeypatch.setattr(renderer_choice, "_broken_dpex", lambda: reason)
    renderer_choice._choose.cache_clear()
    try:
        with batchlas.scoped_env(BATCHLAS_SYCL_RENDERER=asked):
            assert str(renderer_for(device)) == said
    finally:
        renderer_choice._choose.cache_clear()
