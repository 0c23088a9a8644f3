"""``python -m batchlas explain``: the walk, for devices here and elsewhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import batchlas
from batchlas.__main__ import main
from batchlas._explain import FUNCTIONS, explain_call
from batchlas._ops import SPECS
from batchlas._select.absent import absent_device, usual_kind
from batchlas._select.inventory import DTYPES


def explained(capsys, *words):
    assert main(["explain", *words]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("function", FUNCTIONS)
def test_it_says_what_explain_says_of_an_array(function, capsys):
    stack = np.ones((300, 6, 6), np.float32)
    text = explained(capsys, function, "300x6x6", "float32", "--array", "numpy")
    assert text == f"{batchlas.explain(function, stack)}\n"


def test_a_device_that_is_not_here(capsys):
    text = explained(capsys, "eigh", "1000x8x8", "float32", "--device", "sm_90")
    assert "syev.sm_90.txt:" in text
    assert "array=cupy" in text
    assert "not here; assumed: 227 KiB" in text
    assert "(own table)" in text


def test_a_device_that_borrows(capsys):
    with pytest.warns(batchlas.exceptions.BorrowedTableWarning, match="sm_90 decides"):
        told = explain_call(
            "eigh", (10, 4, 4), "float64", absent_device("sm_86", "cupy")
        )
    assert "(borrowed table)" in str(told)
    assert "99 KiB" in str(told)


def test_options_are_the_functions_own(capsys):
    words = ("svd", "10x6x4", "float64", "full_matrices=False", "--array", "numpy")
    assert "vec=thin" in explained(capsys, *words)
    words = ("svd", "10x4x4", "float64", "hermitian=True", "compute_uv=False")
    assert "svd -> syev" in explained(capsys, *words)


def test_what_no_row_ranks_is_listed(capsys):
    from batchlas._runtime.devices import host_cpu_key
    from batchlas._select.testing import set_builtin_tables, use_shipped_tables

    key, _ = host_cpu_key()
    text = (
        f"# op=syev device={key} batchlas=1a2b3c4 kernels=0123abcd source=measured\n"
        "# keys: dtype:exact n:log\ndtype=float64 n=8 | threads 1\n"
    )
    set_builtin_tables({f"syev.{key}.txt": text})
    try:
        told = explained(capsys, "eigh", "10x8x8", "--array", "numpy")
    finally:
        use_shipped_tables()
    assert "unranked " in told
    assert "vendor (can run)" in told


def test_sizes_beyond_memory_and_beyond_32_bits(capsys):
    assert "batch=10000000000" in explained(capsys, "cholesky", "10000000000x64x64")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("eigh", "3x4x5"), "square"),
        (("eigh", "7"), "shape"),
        (("eigh", "0x3x3"), "shape"),
        (("qr", "3x3"), "choice"),
        (("eigh", "3x3", "float16"), "choice"),
        (("eigh", "3x3", "--device", "sm90"), "no table knows 'sm90'"),
        (("eigh", "3x3", "float64", "nonsense"), "name=value"),
        (("eigh", "3x3", "float64", "upper=True"), "upper"),
    ],
)
def test_bad_questions(words, why, capsys):
    try:
        status = main(["explain", *words])
    except SystemExit as stopped:  # argparse's own
        status = stopped.code
    assert status == 2
    assert why in capsys.readouterr().err


TUNED = Path(__file__).resolve().parents[2] / "tuned"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("key", ["sm_90", "cpu_avx512"])
@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.op)
def test_every_shipped_table_can_be_asked(spec, key, dtype):
    functions = {"potrf": "cholesky", "syev": "eigh", "gesvd": "svd"}
    device = absent_device(key, usual_kind(key))
    told = explain_call(functions[spec.op], (100, 8, 8), dtype, device)
    file = TUNED / f"{spec.op}.{key}.txt"
    rows = [line.split(" ", 1)[0] for line in file.read_text("utf-8").splitlines()]
    expected = file.name if f"dtype={dtype}" in rows else "last resort"
    assert expected in str(told)
