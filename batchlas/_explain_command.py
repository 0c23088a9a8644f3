"""``python -m batchlas explain eigh 1000x8x8 float32``: the walk, step by step."""

from __future__ import annotations

import ast
import re
import sys
from typing import TYPE_CHECKING, Any

from batchlas._explain import FUNCTIONS, explain_call
from batchlas._ops import SPECS
from batchlas._runtime.settings import settings
from batchlas._select.absent import absent_device, usual_kind
from batchlas._select.inventory import DTYPES
from batchlas._select.spec import KINDS
from batchlas._select.store import table_store
from batchlas.tune.targets import targets

if TYPE_CHECKING:
    import argparse

    from batchlas._runtime.devices import Device

_USAGE = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommand's options."""
    add = parser.add_argument
    add("function", choices=FUNCTIONS, help="a function of batchlas.linalg")
    add("shape", type=_shape, help="such as 1000x8x8")
    add("dtype", choices=DTYPES, nargs="?", default="float64")
    add(
        "options",
        nargs="*",
        metavar="name=value",
        help="the function's own, such as full_matrices=False",
    )
    add("--device", help="key of a device, here or not, such as sm_90")
    add("--array", choices=KINDS, help="kind of array (default: the device's usual)")


def _shape(text: str) -> tuple[int, ...]:
    if not re.fullmatch(r"[1-9][0-9]*(x[1-9][0-9]*)+", text):
        message = f"{text!r} is no shape such as 1000x8x8"
        raise ValueError(message)
    return tuple(int(each) for each in text.split("x"))


def run(given: argparse.Namespace) -> int:
    """Carry the subcommand out; return the exit status."""
    try:
        device = _device(given.device, given.array)
        options = dict(_option(word) for word in given.options)
        told = explain_call(given.function, given.shape, given.dtype, device, **options)
    except (ValueError, TypeError) as error:
        print(f"batchlas explain: {error}", file=sys.stderr)
        return _USAGE
    print(told)
    return 0


def _option(word: str) -> tuple[str, Any]:
    name, equals, text = word.partition("=")
    if not equals:
        message = f"{word!r} is not name=value"
        raise ValueError(message)
    try:
        return name, ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return name, text


def _device(key: str | None, kind: str | None) -> Device:
    """Return the record of a device that is here, or else of one that has tables."""
    here = [each.device for each in targets()]
    if key is None and kind is not None:
        key = next((each.key for each in here if each.kind == kind), None)
        if key is None:
            message = f"no device for {kind} arrays is here; name one with --device"
            raise ValueError(message)
    key = key or here[0].key
    kind = kind or usual_kind(key)
    found = [each for each in here if (each.key, each.kind) == (key, kind)]
    if found:
        return found[0]
    store = table_store(settings())
    known = {name for spec in SPECS for name in store.devices(spec.op)}
    known |= {each.key for each in here}
    if key not in known:
        message = f"no table knows {key!r}; known: {', '.join(sorted(known))}"
        raise ValueError(message)
    return absent_device(key, kind)
