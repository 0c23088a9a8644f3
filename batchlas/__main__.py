"""``python -m batchlas``: doctor, explain, tune, bench, and run for whole scripts."""

from __future__ import annotations

import argparse
import runpy
import sys
from pathlib import Path
from typing import Any

import batchlas
from batchlas import _explain_command
from batchlas.bench import command as bench
from batchlas.tune import command as tune

_COMMANDS: dict[str, tuple[Any, str]] = {
    "explain": (_explain_command, "which kernel a call runs, and why"),
    "tune": (tune, "measure this machine, write its tables"),
    "bench": (bench, "compare with the array libraries that are installed"),
}


def main(arguments: list[str] | None = None) -> int:
    """Run one subcommand; return the process's exit status."""
    parser = argparse.ArgumentParser(prog="batchlas", description=batchlas.__doc__)
    parser.add_argument(
        "--version", action="version", version=f"batchlas {batchlas.__version__}"
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("doctor", help="devices, libraries, and what mends them")
    run = commands.add_parser(
        "run", help="run a script whose numpy, cupy and dpnp linalg calls go here"
    )
    run.add_argument("script", type=Path)
    run.add_argument("arguments", nargs=argparse.REMAINDER, help="the script's own")
    for name, (module, text) in _COMMANDS.items():
        module.add_arguments(commands.add_parser(name, help=text))
    words = sys.argv[1:] if arguments is None else arguments
    given = parser.parse_args(words, argparse.Namespace(words=words))
    if given.command == "doctor":
        from batchlas import doctor

        print(doctor.report())
        return 0
    if given.command in _COMMANDS:
        status: int = _COMMANDS[given.command][0].run(given)
        return status
    return _run(given.script, given.arguments)


def _run(script: Path, arguments: list[str]) -> int:
    """Run a script as ``python script`` would, with batchlas installed."""
    if not script.is_file():
        print(f"batchlas run: no such file: {script}", file=sys.stderr)
        return 2
    sys.argv = [str(script), *arguments]
    sys.path[0] = str(script.resolve().parent)
    with batchlas.installed():
        runpy.run_path(str(script), run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
