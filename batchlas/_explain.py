"""explain: which kernel a call would run, from which table and row, and why.

Nothing runs. The decision comes from the very function that the call itself asks.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from batchlas._dispatch import backend_of
from batchlas._ops import gesvd, potrf, syev
from batchlas._runtime.lease import measured_bytes
from batchlas._select import Decision, decide
from batchlas._select.walk import Origin, Step
from batchlas.linalg._arguments import stack_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from batchlas._backends import Backend
    from batchlas._runtime.devices import Device
    from batchlas._select import OpSpec


@dataclass(frozen=True, slots=True)
class Explanation:
    """How a call would be served; print it.

    Attributes
    ----------
    function : str
        The function of batchlas.linalg that was asked about.
    choice : str
        The spelling of what runs, as a pin would name it.
    scratch_bytes : int
        What the call would borrow of batchlas' workspace beside its results; what a
        vendor library takes for itself is not counted.
    text : str
        The whole account, several lines.
    """

    function: str
    choice: str
    scratch_bytes: int
    text: str

    def __str__(self) -> str:
        return self.text


def _potrf(backend: Backend, a: Any, *, upper: bool = False) -> tuple[Any, Any]:
    return potrf.SPEC, potrf.key_of(backend, a, "U" if upper else "L")


def _syev(backend: Backend, a: Any, UPLO: str = "L") -> tuple[Any, Any]:  # noqa: ARG001, N803
    return syev.SPEC, syev.key_of(backend, a, vectors=True)


def _syev_values(backend: Backend, a: Any, UPLO: str = "L") -> tuple[Any, Any]:  # noqa: ARG001, N803
    return syev.SPEC, syev.key_of(backend, a, vectors=False)


def _gesvd(
    backend: Backend,
    a: Any,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
) -> tuple[Any, Any]:
    if hermitian:
        return syev.SPEC, syev.key_of(backend, a, vectors=compute_uv)
    job = "none" if not compute_uv else "all" if full_matrices else "thin"
    return gesvd.SPEC, gesvd.key_of(backend, a, job)


def _gesvd_values(backend: Backend, a: Any) -> tuple[Any, Any]:
    return gesvd.SPEC, gesvd.key_of(backend, a, "none")


_QUESTIONS: dict[str, Callable[..., tuple[Any, Any]]] = {
    "cholesky": _potrf,
    "cholesky_ex": _potrf,
    "eigh": _syev,
    "eigh_ex": _syev,
    "eigvalsh": _syev_values,
    "svd": _gesvd,
    "svd_ex": _gesvd,
    "svdvals": _gesvd_values,
}


FUNCTIONS = tuple(_QUESTIONS)
"""What can be asked about."""


def explain(function: str, a: Any, **options: Any) -> Explanation:
    """Say which kernel ``batchlas.linalg.<function>(a)`` would run, and why.

    Parameters
    ----------
    function : str
        A function of `batchlas.linalg`, such as ``"eigh"``.
    a : array_like
        The stack that would be passed; only its kind, dtype and shape matter.
    **options
        The function's own keyword arguments.

    Returns
    -------
    Explanation
        ``print`` shows the device, the choice, the table and row that decided, and
        what became of every candidate.

    Raises
    ------
    ValueError
        For an unknown function or an empty stack, which runs nothing.
    TypeError
        For an array that batchlas gives way to or does not know.

    Examples
    --------
    >>> import numpy as np, batchlas
    >>> with batchlas.scoped_env(BATCHLAS_POTRF_ROUTE="vendor"):
    ...     print(batchlas.explain("cholesky", np.ones((10, 3, 3))).choice)
    vendor
    """
    question = _question(function)
    backend = backend_of(a)
    if backend is None:
        message = f"{type(a).__name__} computes {function} itself (__array_function__)"
        raise TypeError(message)
    array = stack_of(backend, a, square=_is_square(function, options)).array
    if array.size == 0:
        message = f"a stack of shape {array.shape} is empty: nothing runs for it"
        raise ValueError(message)
    asked = question(backend, array, **options)
    return _explained(function, *asked, backend.device(array))


def explain_call(
    function: str, shape: Sequence[int], dtype: str, device: Device, **options: Any
) -> Explanation:
    """Say the same of a shape on any device, one that is not here too.

    Parameters
    ----------
    function, **options
        As for `explain`.
    shape : sequence of int
        Of the stack; no extent may be 0.
    dtype : str
        One of the four LAPACK dtypes.
    device : Device
        Where the stack would be; ``device.kind`` says as which kind of array.

    Raises
    ------
    ValueError
        For an unknown function, or a shape that the function does not take.
    """
    question = _question(function)
    if len(shape) < 2:
        message = f"{function} takes at least two dimensions, not {tuple(shape)}"
        raise ValueError(message)
    if _is_square(function, options) and shape[-1] != shape[-2]:
        message = f"{function} takes square matrices, not {shape[-2]}x{shape[-1]}"
        raise ValueError(message)
    # Of the right shape and layout, without memory: nothing looks at its values.
    item = np.dtype(dtype).itemsize
    strides = [item * int(np.prod(shape[i + 1 :])) for i in range(len(shape))]
    a = np.lib.stride_tricks.as_strided(np.empty(1, dtype), shape, strides)
    backend = cast("Backend", SimpleNamespace(kind=device.kind))
    return _explained(function, *question(backend, a, **options), device)


def _explained(function: str, spec: OpSpec, call: Any, device: Device) -> Explanation:
    """Return the decision on a call with what it would borrow."""
    decision = decide(spec, call, device)
    layout = spec.scratch(decision.choice, call, device)
    scratch = 0 if layout is None else measured_bytes(layout)
    text = _account(function, decision, scratch)
    return Explanation(function, str(decision.choice), scratch, text)


def _question(function: str) -> Callable[..., tuple[Any, Any]]:
    question = _QUESTIONS.get(function)
    if question is None:
        message = f"explain({function!r}): allowed: {', '.join(_QUESTIONS)}"
        raise ValueError(message)
    return question


def _is_square(function: str, options: dict[str, Any]) -> bool:
    return not function.startswith("svd") or bool(options.get("hermitian"))


def _account(function: str, decision: Decision, scratch: int) -> str:
    """Write a decision out, one fact per line."""
    call, device = decision.call._asdict(), decision.device
    lines = [
        f"{function} -> {decision.spec.op}: {decision.choice}",
        "  call    " + " ".join(f"{key}={value}" for key, value in call.items()),
        f"  device  {device.key} ({device.name})",
        f"  why     {_reason(decision)}",
        f"  scratch {scratch} bytes",
    ]
    lines += [line for text in _walk(decision) for line in text]
    unranked = _unranked(decision)
    if unranked:
        lines.append(f"  unranked {', '.join(unranked)}")
    return "\n".join(lines)


def _walk(decision: Decision) -> Iterator[list[str]]:
    """Yield the steps of each table that was asked, then of the last resort."""
    asked = groupby(decision.steps, key=lambda step: (step.file, step.line))
    for number, ((file, line), steps) in enumerate(asked, 1):
        where = f"{file}:{line}: {_shape(decision, line)}" if file else "last resort"
        yield [f"  step {number}  {where.rstrip(': ')}", *map(_verdict, steps)]


def _verdict(step: Step) -> str:
    time = "untimed" if step.ms is None else f"{step.ms:g} ms"
    return f"    {step.choice!s:<24} {time:<12} {step.verdict.value}"


def _shape(decision: Decision, line: int) -> str:
    """Return the row that decided as text; empty for one that did not."""
    row, tuned = decision.row, decision.table
    if row is None or tuned is None or row.line != line:
        return ""
    keys = (*tuned.table.exact_keys, *tuned.table.log_keys)
    values = zip(keys, (*row.exact, *row.log), strict=True)
    shape = " ".join(f"{key.name}={value}" for key, value in values)
    return f"{shape}, the nearest of {len(tuned.table.rows)}"


def _unranked(decision: Decision) -> list[str]:
    """Return the candidates that no step looked at, and whether they could run."""
    spec, call, device = decision.spec, decision.call, decision.device
    seen = {step.choice for step in decision.steps} | {decision.choice}
    return [
        f"{each} ({'can' if spec.can_run(each, call, device) else 'cannot'} run)"
        for each in spec.candidates(call.dtype, device.kind)
        if each not in seen
    ]


def _reason(decision: Decision) -> str:
    """Say what a decision rests on."""
    if decision.origin is Origin.PINNED:
        return "pinned"
    suffix = f", narrowed by the pin {decision.pin!r}" if decision.pin else ""
    if decision.origin is Origin.LAST_RESORT:
        rule = "last resort: no table of this device names a candidate that can run"
        return rule + suffix
    rule = "first candidate of the nearest row that can run"
    return f"{rule} ({decision.origin.value}){suffix}"
