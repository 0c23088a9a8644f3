"""One decision for one question, remembered as long as it is true."""

import sys
import threading
from dataclasses import replace

import pytest
from select_cases import (
    POTRF,
    SM_90,
    Blocked,
    Cta,
    Tiny,
    Vendor,
    call,
    candidates,
    op_spec,
    row,
    table,
)

from batchlas._runtime.settings import configure, reload_settings, scoped_env
from batchlas._select import ScopedPin, decide, pick, run
from batchlas._select import decision as decision_module
from batchlas._select.testing import set_builtin_tables

FILE = "potrf.sm_90.txt"


class Counted:
    """A spec that counts how often its candidates were asked for."""

    def __init__(self):
        self.count = 0
        self.spec = op_spec(candidates=self.candidates)

    def candidates(self, dtype, kind):
        self.count += 1
        return candidates(dtype, kind)


@pytest.fixture
def counted():
    set_builtin_tables({})
    return Counted()


def test_the_query_and_the_call_agree():
    set_builtin_tables({FILE: table(row("tiny 1 | cta 2"), row("cta 1", n=64))})
    for n in range(1, 200):
        asked = call(n=n)
        assert run(POTRF, asked, SM_90, lambda choice: choice) == pick(
            POTRF, asked, SM_90
        )


def test_the_same_question_is_decided_once(counted):
    first = decide(counted.spec, call(), SM_90)
    assert counted.count == 1
    assert decide(counted.spec, call(), SM_90) is first
    assert decide(counted.spec, call(), replace(SM_90)) is first  # devices are values
    assert pick(counted.spec, call(), SM_90) is first.choice
    run(counted.spec, call(), SM_90, lambda choice: choice)
    assert counted.count == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda spec: decide(spec, call(n=9), SM_90),
        lambda spec: decide(spec, call(), replace(SM_90, local_mem_bytes=1)),
        lambda spec: decide(spec, call(), replace(SM_90, kind="dpnp")),
        lambda spec: (reload_settings(), decide(spec, call(), SM_90)),
        lambda spec: (set_builtin_tables({}), decide(spec, call(), SM_90)),
    ],
)
def test_anything_new_is_decided_anew(counted, change):
    decide(counted.spec, call(), SM_90)
    change(counted.spec)
    assert counted.count == 2


def test_a_pin_is_part_of_the_question(counted):
    answers = []
    for text in ("tiny", "cta", "tiny"):
        with ScopedPin("potrf", text):
            answers.append(pick(counted.spec, call(), SM_90))
    answers.append(pick(counted.spec, call(), SM_90))
    assert answers == [Tiny(), Cta(), Tiny(), Blocked()]
    assert counted.count == 3


def test_two_specs_of_one_op_do_not_share_answers():
    set_builtin_tables({})
    other = op_spec(last_resort=("cta",))
    assert (pick(POTRF, call(), SM_90), pick(other, call(), SM_90)) == (
        Blocked(),
        Cta(),
    )


def test_the_memory_is_bounded(counted, monkeypatch):
    monkeypatch.setattr(decision_module, "MEMO_LIMIT", 8)
    monkeypatch.setattr(decision_module, "_memo", {})
    for n in range(1, 101):
        decide(counted.spec, call(n=n), SM_90)
        assert len(decision_module._memo) <= 8
    decide(counted.spec, call(n=100), SM_90)
    assert counted.count == 100


def test_a_warm_run_makes_few_python_calls(counted):
    names = []

    def profile(frame, event, _argument):
        if event == "call":
            names.append(frame.f_code.co_name)

    def launch(choice):
        return choice

    run(counted.spec, call(), SM_90, launch)
    asked = call()
    sys.setprofile(profile)
    try:
        run(counted.spec, asked, SM_90, launch)
    finally:
        sys.setprofile(None)
    assert names[0] == "run"
    assert len(names) <= 10, names


def test_no_vendor_hides_the_library():
    set_builtin_tables({FILE: table(row("vendor 1 | tiny 2"))})
    assert pick(POTRF, call(), SM_90) == Vendor()
    with scoped_env(BATCHLAS_NO_VENDOR="1"):
        assert pick(POTRF, call(), SM_90) == Tiny()
        assert not decide(POTRF, call(), SM_90).device.has_vendor


@pytest.mark.parametrize("ask", [pick, decide])
def test_the_first_question_closes_configure(ask):
    set_builtin_tables({})
    ask(POTRF, call(), SM_90)
    with pytest.raises(RuntimeError, match="before the first"):
        configure()


def test_many_threads_get_the_right_answers():
    measured = {n: "tiny" if n % 3 else "cta" for n in range(1, 33)}
    rows = [row(f"{name} 1", n=n) for n, name in measured.items()]
    set_builtin_tables({FILE: table(*rows)})
    expected = {n: Tiny() if n % 3 else Cta() for n in measured}
    wrong = []
    start = threading.Barrier(8)

    def ask(seed):
        start.wait()
        for turn in range(200):
            n = 1 + (seed * 7 + turn * 5) % 32
            if turn % 20 == 0:
                set_builtin_tables({FILE: table(*rows)})
            with ScopedPin("potrf", "auto" if turn % 2 else "vendor"):
                answer = pick(POTRF, call(n=n), SM_90)
            if answer != (expected[n] if turn % 2 else Vendor()):
                wrong.append((n, answer))

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
