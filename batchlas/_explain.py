"""explain: which kernel a call would run, from which table and row, and why.

Nothing runs. The decision comes from the very function that the call itself asks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from batchlas._dispatch import backend_of
from batchlas._ops import gesvd, potrf, syev
from batchlas._runtime.lease import measured_bytes
from batchlas._select import Decision, decide
from batchlas._select.walk import Origin
from batchlas.linalg._arguments import stack_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from batchlas._backends import Backend


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
    question = _QUESTIONS.get(function)
    if question is None:
        message = f"explain({function!r}): allowed: {', '.join(_QUESTIONS)}"
        raise ValueError(message)
    backend = backend_of(a)
    if backend is None:
        message = f"{type(a).__name__} computes {function} itself (__array_function__)"
        raise TypeError(message)
    square = not function.startswith("svd") or bool(options.get("hermitian"))
    array = stack_of(backend, a, square=square).array
    if array.size == 0:
        message = f"a stack of shape {array.shape} is empty: nothing runs for it"
        raise ValueError(message)
    spec, call = question(backend, array, **options)
    decision = decide(spec, call, backend.device(array))
    layout = spec.scratch(decision.choice, call, decision.device)
    scratch = 0 if layout is None else measured_bytes(layout)
    text = _account(function, decision, scratch)
    return Explanation(function, str(decision.choice), scratch, text)


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
    if decision.row is not None and decision.table is not None:
        table, row = decision.table.table, decision.row
        keys = (*table.exact_keys, *table.log_keys)
        values = zip(keys, (*row.exact, *row.log), strict=True)
        shape = " ".join(f"{key.name}={value}" for key, value in values)
        lines.append(f"  row     {table.file}:{row.line}: {shape}")
    for step in decision.steps:
        time = "untimed" if step.ms is None else f"{step.ms:g} ms"
        lines.append(f"    {step.choice!s:<24} {time:<12} {step.verdict.value}")
    return "\n".join(lines)


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
