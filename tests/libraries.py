"""The array libraries that one test body runs over, and how arrays get in and out."""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass

import numpy as np
import pytest

from batchlas._runtime.sycl import in_turn


@dataclass(frozen=True, slots=True)
class Library:
    """An array library; its name is the test id, so that ``-k dpnp`` selects it."""

    name: str

    def __str__(self):
        return self.name

    @property
    def xp(self):
        return importlib.import_module(self.name)

    def asarray(self, array):
        """Return a host array as one of this library, on its default device."""
        return array if self.name == "numpy" else self.xp.asarray(array)

    def to_host(self, array):
        if self.name == "numpy":
            return array
        return self.xp.asnumpy(array)

    def answers(self, call, array):
        """Return a call's results for a host array, whatever other threads do.

        Two threads in dpnp crash Intel's CPU runtime or hang in it, without batchlas
        too. So what is dpnp's own here, copies and the end of arrays, takes its turn
        with batchlas' calls.
        """
        with in_turn:
            given = self.asarray(array)
        results = call(given)
        with in_turn:
            found = host(results)
            del given, results
        return found

    def owns(self, array):
        """Whether an array is one of this library and nothing else."""
        return type(array) is self.xp.ndarray


NUMPY = Library("numpy")
DPNP = Library("dpnp")
CUPY = Library("cupy")


def is_present(library):
    """Whether an array library is installed; it is not imported."""
    return importlib.util.find_spec(library.name) is not None


def parameters():
    """Return the libraries to run over; dpnp skips where it is absent.

    CuPy is left out where it is absent: a GPU is the exception among test machines,
    and thousands of skips would drown the others.
    """
    absent = pytest.mark.skipif(not is_present(DPNP), reason="dpnp is not installed")
    found = [
        pytest.param(NUMPY, id="numpy"),
        pytest.param(DPNP, id="dpnp", marks=absent),
    ]
    if is_present(CUPY):
        found.append(pytest.param(CUPY, id="cupy", marks=pytest.mark.gpu))
    return found


def host(result):
    """Return a tuple of arrays of any library as NumPy arrays."""
    return tuple(None if each is None else _host(each) for each in result)


def _host(array):
    if isinstance(array, np.ndarray):
        return array
    return importlib.import_module(type(array).__module__.partition(".")[0]).asnumpy(
        array
    )
