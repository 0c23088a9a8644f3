"""Whose table is asked, in which order."""

import random
from dataclasses import replace

import pytest
from select_cases import CPU, SM_90, gpu

from batchlas._runtime import devices
from batchlas._select.borrow import borrow_order, family_and_arch

KEYS = [
    *("sm_80", "sm_89", "sm_90", "sm_120", "gfx908", "gfx90a", "gfx942", "gfx1100"),
    *("intel_12", "intel_20", "apple_m3", "cpu_avx512", "cpu_avx2"),
]
SM = ["sm_120", "sm_90", "sm_89", "sm_80"]
GFX = ["gfx1100", "gfx942", "gfx90a", "gfx908"]
INTEL = ["intel_20", "intel_12"]
REST = ["apple_m3", "cpu_avx512", "cpu_avx2"]


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        # Own, at or below (nearest first), above (nearest first), other families.
        (SM_90, ["sm_90", "sm_89", "sm_80", "sm_120", *GFX, *INTEL, *REST]),
        (
            gpu("sm_100", "sm", 100),
            ["sm_90", "sm_89", "sm_80", "sm_120", *GFX, *INTEL, *REST],
        ),
        (
            gpu("sm_75", "sm", 75),
            ["sm_80", "sm_89", "sm_90", "sm_120", *GFX, *INTEL, *REST],
        ),
        (
            gpu("gfx940", "gfx", 0x940),
            ["gfx90a", "gfx908", "gfx942", "gfx1100", *SM, *INTEL, *REST],
        ),
        (
            gpu("intel_13", "intel", 13),
            ["intel_12", "intel_20", *SM, *GFX, *REST],
        ),
        (gpu("apple_m4", "other", 4), ["apple_m3", *SM, *GFX, *INTEL, *REST[1:]]),
        (CPU, ["cpu_avx512", "cpu_avx2"]),
        (
            replace(CPU, key="cpu_sse2", arch=10),
            ["cpu_avx2", "cpu_avx512"],
        ),
    ],
    ids=lambda value: getattr(value, "key", ""),
)
def test_borrow_order(device, expected):
    shuffled = random.Random(0).sample(KEYS, len(KEYS))
    assert borrow_order(device, shuffled) == expected


def test_a_table_of_exactly_this_architecture_lends_before_older_ones():
    twin = gpu("sm_90x", "sm", 90)
    assert borrow_order(twin, ["sm_89", "sm_90", "sm_120"])[0] == "sm_90"


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("sm_90", ("sm", 90)),
        ("sm_120", ("sm", 120)),
        ("gfx906", ("gfx", 0x906)),
        ("gfx90a", ("gfx", 0x90A)),
        ("intel_xe2", ("intel", 2)),
        ("intel_unknown", ("intel", 0)),
        ("cpu_generic", ("cpu", 0)),
        ("smart", ("other", 0)),
        ("cpus9", ("other", 9)),
    ],
)
def test_family_and_arch(key, expected):
    assert family_and_arch(key) == expected


def test_processors_rank_as_their_devices_do():
    key, rank = devices.host_cpu_key()
    assert family_and_arch(key) == ("cpu", rank)
    ranks = [family_and_arch(f"cpu_{name}")[1] for name in ("sse2", "avx2", "avx512")]
    assert 0 < ranks[0] < ranks[1] < ranks[2]
