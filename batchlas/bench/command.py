"""``python -m batchlas bench``: tables, CSV and pictures of batchlas and its peers."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from batchlas.bench import benchmark
from batchlas.bench.functions import FUNCTIONS, function_of
from batchlas.bench.race import CORETYPE
from batchlas.bench.result import PEERS, geometric_mean, write_csv
from batchlas.tune.progress import progress
from batchlas.tune.targets import targets

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from batchlas._runtime.devices import Device
    from batchlas.bench.result import Result

_ORDERS = (2, 3, 4, 8, 16, 32, 64, 128)
_MAP_ORDERS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
_MAP_BATCHES = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536)
_USAGE = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommand's options."""
    parser.description = (
        "Compare batchlas with the array libraries that are installed, at about the "
        "same number of elements for every order."
    )
    add = parser.add_argument
    add("functions", nargs="*", metavar="function", help=f"of {', '.join(FUNCTIONS)}")
    add("--orders", type=_words(int), default=_ORDERS, help="such as 2,4,8")
    add("--dtypes", type=_words(str), default=("float64", "float32"))
    add("--elements", type=float, default=1e6, help="of a stack, about (1e6)")
    add("--batch", type=int, help="matrices in a stack, instead of --elements")
    add("--against", type=_words(str), default=PEERS, help=f"of {', '.join(PEERS)}")
    add("--array", choices=("numpy", "dpnp", "cupy"), help="what batchlas is given")
    add("--budget", type=float, default=0.5, help="seconds for each shape (0.5)")
    add("--csv", type=Path, help="write all rows there")
    add("--plots", type=Path, help="folder for pictures (needs matplotlib)")


def _words(kind: Callable[[str], object]) -> Callable[[str], tuple[object, ...]]:
    return lambda text: tuple(kind(each) for each in text.split(","))


def run(given: argparse.Namespace) -> int:
    """Carry the subcommand out; return the exit status."""
    if CORETYPE in os.environ and "numpy" in given.against:
        return _without_coretype(given.words)
    if given.plots and importlib.util.find_spec("matplotlib") is None:
        print(
            "--plots needs matplotlib: pip install 'batchlas[bench]'", file=sys.stderr
        )
        return _USAGE
    try:
        results = _results(given)
    except ValueError as error:
        print(f"batchlas bench: {error}", file=sys.stderr)
        return _USAGE
    print(_summary(results))
    if given.csv:
        write_csv(results, given.csv)
        print(f"wrote {given.csv}")
    if given.plots:
        for path in _pictures(results, given.plots):
            print(f"wrote {path}")
    return 0


def _without_coretype(words: Sequence[str]) -> int:
    """Start again without the variable that OpenBLAS reads when it is loaded."""
    environment = {k: v for k, v in os.environ.items() if k != CORETYPE}
    print(f"starting without {CORETYPE}, which slows NumPy down", file=sys.stderr)
    command = [sys.executable, "-m", "batchlas", *words]
    return subprocess.run(command, env=environment, check=False).returncode


def _results(given: argparse.Namespace) -> list[Result]:
    todo = [
        (function_of(name).name, dtype, n)
        for name in given.functions or FUNCTIONS
        for dtype in given.dtypes
        for n in given.orders
    ]
    results = []
    with progress() as shown:
        for done, (name, dtype, n) in enumerate(todo):
            batch = given.batch or max(1, round(given.elements / n**2))
            left = 3 * given.budget * (len(todo) - done)
            shown.show(done, len(todo), left, f"{name} {dtype} n={n}")
            result = benchmark(
                name,
                (batch, n, n),
                dtype,
                given.against,
                array=given.array,
                budget=given.budget,
            )
            results.append(result)
            _print(result)
    return results


def _print(result: Result) -> None:
    """Print one table, in colour where rich is installed and somebody watches."""
    if not sys.stdout.isatty() or importlib.util.find_spec("rich") is None:
        print(result, flush=True)
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    console.print(Text(result.title, "bold"))
    styles = {True: "green", False: "red", None: ""}
    for line, won in result.lines():
        console.print(Text(f"  {line}", styles[won]))


def _summary(results: list[Result]) -> str:
    """Return per function and dtype how batchlas compares with the best peer."""
    lines = ["", "against the best peer (geometric mean, worst, orders lost):"]
    for group in _groups(results):
        ratios = {
            each.shape[-1]: ratio
            for each in group
            if (best := each.best_peer) is not None
            and (ratio := each.times_faster(best)) is not None
        }
        if not ratios:
            continue
        lost = [str(n) for n, ratio in ratios.items() if ratio < 1]
        mean = geometric_mean(list(ratios.values()))
        lines.append(
            f"  {group[0].function:<10} {group[0].dtype:<11} {mean:7.2f}x "
            f"{min(ratios.values()):7.2f}x  {', '.join(lost) or 'none'}"
        )
    return "\n".join(lines)


def _groups(results: list[Result]) -> list[list[Result]]:
    groups: dict[tuple[str, str], list[Result]] = {}
    for each in results:
        groups.setdefault((each.function, each.dtype), []).append(each)
    return list(groups.values())


def _pictures(results: list[Result], folder: Path) -> list[Path]:
    """Draw times and map of every function and dtype."""
    from batchlas.bench.map import chosen_map
    from batchlas.bench.plots import plot_map, plot_orders

    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for group in _groups(results):
        first = group[0]
        stem = f"{first.function}-{first.dtype}-{first.array}-{first.device}"
        paths += [folder / f"{stem}.png", folder / f"{stem}-map.png"]
        plot_orders(group, paths[-2])
        function = function_of(first.function)
        shapes = _MAP_ORDERS, _MAP_BATCHES
        plot_map(chosen_map(function, first.dtype, _device(first), *shapes), paths[-1])
    return paths


def _device(result: Result) -> Device:
    asked = result.device, result.array
    return next(
        each.device
        for each in targets()
        if (each.device.key, each.device.kind) == asked
    )
