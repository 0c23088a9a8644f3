"""The tables that are shipped: well formed, complete, and of use at their own keys."""

from __future__ import annotations

import pytest

from batchlas._ops import SPECS
from batchlas._runtime.settings import Settings
from batchlas._select import inventory
from batchlas._select.absent import absent_device
from batchlas._select.store import table_store

STORE = table_store(Settings(generation=-1))
TABLES = [
    (spec, file.device, table)
    for spec in SPECS
    for file in STORE.files(spec.op)
    for table in file.tables().values()
]
IDS = [f"{spec.op}-{device}-{table.dtype}" for spec, device, table in TABLES]
TIE = 1.03


def calls_of(spec, table):
    """Yield every row with the call that it was measured for."""
    names = [key.name for key in (*table.exact_keys, *table.log_keys)]
    for row in table.rows:
        values = dict(zip(names, (*row.exact, *row.log), strict=True))
        yield row, {"dtype": table.dtype, **values}


def test_every_op_has_a_table_of_this_kind_of_processor():
    assert {(spec.op, device) for spec, device, _ in TABLES} >= {
        (spec.op, "cpu_avx512") for spec in SPECS
    }


@pytest.mark.parametrize(("spec", "device", "table"), TABLES, ids=IDS)
def test_rows_rank_candidates_by_time(spec, device, table):
    for row, call in calls_of(spec, table):
        names = {str(c) for c in spec.candidates(table.dtype, call["array"])}
        spellings = [entry.spelling for entry in row.entries]
        assert set(spellings) <= names, f"{table.file}:{row.line}"
        times = [entry.ms for entry in row.entries]
        for at, ms in enumerate(times):
            # times are printed with four digits
            assert ms <= 1.001 * TIE * min(times[at:]), f"{table.file}:{row.line}"


@pytest.mark.parametrize(("spec", "device", "table"), TABLES, ids=IDS)
def test_the_first_choice_can_run_at_its_own_key(spec, device, table):
    for row, call in calls_of(spec, table):
        kind = call["array"]
        by_name = {str(c): c for c in spec.candidates(table.dtype, kind)}
        first = by_name[row.entries[0].spelling]
        facts = absent_device(device, kind)
        assert spec.can_run(first, inventory_call(spec, call), facts), row.line


def inventory_call(spec, call):
    """Return a call of the op's type; keys that the table lacks do not matter."""
    from batchlas.tune.problems import PROBLEMS

    problem = PROBLEMS[spec.op]
    given = {"uplo": "L", **call}
    return problem.call(**{key: given[key] for key in spec.keys})


def test_the_generated_page_is_fresh(capsys):
    assert inventory.main(["--check"]) == 0, capsys.readouterr().err
