"""Arrays that no backend computes on: Dask's block by block, others by themselves.

A Dask array is a stack of stacks: each block is sent to the same public function when
Dask computes it, so a block may be any array that batchlas knows. Blocks hold whole
matrices; an array whose last two axes are chunked is rechunked first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from batchlas._dispatch import give_way
from batchlas._runtime.errstate import errstate, policy
from batchlas.exceptions import LinAlgError

if TYPE_CHECKING:
    from collections.abc import Callable


def elsewhere(function: Callable[..., Any], a: Any, **options: Any) -> Any:
    """Compute ``function(a, **options)`` where `a` has no backend.

    Parameters
    ----------
    function : callable
        The public function that was called.
    a : array
        Of a type with ``__array_function__``.
    **options
        The other arguments.

    Returns
    -------
    Any
        For a Dask array a Dask array, or the function's namedtuple of such, not
        computed yet; else what the type's own function returns.
    """
    if type(a).__module__.partition(".")[0] == "dask":
        return _over_blocks(function, a, options)
    return give_way(function.__name__, a, **options)


def _over_blocks(function: Callable[..., Any], a: Any, options: dict[str, Any]) -> Any:
    """Return the lazy results of a Dask array, and check its arguments now."""
    from dask.array import apply_gufunc

    empty = function(_empty_stack(a), **options)
    outputs = empty if isinstance(empty, tuple) else (empty,)
    given = [at for at, output in enumerate(outputs) if output is not None]
    metas = tuple(_meta(outputs[at], a.ndim - 2) for at in given)
    lazy = apply_gufunc(  # type: ignore[no-untyped-call]
        _on_block,
        _signature([outputs[at] for at in given]),
        a.rechunk({-2: -1, -1: -1}),
        function=function,
        options=options,
        given=given,
        linalg=policy(),
        meta=metas if isinstance(empty, tuple) else metas[0],
        output_sizes=_sizes([outputs[at] for at in given]),
    )
    if not isinstance(empty, tuple):
        return lazy
    results = dict(zip(given, lazy, strict=True))
    # a namedtuple, whose own type says how many and of what
    kind: Any = type(empty)
    return kind(*(results.get(at) for at in range(len(outputs))))


def _on_block(
    block: Any,
    *,
    function: Callable[..., Any],
    options: dict[str, Any],
    given: list[int],
    linalg: str,
) -> Any:
    """Compute one block, under the policy of the call that asked for it."""
    with errstate(linalg=linalg):
        results = function(block, **options)
    if not isinstance(results, tuple):
        return results
    return tuple(results[at] for at in given)


def _empty_stack(a: Any) -> Any:
    """Return an empty stack of the array's matrices, of the kind of its blocks.

    What a function returns for it has the results' types and the sizes of their last
    axes, and what it refuses is refused before anything is computed.
    """
    if a.ndim < 2:
        return np.empty_like(a._meta, shape=(0,) * a.ndim)
    sizes = a.shape[-2:]
    if any(np.isnan(size) for size in sizes):
        message = (
            f"the last two axes have sizes {sizes}, which have to be known: "
            "call compute_chunk_sizes() first"
        )
        raise LinAlgError(message)
    return np.empty_like(a._meta, shape=(0, *sizes))


def _meta(output: Any, batch_axes: int) -> Any:
    """Return the kind of an output's blocks, as Dask wants it: without elements."""
    axes = batch_axes + output.ndim - 1
    return np.empty_like(output, shape=(0,) * axes)


def _sizes(outputs: list[Any]) -> dict[str, int]:
    """Return the sizes of the outputs' own axes by their names in the signature."""
    return {
        f"o{at}{axis}": size
        for at, output in enumerate(outputs)
        for axis, size in enumerate(output.shape[1:])
    }


def _signature(outputs: list[Any]) -> str:
    """Return the signature of a generalised ufunc with these outputs."""
    names = (
        ",".join(f"o{at}{axis}" for axis in range(output.ndim - 1))
        for at, output in enumerate(outputs)
    )
    return f"(m,n)->{','.join(f'({each})' for each in names)}"
