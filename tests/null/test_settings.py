"""Settings: one snapshot, three sources, and errors that name the variable."""

from __future__ import annotations

import dataclasses
import os
import warnings

import pytest
from interpreter import run_python

import batchlas
from batchlas._ops import SPECS
from batchlas._runtime import settings as module
from batchlas._runtime.settings import settings
from batchlas.exceptions import BatchlasWarning, SettingsError

# Every variable that can be wrong in itself, with a text that is.
BAD = {
    "BATCHLAS_SELECT_TRACE": "maybe",
    "BATCHLAS_KERNEL_TRACE": "sometimes",
    "BATCHLAS_PROFILING": "3",
    "BATCHLAS_NO_VENDOR": "2",
    "BATCHLAS_USER_TABLES": "mine",
    "BATCHLAS_NUM_THREADS": "0",
    "BATCHLAS_SYCL_RENDERER": "cuda",
    "BATCHLAS_BLAS_HEALTH": "fine",
    "BATCHLAS_SKIP_FINITE_CHECK": "please",
    "BATCHLAS_COVERAGE_OUT": "/no/such/folder/coverage",
}
ROUTES = tuple(f"BATCHLAS_{spec.op.upper()}_ROUTE" for spec in SPECS)


def test_every_op_has_a_route_and_every_route_an_op():
    assert {spec.op for spec in SPECS} == set(module.ROUTED_OPS)


def test_every_variable_has_a_test_with_a_bad_text():
    tested = {*BAD, *ROUTES, "BATCHLAS_TUNED_DIR", "BATCHLAS_ALLOW_UNSAFE"}
    assert tested == set(module.VARIABLES)


@pytest.mark.parametrize("name", BAD)
def test_a_bad_text_raises_an_error_that_names_the_variable(name):
    before = settings()
    with (
        pytest.raises(SettingsError, match=f"{name}='?{BAD[name]}"),
        batchlas.scoped_env(**{name: BAD[name]}),
    ):
        pass
    assert settings() == dataclasses.replace(before, generation=settings().generation)


@pytest.mark.parametrize("text", ["", "many", "-1", "1.5", "0x2"])
def test_a_number_of_threads_is_a_positive_integer(text):
    with (
        pytest.raises(SettingsError, match="not a positive integer"),
        batchlas.scoped_env(BATCHLAS_NUM_THREADS=text),
    ):
        pass


def test_a_bad_gate_raises_an_error_that_names_it():
    with (
        pytest.raises(SettingsError, match="BATCHLAS_ALLOW_UNSAFE='perhaps'"),
        batchlas.scoped_env(
            BATCHLAS_SKIP_FINITE_CHECK="1", BATCHLAS_ALLOW_UNSAFE="perhaps"
        ),
    ):
        pass


@pytest.mark.parametrize("name", [*BAD, *ROUTES])
def test_a_bad_variable_stops_the_first_call(name):
    """In a fresh process, where no valid snapshot exists yet."""
    done = run_python(
        """
        import numpy as np, batchlas
        for function in ("cholesky", "eigh", "svd"):
            vars(batchlas.linalg)[function](np.eye(2))
        """,
        check=False,
        **{name: BAD.get(name, "no:such=choice")},
    )
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert name in last
    assert "Error" in last.partition(":")[0]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("nonsense\n", 1),
        ("# op=potrf device=DEVICE source=measured\n# keys: dtype:exact n:log\nx\n", 3),
        (
            (
                "# op=potrf device=DEVICE source=measured\n# keys: dtype:exact n:log\n"
                "dtype=float64 n=4 | vender 1.0\n"
            ),
            3,
        ),
    ],
    ids=["no-header", "not-a-row", "unknown-family"],
)
def test_a_broken_table_stops_the_call_and_names_file_and_line(tmp_path, text, line):
    from batchlas._runtime.devices import host_cpu_key

    key, _ = host_cpu_key()
    path = tmp_path / f"potrf.{key}.txt"
    path.write_text(text.replace("DEVICE", key), encoding="utf-8")
    done = run_python(
        "import numpy as np, batchlas; batchlas.linalg.cholesky(np.eye(4))",
        check=False,
        BATCHLAS_TUNED_DIR=str(tmp_path),
    )
    assert done.returncode == 1
    assert f"TableError: {path}:{line}: " in done.stderr


def test_a_tuned_folder_that_is_not_there_is_warned_of():
    done = run_python(
        "import numpy as np, batchlas; batchlas.linalg.cholesky(np.eye(4))",
        BATCHLAS_TUNED_DIR="/no/such/folder",
    )
    assert "BATCHLAS_TUNED_DIR='/no/such/folder' is not a folder" in done.stderr


@pytest.mark.parametrize("text", ["1", "true", "TRUE", "on", "yes", " On "])
def test_a_switch_on(text):
    with batchlas.scoped_env(BATCHLAS_SELECT_TRACE=text) as now:
        assert now.select_trace is True


@pytest.mark.parametrize("text", ["0", "false", "off", "OFF", "no"])
def test_a_switch_off(text):
    with batchlas.scoped_env(BATCHLAS_SELECT_TRACE=text) as now:
        assert now.select_trace is False


@pytest.mark.parametrize("name", ["tuned_dir", "coverage_out"])
def test_an_empty_path_is_no_path(name):
    with batchlas.scoped_env(**{f"BATCHLAS_{name.upper()}": ""}) as now:
        assert getattr(now, name) is None


def test_an_unsafe_setting_needs_the_gate():
    with (
        pytest.warns(BatchlasWarning, match="SKIP_FINITE_CHECK is unsafe and was ign"),
        batchlas.scoped_env(
            BATCHLAS_SKIP_FINITE_CHECK="1", BATCHLAS_ALLOW_UNSAFE=None
        ) as now,
    ):
        assert now.skip_finite_check is False


def test_the_gate_lets_an_unsafe_setting_pass():
    with batchlas.scoped_env(
        BATCHLAS_SKIP_FINITE_CHECK="1", BATCHLAS_ALLOW_UNSAFE="1"
    ) as now:
        assert now.skip_finite_check is True


def test_the_safe_direction_needs_no_gate():
    with batchlas.scoped_env(BATCHLAS_SKIP_FINITE_CHECK="0") as now:
        assert now.skip_finite_check is False


def test_an_unknown_variable_is_warned_of_with_the_nearest_name():
    with (
        pytest.warns(BatchlasWarning, match="NUM_THREAD .*near: BATCHLAS_NUM_THREADS"),
        batchlas.scoped_env(BATCHLAS_NUM_THREAD="2"),
    ):
        pass
    with warnings.catch_warnings(), batchlas.scoped_env(BATCHLAS_NUM_THREAD="3"):
        warnings.simplefilter("error")  # once per name is enough


def test_scoped_env_nests_and_reverts():
    outer = os.environ.get("BATCHLAS_NUM_THREADS")
    with batchlas.scoped_env(BATCHLAS_NUM_THREADS="3"):
        with batchlas.scoped_env(BATCHLAS_NUM_THREADS="2", BATCHLAS_SELECT_TRACE="1"):
            assert settings().num_threads == 2
            assert settings().select_trace
        assert settings().num_threads == 3
        assert not settings().select_trace
        with batchlas.scoped_env(BATCHLAS_NUM_THREADS=None):
            assert settings().num_threads is None
        assert settings().num_threads == 3
    assert os.environ.get("BATCHLAS_NUM_THREADS") == outer


def test_scoped_env_reverts_after_an_error():
    with pytest.raises(KeyError), batchlas.scoped_env(BATCHLAS_NUM_THREADS="3"):
        raise KeyError
    assert "BATCHLAS_NUM_THREADS" not in os.environ
    assert settings().num_threads is None


def test_the_environment_is_read_again_only_when_asked(monkeypatch):
    monkeypatch.setenv("BATCHLAS_NUM_THREADS", "3")
    assert settings().num_threads is None
    assert batchlas.reload_settings().num_threads == 3
    assert settings().num_threads == 3
    monkeypatch.delenv("BATCHLAS_NUM_THREADS")
    assert settings().num_threads == 3
    assert batchlas.reload_settings().num_threads is None


def test_a_snapshot_is_frozen_and_numbered():
    now = settings()
    with pytest.raises(dataclasses.FrozenInstanceError):
        now.num_threads = 2
    with pytest.raises(TypeError):
        now.routes["potrf"] = "vendor"
    assert batchlas.reload_settings().generation > now.generation


CONFIGURE = {
    "a default is set": """
        batchlas.configure(num_threads=1, routes={"potrf": "threads"})
        assert settings().num_threads == 1
        assert batchlas.explain("cholesky", np.eye(2)).choice == "threads"
    """,
    "a second call replaces the first": """
        batchlas.configure(num_threads=1)
        batchlas.configure(select_trace=False)
        assert settings().num_threads is None
    """,
    "it comes before the first call": """
        batchlas.linalg.cholesky(np.eye(2))
        fails(RuntimeError, "before the first", num_threads=1)
    """,
    "explain closes it too": """
        batchlas.explain("eigh", np.eye(2))
        fails(RuntimeError, "before the first", num_threads=1)
    """,
    "a refused call changes nothing": """
        batchlas.linalg.cholesky(np.eye(2))
        fails(RuntimeError, "before the first", num_threads=1)
        assert settings().num_threads is None
    """,
    "an unknown field": """
        fails(SettingsError, "thread_num", thread_num=1)
        fails(SettingsError, "generation", generation=1)
    """,
    "an unknown op": """
        fails(SettingsError, "potrs", routes={"potrs": "vendor"})
    """,
    "a value that the variable could not have": """
        fails(SettingsError, "configure(num_threads=)='0'", num_threads=0)
        fails(SettingsError, "configure(num_threads=)='True'", num_threads=True)
        fails(SettingsError, "configure(no_vendor=)='maybe'", no_vendor="maybe")
        fails(SettingsError, "configure(sycl_renderer=)='cuda'", sycl_renderer="cuda")
        fails(SettingsError, "configure(routes=) got 5", routes=5)
        assert settings().num_threads is None
    """,
    "a path may be a path": """
        from pathlib import Path
        batchlas.configure(tuned_dir=Path("."), no_vendor=False, num_threads=None)
        assert settings().tuned_dir == "."
    """,
    "an exported variable wins": """
        os.environ["BATCHLAS_NUM_THREADS"] = "2"
        batchlas.configure(num_threads=1, no_vendor=False)
        assert settings().num_threads == 2
        del os.environ["BATCHLAS_NUM_THREADS"]
        assert batchlas.reload_settings().num_threads == 1
    """,
}


@pytest.mark.parametrize("code", CONFIGURE.values(), ids=CONFIGURE)
def test_configure(code):
    run_python(
        f"""
        import os
        import numpy as np, batchlas
        from batchlas._runtime.settings import settings
        from batchlas.exceptions import SettingsError
        def fails(kind, text, **changes):
            try:
                batchlas.configure(**changes)
            except kind as error:
                assert text in str(error), error
            else:
                raise AssertionError("no error")
        {code}
        """
    )
