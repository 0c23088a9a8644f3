"""Which pin is in force, and what each kind of pin does."""

import asyncio
import os
import threading
from dataclasses import replace

import pytest
from select_cases import (
    CPU,
    POTRF,
    SM_90,
    Blocked,
    Cta,
    Lpanel,
    Tiny,
    Vendor,
    call,
    op_spec,
    row,
    table,
)

from batchlas._runtime.settings import configure, reload_settings, scoped_env
from batchlas._select import ScopedPin, StrictPin, decide, family, pick, run
from batchlas._select.testing import reset_warnings, set_builtin_tables
from batchlas._select.walk import Origin
from batchlas.exceptions import BatchlasWarning, NoRouteError, PinError

FILE = "potrf.sm_90.txt"
VARIABLE = "BATCHLAS_POTRF_ROUTE"
RANKING = "vendor 1 | cta 2 | tiny 3 | lpanel:8 4"
NO_VENDOR = replace(SM_90, has_vendor=False)


@pytest.fixture(autouse=True)
def _ranked():
    set_builtin_tables({FILE: table(row(RANKING))})


def exported(text):
    return scoped_env(BATCHLAS_POTRF_ROUTE=text)


PINNED = [
    ("auto", Vendor()),
    ("", Vendor()),
    ("native", Cta()),
    ("vendor", Vendor()),
    ("tiny", Tiny()),
    ("lpanel:panel=8", Lpanel(8)),
    ("lpanel:8", Lpanel(8)),
    ("  LPanel:Panel=8\n", Lpanel(8)),
    (" NATIVE ", Cta()),
    ("blocked", Blocked()),
]


@pytest.mark.parametrize(("text", "expected"), PINNED)
@pytest.mark.parametrize("pin", [exported, lambda text: ScopedPin("potrf", text)])
def test_what_a_pin_means(text, expected, pin):
    with pin(text):
        assert pick(POTRF, call(), SM_90) == expected
    assert pick(POTRF, call(), SM_90) == Vendor()


def test_a_pin_may_be_the_choice_itself():
    with ScopedPin("potrf", Lpanel(8)):
        decision = decide(POTRF, call(), SM_90)
    assert (decision.choice, decision.origin) == (Lpanel(8), Origin.PINNED)


BAD = [
    ("jacobi", call(), "no family 'jacobi'"),
    ("lpanel", call(), "'lpanel': 0 values; the fields are (panel)"),
    ("lpanel:width=8", call(), "no field 'width'"),
    ("lpanel: 8", call(), "' 8' is not an integer"),
    ("nativ", call(), "no family 'nativ'"),
    ("lpanel:7", call(), "lpanel:panel=7 is no candidate of potrf for float64 on cupy"),
    ("lpanel:16", call(), "lpanel:panel=16 is no candidate"),
    ("tiny", call(n=33), "tiny cannot run Call(dtype='float64', uplo='L', n=33"),
    ("lpanel:8", call(uplo="U"), "lpanel:panel=8 cannot run"),
]
VALID = "; valid: auto, native, vendor, tiny, cta, lpanel:panel=8, blocked"


@pytest.mark.parametrize(("text", "asked", "why"), BAD)
def test_a_bad_variable_is_named_with_its_text_and_what_is_valid(text, asked, why):
    with exported(text), pytest.raises(PinError) as error:
        pick(POTRF, asked, SM_90)
    assert str(error.value).startswith(f"{VARIABLE}={text!r}: ")
    assert why in str(error.value)
    assert str(error.value).endswith(VALID)


@pytest.mark.parametrize(("text", "asked", "why"), BAD)
@pytest.mark.parametrize("pin", [ScopedPin, StrictPin])
def test_a_bad_scoped_pin_names_itself(pin, text, asked, why):
    with pin("potrf", text), pytest.raises(PinError) as error:
        run(POTRF, asked, SM_90, lambda choice: choice)
    assert str(error.value).startswith(f"{pin.__name__}('potrf', {text!r}): ")
    assert why in str(error.value)


def test_a_family_of_another_backend_is_no_candidate():
    with ScopedPin("potrf", "cta"), pytest.raises(PinError, match="no family 'cta'"):
        pick(POTRF, call(), CPU)


def test_native_takes_any_family_that_uses_no_library():
    threads = family("threads", uses_library=True)
    spec = op_spec(
        candidates=lambda _dtype, _kind: (threads(), Vendor(), Tiny()),
        can_run=lambda _choice, _call, _device: True,
    )
    set_builtin_tables({FILE: table(row("threads 1 | vendor 2 | tiny 3"))})
    answers = {}
    for word in ("auto", "native", "vendor"):
        with ScopedPin("potrf", word):
            answers[word] = pick(spec, call(), SM_90)
    assert answers == {"auto": threads(), "native": Tiny(), "vendor": Vendor()}


def test_native_may_rest_on_the_last_resort():
    set_builtin_tables({FILE: table(row("vendor 1"))})
    with ScopedPin("potrf", "native"):
        decision = decide(POTRF, call(), SM_90)
    assert (decision.choice, decision.origin) == (Blocked(), Origin.LAST_RESORT)
    assert decision.pin == "native"


FALLBACKS = [
    ("vendor", call(), NO_VENDOR, Cta(), "ScopedPin('potrf', 'vendor')"),
    ("native", call(n=100, uplo="U"), SM_90, Vendor(), "ScopedPin('potrf', 'native')"),
]


@pytest.mark.parametrize(("word", "asked", "device", "expected", "where"), FALLBACKS)
def test_a_class_word_falls_back_with_one_warning(word, asked, device, expected, where):
    why = f"no {word} candidate can run potrf for {asked} on sm_90"
    with ScopedPin("potrf", word):
        with pytest.warns(BatchlasWarning) as given:
            decision = decide(POTRF, asked, device)
        assert [str(each.message) for each in given] == [f"{where}: {why}; taking auto"]
        assert (decision.choice, decision.pin) == (expected, "")
        pick(POTRF, asked._replace(batch=3), device)  # warnings are errors here
        reset_warnings()
        with pytest.warns(BatchlasWarning, match="taking auto"):
            pick(POTRF, asked._replace(batch=4), device)


@pytest.mark.parametrize(("word", "asked", "device", "_expected", "_where"), FALLBACKS)
def test_a_strict_class_word_raises_instead(word, asked, device, _expected, _where):
    with StrictPin("potrf", word), pytest.raises(PinError) as error:
        pick(POTRF, asked, device)
    message = f"StrictPin('potrf', '{word}'): no {word} candidate can run potrf for "
    assert str(error.value).startswith(message)


def test_a_strict_class_word_that_can_serve_serves():
    with StrictPin("potrf", "native"):
        assert pick(POTRF, call(), SM_90) == Cta()


def test_a_class_word_with_nothing_at_all_to_run():
    with (
        ScopedPin("potrf", "native"),
        pytest.warns(BatchlasWarning, match="taking auto"),
        pytest.raises(NoRouteError),
    ):
        pick(POTRF, call(n=100, uplo="U"), NO_VENDOR)


def test_pins_nest_and_belong_to_one_op():
    posv = op_spec("posv")
    with ScopedPin("potrf", "tiny"):
        with ScopedPin("posv", "cta"), ScopedPin("potrf", "lpanel:8"):
            assert pick(POTRF, call(), SM_90) == Lpanel(8)
            assert pick(posv, call(), SM_90) == Cta()
        assert pick(POTRF, call(), SM_90) == Tiny()
        assert pick(posv, call(), SM_90) == Blocked()
    assert pick(POTRF, call(), SM_90) == Vendor()


def test_one_pin_object_may_be_entered_again():
    pin = ScopedPin("potrf", "tiny")
    with pin:
        with ScopedPin("potrf", "cta"), pin:
            assert pick(POTRF, call(), SM_90) == Tiny()
        assert pick(POTRF, call(), SM_90) == Tiny()
    assert pick(POTRF, call(), SM_90) == Vendor()


def test_a_pin_ends_when_its_block_raises():
    with pytest.raises(ZeroDivisionError), ScopedPin("potrf", "tiny"):
        _ = 1 // 0
    assert pick(POTRF, call(), SM_90) == Vendor()


def test_a_scoped_pin_wins_over_the_variable():
    with exported("tiny"):
        assert pick(POTRF, call(), SM_90) == Tiny()
        with ScopedPin("potrf", "cta"):
            assert pick(POTRF, call(), SM_90) == Cta()
        with ScopedPin("potrf", "auto"):
            assert pick(POTRF, call(), SM_90) == Vendor()


def test_a_scoped_pin_stays_on_its_thread():
    seen = []
    with ScopedPin("potrf", "tiny"):
        worker = threading.Thread(
            target=lambda: seen.append(pick(POTRF, call(), SM_90))
        )
        worker.start()
        worker.join()
        seen.append(pick(POTRF, call(), SM_90))
    assert seen == [Vendor(), Tiny()]


def test_a_scoped_pin_stays_in_its_task():
    async def pinned(choice, barrier):
        with ScopedPin("potrf", choice):
            await barrier.wait()  # both tasks are inside their blocks now
            return pick(POTRF, call(), SM_90)

    async def both():
        barrier = asyncio.Event()
        tasks = [asyncio.create_task(pinned(c, barrier)) for c in ("tiny", "cta")]
        await asyncio.sleep(0)
        barrier.set()
        return await asyncio.gather(*tasks)

    assert asyncio.run(both()) == [Tiny(), Cta()]


def test_the_variable_counts_as_of_the_last_reload(monkeypatch):
    assert pick(POTRF, call(), SM_90) == Vendor()
    monkeypatch.setitem(os.environ, VARIABLE, "tiny")
    assert pick(POTRF, call(), SM_90) == Vendor()
    reload_settings()
    assert pick(POTRF, call(), SM_90) == Tiny()
    monkeypatch.setitem(os.environ, VARIABLE, "cta")
    reload_settings()
    assert pick(POTRF, call(), SM_90) == Cta()


def test_configured_routes_are_pins_too():
    configure(routes={"potrf": "tiny"})
    assert pick(POTRF, call(), SM_90) == Tiny()
