"""State that a process has once: statements 66 and 152 of the specification.

Each program runs in a process of its own, since it loads batchlas' modules again.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from interpreter import ROOT, run_python

# How a process comes to run a module of ours a second time.
AGAIN = {
    "reload": """
for name in sorted(m for m in sys.modules if m.partition(".")[0] == "batchlas"):
    importlib.reload(sys.modules[name])
""",
    "removed and found on another path": """
for name in [m for m in sys.modules if m.partition(".")[0] == "batchlas"]:
    del sys.modules[name]
sys.path.insert(0, {other!r})
""",
}
PROGRAM = """
import importlib, sys, warnings
import numpy as np
stack = np.tile(np.diag([1.0, 4, 9]), (50, 1, 1))
bad = np.array(stack)
bad[3] *= -1
import batchlas
{before}
{again}
import batchlas
{after}
"""


@pytest.fixture(params=AGAIN)
def twice(request, tmp_path):
    """Return a function that runs two parts of a program around a second load."""
    (tmp_path / "batchlas").symlink_to(ROOT / "batchlas", target_is_directory=True)
    (tmp_path / "tuned").symlink_to(ROOT / "tuned", target_is_directory=True)
    again = AGAIN[request.param].replace("{other!r}", repr(str(tmp_path)))

    def run(before, after, **variables):
        code = PROGRAM.format(before=before, again=again, after=after)
        return run_python(code, **variables).stdout

    return run


def test_what_was_configured_stays(twice):
    text = twice(
        "batchlas.configure(num_threads=1)",
        """
from batchlas._runtime.settings import settings
print(settings().num_threads)
""",
    )
    assert text == "1\n"


def test_configure_stays_closed(twice):
    text = twice(
        "batchlas.linalg.eigh(stack)",
        """
try:
    batchlas.configure(num_threads=1)
except RuntimeError as error:
    print(error)
""",
    )
    assert "must come before" in text


def test_an_open_errstate_stays_open(twice):
    """The block was opened by the first copy and is seen by the second one."""
    text = twice(
        "block = batchlas.errstate(linalg='nan')\nblock.__enter__()",
        """
print(np.isnan(batchlas.linalg.cholesky(bad)[3]).any())
block.__exit__()
try:
    batchlas.linalg.cholesky(bad)
except np.linalg.LinAlgError as error:
    print(error.indices)
""",
    )
    assert text == "True\n((3,),)\n"


def test_the_queue_stays_the_same(twice):
    text = twice(
        """
from batchlas._runtime import sycl
queue = sycl.host_queue()
""",
        """
from batchlas._runtime import sycl
print(sycl.host_queue() is queue)
""",
    )
    assert text == "True\n"


def test_the_limit_of_blas_comes_back(twice):
    """Two holds that do not know each other would leave BLAS at one thread."""
    text = twice(
        """
import threadpoolctl
threadpoolctl.threadpool_limits(2)
from batchlas._runtime.blas import blas
first = blas()
first.__enter__()
""",
        """
from batchlas._runtime.blas import blas
with blas():
    first.__exit__()
print({x["num_threads"] for x in threadpoolctl.threadpool_info()})
""",
    )
    assert text == "{2}\n"


def test_install_is_undone_by_the_second_copy(twice):
    text = twice(
        """
numpys = np.linalg.eigh
batchlas.install()
""",
        """
batchlas.install()
batchlas.uninstall()
print(np.linalg.eigh is numpys, len(sys.meta_path) == len(set(map(id, sys.meta_path))))
print([f for f in sys.meta_path if type(f).__module__.startswith("batchlas")])
""",
    )
    assert text == "True True\n[]\n"


def test_numpy_s_own_functions_are_still_known(twice):
    """What other libraries are given by NEP 18 is NumPy's function, not a copy's."""
    text = twice(
        "numpys = np.linalg.eigh\nbatchlas.install()",
        """
class Other:
    def __array_function__(self, function, types, args, kwargs):
        return function
print(batchlas.linalg.eigh(Other()) is numpys)
""",
    )
    assert text == "True\n"


def test_a_warning_is_not_given_again(twice):
    text = twice(
        """
from batchlas._runtime.notices import warn_once
with warnings.catch_warnings(record=True) as first:
    warnings.simplefilter("always")
    warn_once("cause", "text")
""",
        """
from batchlas._runtime.notices import warn_once
with warnings.catch_warnings(record=True) as second:
    warnings.simplefilter("always")
    warn_once("cause", "text")
print(len(first), len(second))
""",
    )
    assert text == "1 0\n"


def test_a_pin_that_is_open_stays_in_force(twice):
    text = twice(
        """
from batchlas._select import ScopedPin
ScopedPin("syev", "threads").__enter__()
""",
        "print(batchlas.explain('eigh', stack).choice)",
    )
    assert text == "threads\n"


def test_coverage_counts_the_calls_of_both_copies(twice, tmp_path):
    out = tmp_path / "coverage"
    twice(
        "batchlas.linalg.eigh(stack)",
        "batchlas.linalg.eigh(stack)",
        BATCHLAS_COVERAGE_OUT=str(out),
        BATCHLAS_SYEV_ROUTE="vendor",
    )
    (file,) = tmp_path.glob("coverage.*")
    (row,) = [r for r in file.read_text().splitlines() if r.startswith("reached,syev")]
    assert ",vendor,2," in row


def test_scratch_and_kept_results_are_one_pool(twice):
    text = twice(
        """
from batchlas._backends import numpy as backend
from batchlas._runtime import reuse
arena, pool = backend.workspace(stack), reuse._pool
""",
        """
from batchlas._backends import numpy as backend
from batchlas._runtime import reuse
print(backend.workspace(stack).memory is arena.memory, reuse._pool is pool)
""",
    )
    assert text == "True True\n"


def test_it_cannot_be_imported_under_another_name(tmp_path):
    """66, 70: a second spelling would bring second types."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "batchlas").symlink_to(ROOT / "batchlas")
    done = run_python(
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\nimport elsewhere.batchlas",
        check=False,
    )
    assert "ImportError: batchlas cannot be imported as elsewhere.batchlas" in (
        done.stderr
    )


# State that may exist twice, or is no state: caches that a second copy fills again.
CACHES = {
    "_memo": "decisions, keyed on all they depend on",
    "_by_type": "backends by type",
    "_devices": "device records of CuPy, keyed on the settings",
    "_loaded": "imported adapters",
    "_kept": "host memory in use by a GPU's queue",
    "_kept_for_graphs": "the same for captured graphs",
    "_computed_here": "ndarray subclasses of this copy",
    "_compiled": "CUDA kernels that were compiled, as far as this copy knows",
    "_locks": "locks of this copy, renewed in a forked child",
    "_abandoned": "what a forked child keeps alive",
}


def test_no_other_module_has_state_of_its_own():
    """A mutable global that is not kept process-wide is a cache, and listed here."""
    pattern = re.compile(
        r"^(_[a-z]\w*)(?:: [^=]+)? = (?:\[\]|\{\}|set\(\)|deque\(\)|None|0|False"
        r"|weakref\.\w+\(\)|[\w.]*Lock\(\))(?:  #.*)?$",
        re.MULTILINE,
    )
    found = {
        name
        for path in Path(ROOT, "batchlas").rglob("*.py")
        for name in pattern.findall(path.read_text(encoding="utf-8"))
    }
    assert found <= {*CACHES, "_lock"}
    assert sys.modules["_batchlas_state"]
