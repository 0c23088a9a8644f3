"""The one place that reads the BATCHLAS_* environment variables.

Decided here: which variables exist, what their texts mean, and which of two sources
wins. A set variable beats ``configure()``, which beats the default. Everything else
reads the frozen snapshot that ``settings()`` returns, at the point of use.
"""

from __future__ import annotations

import difflib
import os
import warnings
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from batchlas._runtime.forks import Lock
from batchlas._runtime.state import process_wide
from batchlas.exceptions import BatchlasWarning, SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PREFIX = "BATCHLAS_"
ALLOW_UNSAFE = "BATCHLAS_ALLOW_UNSAFE"

# Ops that are chosen by a candidate list; each has a BATCHLAS_<OP>_ROUTE variable. A
# test compares this with the ops that exist, since a missing name has no pin.
ROUTED_OPS = ("potrf", "syev", "gesvd")

SYCL_RENDERERS = ("auto", "opencl", "dpex")
BLAS_HEALTH_MODES = ("off", "warn", "error")

_TRUE = frozenset({"1", "true", "on", "yes"})
_FALSE = frozenset({"0", "false", "off", "no"})


@dataclass(frozen=True, slots=True)
class Settings:
    """One consistent reading of all settings.

    Attributes
    ----------
    routes : mapping of str to str
        The pin of each op, as written; an op without one is absent.
    select_trace : bool
        Print one line per decision to stderr.
    kernel_trace : bool
        Print one line per kernel launch to stderr; implies `profiling`.
    profiling : bool
        Have the queue for NumPy arrays keep the times of its kernels.
    coverage_out : str or None
        Path prefix of the coverage CSV that is written at exit.
    tuned_dir : str or None
        Directory whose tables replace the user's and the shipped ones.
    user_tables : bool
        Ask the tables that the user's ``python -m batchlas tune`` has written.
    no_vendor : bool
        Behave as if no vendor library were installed.
    num_threads : int or None
        Most threads that a call on NumPy arrays may use; None for no limit of ours.
    sycl_renderer : {"auto", "opencl", "dpex"}
        What prints kernels for SYCL devices; auto is numba-dpex for dpnp arrays where
        it is installed, else OpenCL C.
    blas_health : {"warn", "error", "off"}
        What a BLAS of the host does that fails its check; "off", which is unsafe, does
        not check.
    skip_finite_check : bool
        Unsafe: hand matrices with NaN or infinity to LAPACK, which may never return.
    generation : int
        Grows with every new snapshot; caches that depend on settings carry it.
    """

    routes: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    select_trace: bool = False
    kernel_trace: bool = False
    profiling: bool = False
    coverage_out: str | None = None
    tuned_dir: str | None = None
    user_tables: bool = True
    no_vendor: bool = False
    num_threads: int | None = None
    sycl_renderer: str = "auto"
    blas_health: str = "warn"
    skip_finite_check: bool = False
    generation: int = 0


def _bool(name: str, text: str) -> bool:
    word = text.strip().lower()
    if word in _TRUE or word in _FALSE:
        return word in _TRUE
    allowed = ", ".join(sorted(_TRUE | _FALSE))
    message = f"{name}={text!r} is not a switch; allowed: {allowed}"
    raise SettingsError(message)


def _positive_int(name: str, text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        message = f"{name}={text!r} is not a positive integer"
        raise SettingsError(message)
    return value


def _one_of(*words: str) -> Callable[[str, str], str]:
    """Return a parser that takes one of a few words."""

    def parse(name: str, text: str) -> str:
        word = text.strip().lower()
        if word in words:
            return word
        message = f"{name}={text!r}; allowed: {', '.join(words)}"
        raise SettingsError(message)

    return parse


def _path(_name: str, text: str) -> str | None:
    return text or None  # set but empty means: as if unset


def _coverage_path(name: str, text: str) -> str | None:
    if not text:
        return None
    folder = Path(text).absolute().parent
    # Path.is_dir raises for names that are too long.
    if not os.path.isdir(folder):  # noqa: PTH112
        message = f"{name}={text!r}: the folder {folder} does not exist"
        raise SettingsError(message)
    return text


_PARSERS: dict[str, Callable[[str, str], object]] = {
    "select_trace": _bool,
    "kernel_trace": _bool,
    "profiling": _bool,
    "coverage_out": _coverage_path,
    "tuned_dir": _path,
    "user_tables": _bool,
    "no_vendor": _bool,
    "num_threads": _positive_int,
    "sycl_renderer": _one_of(*SYCL_RENDERERS),
    "blas_health": _one_of(*BLAS_HEALTH_MODES),
    "skip_finite_check": _bool,
}
# Only these directions are dangerous; switching a check back on never is.
_UNSAFE: dict[str, object] = {"skip_finite_check": True, "blas_health": "off"}

_ROUTE_VARIABLES = {f"{PREFIX}{op.upper()}_ROUTE": op for op in ROUTED_OPS}
# Read outside the snapshot: the gate itself, and what belongs to other tools of ours.
VARIABLES = (
    *_ROUTE_VARIABLES,
    *(PREFIX + name.upper() for name in _PARSERS),
    ALLOW_UNSAFE,
)


class _State:
    """What ``configure`` set, the snapshot in force, and whether a call has used it."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.configured = Settings()
        self.snapshot: Settings | None = None
        self.used = False
        self.warned: set[str] = set()


_state = process_wide("settings", _State)


def settings() -> Settings:
    """Return the current snapshot, reading the environment on the first call."""
    return _state.snapshot or reload_settings()


def reload_settings() -> Settings:
    """Read the environment again, on top of what ``configure`` set.

    A change of ``os.environ`` is not seen before this is called, so that a size query
    and its call never disagree. Only variables that are set take part; the others keep
    their configured values.

    Returns
    -------
    Settings
        The new snapshot.

    Raises
    ------
    SettingsError
        If a variable has an unusable value. The old snapshot then stays in force.
    """
    with _state.lock:
        generation = 1 + (_state.snapshot.generation if _state.snapshot else 0)
        fresh = _from_environment(replace(_state.configured, generation=generation))
        if fresh.kernel_trace:  # both switches are one field to all who read it
            fresh = replace(fresh, profiling=True)
        _state.snapshot = fresh
        return fresh


def _from_environment(base: Settings) -> Settings:
    """Return `base` with every exported variable applied."""
    changes: dict[str, object] = {}
    for name, parse in _PARSERS.items():
        variable = PREFIX + name.upper()
        text = os.environ.get(variable)
        if text is not None:
            value = parse(variable, text)
            if _is_allowed(name, variable, value):
                changes[name] = value
    routes = dict(base.routes)
    for variable, op in _ROUTE_VARIABLES.items():
        text = os.environ.get(variable)
        if text is not None:
            routes[op] = text
    _warn_unknown_variables()
    return replace(base, routes=MappingProxyType(routes), **changes)  # type: ignore[arg-type]


def _is_allowed(name: str, variable: str, value: object) -> bool:
    """Refuse an unsafe value unless BATCHLAS_ALLOW_UNSAFE is on; warn once."""
    if name not in _UNSAFE or value != _UNSAFE[name]:
        return True
    if _bool(ALLOW_UNSAFE, os.environ.get(ALLOW_UNSAFE, "0")):
        return True
    _warn_once(
        variable,
        f"{variable} is unsafe and was ignored; set {ALLOW_UNSAFE}=1 to allow it",
    )
    return False


def _warn_unknown_variables() -> None:
    for name in os.environ:
        if name.startswith(PREFIX) and name not in VARIABLES:
            close = difflib.get_close_matches(name, VARIABLES, n=1, cutoff=0.0)
            _warn_once(name, f"{name} is not a variable of batchlas; near: {close[0]}")


def _warn_once(key: str, message: str) -> None:
    if key not in _state.warned:
        _state.warned.add(key)
        warnings.warn(message, BatchlasWarning, stacklevel=4)


def configure(**changes: object) -> None:
    """Set defaults for this process, before the first call that uses a device.

    Parameters
    ----------
    **changes
        Fields of the settings: ``routes`` (mapping of op to pin), ``select_trace``,
        ``kernel_trace``, ``profiling``, ``coverage_out``, ``tuned_dir``,
        ``user_tables``, ``no_vendor``, ``num_threads``, ``sycl_renderer``,
        ``blas_health``, ``skip_finite_check``. Those not named return to their
        defaults: a call replaces the whole configuration.

    Raises
    ------
    SettingsError
        For an unknown field.
    RuntimeError
        After the first batchlas call, since results may depend on the settings.

    Notes
    -----
    A variable that is set in the environment wins over ``configure``.

    Examples
    --------
    >>> batchlas.configure(num_threads=1)  # doctest: +SKIP
    """
    allowed = [f.name for f in fields(Settings) if f.name != "generation"]
    unknown = sorted(set(changes) - set(allowed))
    if unknown:
        message = f"configure() got {unknown}; allowed: {allowed}"
        raise SettingsError(message)
    with _state.lock:
        if _state.used:
            message = "configure() must come before the first batchlas call"
            raise RuntimeError(message)
        checked = {name: _checked(name, value) for name, value in changes.items()}
        _state.configured = Settings(**checked)  # type: ignore[arg-type]
        reload_settings()


def _checked(name: str, value: object) -> object:
    """Return a value that ``configure`` was given: what the variable may say as text.

    Raises
    ------
    SettingsError
        For a value that the field cannot have.
    """
    if name == "routes":
        return MappingProxyType(_checked_routes(value))
    if value == getattr(Settings(), name):
        return value
    return _PARSERS[name](f"configure({name}=)", str(value))


def _checked_routes(routes: object) -> dict[str, str]:
    if not isinstance(routes, Mapping):
        message = f"configure(routes=) got {routes!r}; allowed: a mapping of op to pin"
        raise SettingsError(message)
    pins = {op: str(pin) for op, pin in routes.items()}
    unknown = sorted(set(pins) - set(ROUTED_OPS))
    if unknown:
        message = f"configure(routes=) names {unknown}; ops: {list(ROUTED_OPS)}"
        raise SettingsError(message)
    return pins


def mark_used() -> None:
    """Close ``configure``; called by the first op call and the first device query."""
    if not _state.used:
        with _state.lock:
            _state.used = True


@contextmanager
def scoped_env(**variables: str | None) -> Iterator[Settings]:
    """Set environment variables for a block and reload the settings around it.

    Parameters
    ----------
    **variables : str or None
        Variables by full name; None removes one. The environment belongs to the whole
        process, so other threads see the change too.

    Yields
    ------
    Settings
        The snapshot in force inside the block.

    Examples
    --------
    >>> with batchlas.scoped_env(BATCHLAS_POTRF_ROUTE="vendor"):  # doctest: +SKIP
    ...     batchlas.linalg.cholesky(a)
    """
    old = {name: os.environ.get(name) for name in variables}
    try:
        _export(variables)
        yield reload_settings()
    finally:
        _export(old)
        reload_settings()


def _export(variables: Mapping[str, str | None]) -> None:
    for name, text in variables.items():
        if text is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = text
