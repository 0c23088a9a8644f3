"""The array libraries to compare with: how each is called, and fairly.

A peer is given arrays of its own on the device that batchlas computes on, where it can.
What runs on the host is timed with one thread and with all: OpenBLAS's threads fight
each other over small matrices, so all is not always better.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from batchlas._dispatch import NUMPY_FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Results = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Peer:
    """A library as a benchmark sees it.

    Attributes
    ----------
    name : str
    place : callable (host array) -> array
    call : callable (array) -> tuple of arrays
    wait : callable (results) -> None
        Returns when the results are there.
    host : callable (array) -> ndarray
    threads : tuple of int or None
        Thread counts to time, None for all.
    """

    name: str
    place: Callable[[NDArray[Any]], Any]
    call: Callable[[Any], Results]
    wait: Callable[[Results], None] = field(default=lambda _results: None)
    host: Callable[[Any], NDArray[Any]] = np.asarray
    threads: tuple[int | None, ...] = (None,)


def is_installed(name: str) -> bool:
    """Whether a library could be imported."""
    return importlib.util.find_spec(name) is not None


def peer(name: str, function: str, *, on_gpu: bool) -> Peer:
    """Return a peer that is installed, ready for one function.

    Raises
    ------
    ImportError, RuntimeError
        If the library is broken or has no device.
    """
    return _PEERS[name](function, on_gpu)


def _options(function: str) -> dict[str, bool]:
    return {"full_matrices": False} if function == "svd" else {}


def _tuple(results: Any) -> Results:
    return tuple(results) if isinstance(results, tuple) else (results,)


def _caller(function: Callable[..., Any], name: str) -> Callable[[Any], Results]:
    options = _options(name)
    return lambda a: _tuple(function(a, **options))


def _numpy(function: str, _on_gpu: bool) -> Peer:
    if function in NUMPY_FUNCTIONS:
        call = _caller(NUMPY_FUNCTIONS[function], function)
    else:  # NumPy 1 has no svdvals
        svd = partial(NUMPY_FUNCTIONS["svd"], compute_uv=False)
        call = _caller(svd, function)
    return Peer("numpy", np.asarray, call, threads=(1, None))


def _dpnp(function: str, _on_gpu: bool) -> Peer:
    import dpnp

    if function == "svdvals":
        call = _caller(partial(dpnp.linalg.svd, compute_uv=False), function)
    else:
        call = _caller(vars(dpnp.linalg)[function], function)
    return Peer(
        "dpnp",
        dpnp.asarray,
        call,
        wait=lambda results: results[0].sycl_queue.wait(),
        host=dpnp.asnumpy,
    )


def _cupy(function: str, _on_gpu: bool) -> Peer:
    import cupy

    if function == "svdvals":
        call = _caller(partial(cupy.linalg.svd, compute_uv=False), function)
    else:
        call = _caller(vars(cupy.linalg)[function], function)
    stream = cupy.cuda.get_current_stream()
    return Peer(
        "cupy",
        cupy.asarray,
        call,
        wait=lambda _results: stream.synchronize(),
        host=cupy.asnumpy,
    )


def _torch(function: str, on_gpu: bool) -> Peer:
    import torch

    gpu = on_gpu and torch.cuda.is_available()
    return Peer(
        "torch (GPU)" if gpu else "torch (CPU)",
        partial(torch.as_tensor, device="cuda" if gpu else "cpu"),
        _caller(vars(torch.linalg)[function], function),
        wait=lambda _results: torch.cuda.synchronize() if gpu else None,
        host=lambda a: a.cpu().numpy(),
        threads=(None,) if gpu else (1, None),
    )


def _jax(function: str, on_gpu: bool) -> Peer:
    import jax
    import jax.experimental

    kinds = {device.platform for device in jax.devices()}
    gpu = on_gpu and "gpu" in kinds
    device = jax.devices("gpu" if gpu else "cpu")[0]
    linalg = vars(jax.numpy.linalg)
    compiled = jax.jit(partial(linalg[function], **_options(function)))

    try:
        double = partial(jax.enable_x64, True)
    except AttributeError:  # older releases keep it elsewhere
        double = jax.experimental.enable_x64

    def place(a: NDArray[Any]) -> Any:
        with double():
            return jax.device_put(a, device)

    def call(a: Any) -> Results:
        with double():
            return _tuple(compiled(a))

    return Peer(
        "jax (GPU)" if gpu else "jax (CPU)", place, call, wait=jax.block_until_ready
    )


_PEERS: dict[str, Callable[[str, bool], Peer]] = {
    "numpy": _numpy,
    "dpnp": _dpnp,
    "cupy": _cupy,
    "torch": _torch,
    "jax": _jax,
}
