"""Run every candidate of an op on arrays that end where readable memory ends.

A program, run by ``test_candidates.py``: a read beyond the input ends the process. The
last line that it prints is what it was about to run, or "done".
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from candidates import all_candidates
from libraries import NUMPY

PROT_NONE = 0


class EndOfMemory:
    """Pages of which the last one cannot be touched."""

    def __init__(self, pages):
        self.size = pages * mmap.PAGESIZE
        self.memory = mmap.mmap(-1, self.size + mmap.PAGESIZE)
        self.bytes = np.frombuffer(self.memory, np.uint8)
        libc = ctypes.CDLL(None, use_errno=True)
        guard = ctypes.c_void_p(self.bytes.ctypes.data + self.size)
        if libc.mprotect(guard, ctypes.c_size_t(mmap.PAGESIZE), PROT_NONE):
            raise OSError(ctypes.get_errno(), "mprotect")

    def array(self, values):
        """Return a copy of an array whose last byte is the last that can be read."""
        raw = self.bytes[self.size - values.nbytes : self.size]
        array = raw.view(values.dtype).reshape(values.shape)
        array[...] = values
        return array


def main():
    end = EndOfMemory(16)
    for candidate in all_candidates([NUMPY]):
        if candidate.spec.op != sys.argv[1]:
            continue
        call = candidate.calls[0]
        for shape_of in candidate.problem.shapes:
            for batch in (1, 5, 19):
                a = candidate.stack(shape_of(5), batch=batch)
                if not candidate.can_run(call, a.shape[-2:], batch):
                    continue
                print(candidate, a.shape, flush=True)
                candidate.check(call, a, candidate.run(call, end.array(a)))
    print("done")


main()
