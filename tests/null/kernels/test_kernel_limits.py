"""What the kernels of one matrix per lane may hold, and how they lay it out."""

from __future__ import annotations

from batchlas._kernels.limits import pitch, ql_pitch


def test_rows_are_an_odd_pitch_apart_and_apart_from_each_other():
    for n in range(1, 1000):
        assert pitch(n) >= n
        assert pitch(n) % 2
    # 64 vectors of 64 bytes are what the last 12 bits of an address tell apart
    for n in (16, 32, 48, 64, 96, 128):
        for rows in (1, 2):
            beside = rows * pitch(n) % 64
            assert min(beside, 64 - beside) > 4


def test_a_pitch_leaves_room_for_every_row():
    for capacity in (6, 90, 128):
        for n in range(1, capacity + 1):
            assert n <= ql_pitch(n, capacity)
            assert n * ql_pitch(n, capacity) <= capacity * (capacity + 1)
    assert ql_pitch(64, 128) == pitch(64)
