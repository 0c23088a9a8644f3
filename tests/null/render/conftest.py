"""Renderer tests share the example kernels of the scheduler's tests."""

import sys
from pathlib import Path

sys.path[:0] = [
    str(Path(__file__).parents[1] / "kernels"),
    str(Path(__file__).parents[2] / "device" / "kernels"),
]
