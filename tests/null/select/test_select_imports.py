"""Selection stands on the run-time layer alone."""

import pkgutil
import subprocess
import sys

import batchlas
from batchlas import _select

# batchlas itself is replaced by an empty package, since its __init__ brings everything.
PROGRAM = """
import sys, types
package = types.ModuleType("batchlas")
package.__path__ = {path!r}
sys.modules["batchlas"] = package
import batchlas.exceptions, batchlas._runtime.settings, batchlas._runtime.devices
base = set(sys.modules)
for name in {names}:
    __import__("batchlas._select." + name)
new = set(sys.modules) - base
print(*sorted(n for n in new if n.partition(".")[0] not in sys.stdlib_module_names))
"""


def test_what_importing_every_module_brings_in():
    names = [module.name for module in pkgutil.iter_modules(_select.__path__)]
    assert "table_parser" in names
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "error",
            "-c",
            PROGRAM.format(names=names, path=list(batchlas.__path__)),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    expected = ["batchlas._select", *(f"batchlas._select.{each}" for each in names)]
    assert done.stdout.split() == sorted(expected)


def test_the_surface_is_private_and_complete():
    assert sorted(_select.__all__) == list(_select.__all__)
    for name in ("OpSpec", "Family", "family", "parse", "pick", "decide", "run"):
        assert name in _select.__all__
