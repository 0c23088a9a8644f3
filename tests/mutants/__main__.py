"""Break each guard of the package once, in a copy, and see the tests notice.

``python tests/mutants`` runs all mutations, ``python tests/mutants WORD...`` those
whose name or file holds one of the words. It exits with 1 if a mutation survives. The
tree that it is started from is never written to.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from mutation import ROOT
from of_memory import MUTATIONS as OF_MEMORY
from of_reuse import MUTATIONS as OF_REUSE
from of_running import MUTATIONS as OF_RUNNING
from of_selection import MUTATIONS as OF_SELECTION

MUTATIONS = (*OF_SELECTION, *OF_RUNNING, *OF_MEMORY, *OF_REUSE)
PARTS = ("batchlas", "tests", "tuned", "docs", "pyproject.toml")
SECONDS = 300
FAILED = 1  # pytest's code for tests that ran and failed; others are faults of ours


def run_tests(tree, tests, seconds=SECONDS):
    """Return pytest's exit code and its output; None where it had to be killed."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    command += ["-m", "not slow", "--no-header", *(f"tests/{test}" for test in tests)]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("BATCHLAS_")}
    # No byte code: a mutation may leave a file's size and second of change alone.
    environment |= {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            check=False,
            cwd=tree,
            env=environment,
            text=True,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        return None, f"killed after {seconds} s"
    return done.returncode, done.stdout + done.stderr


def verdict(tree, mutation):
    """Return whether the tests notice, and what there is to say."""
    path = tree / mutation.path
    whole = path.read_text(encoding="utf-8")
    path.write_text(mutation.broken(whole), encoding="utf-8")
    try:
        code, output = run_tests(tree, mutation.tests)
    finally:
        path.write_text(whole, encoding="utf-8")
    if code is None:
        return True, output  # without the guard it hangs
    return (
        code == FAILED,
        "" if code == FAILED else f"exit code {code}\n{output[-800:]}",
    )


def copy_of_the_tree(folder):
    """Copy what tests need; no byte code, which could be of the original."""
    skipped = shutil.ignore_patterns("__pycache__", "*.pyc", ".hypothesis")
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, folder / part, ignore=skipped)
        else:
            shutil.copy2(source, folder / part)
    return folder


def chosen(words):
    return [
        each
        for each in MUTATIONS
        if not words or any(word in f"{each.guards} {each.file}" for word in words)
    ]


def main(words):
    mutations = chosen(words)
    with tempfile.TemporaryDirectory(prefix="batchlas-mutants-") as folder:
        tree = copy_of_the_tree(Path(folder))
        tests = dict.fromkeys(test for each in mutations for test in each.tests)
        code, output = run_tests(tree, tests, 6 * SECONDS)
        if code != 0:
            print(output, "\nthe tests must pass before anything is broken")
            return 2
        survivors = 0
        for mutation in mutations:
            start = time.perf_counter()
            caught, text = verdict(tree, mutation)
            survivors += not caught
            word = "caught" if caught else "MISSED"
            seconds = time.perf_counter() - start
            print(f"{word} {seconds:5.1f} s  {mutation.file}: {mutation.guards}", text)
            sys.stdout.flush()
    print(f"{len(mutations) - survivors} of {len(mutations)} mutations caught")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
