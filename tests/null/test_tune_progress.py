"""What is shown of a long run where nobody watches a terminal."""

from __future__ import annotations

import pytest

from batchlas.tune import progress as module
from batchlas.tune.progress import progress


@pytest.fixture
def clock(monkeypatch):
    """Return a clock to set, in place of time's."""
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def test_plain_lines_come_seldom_and_the_last_one_always(clock, capsys):
    with progress() as shown:
        for done in range(100):
            clock[0] = 0.5 * done
            shown.show(done, 100, 65.0, f"shape {done}")
        shown.show(100, 100, 0.0, "")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "0/100, 1m05s left: shape 0"
    assert lines[1] == "20/100, 1m05s left: shape 20"
    assert lines[-1] == "100/100, 0s left: "
    assert len(lines) == 6


def test_what_is_said_is_said_at_once(clock, capsys):
    with progress() as shown:
        shown.say("a word")
        assert capsys.readouterr().err == "a word\n"
    assert clock


def test_a_bar_where_somebody_watches(monkeypatch, capsys):
    pytest.importorskip("rich")
    monkeypatch.setattr(module.sys.stderr, "isatty", lambda: True, raising=False)
    with progress() as shown:
        shown.show(3, 10, 90.0, "potrf n=8")
        shown.say("a word [not markup]")
    text = capsys.readouterr().err
    assert "a word [not markup]" in text
    assert "10" in text


def test_without_rich_there_are_lines(monkeypatch, capsys):
    monkeypatch.setattr(module.sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda _name: None)
    with progress() as shown:
        shown.show(3, 10, 90.0, "potrf n=8")
    assert capsys.readouterr().err == "3/10, 1m30s left: potrf n=8\n"
