"""A short soak; ``make soak`` lasts ten minutes and watches the memory as well."""

from __future__ import annotations

import random

import pytest
from soak import Report, ask, drawn, soak


@pytest.mark.slow
def test_half_a_minute_of_changing_calls():
    questions = drawn(30, seed=1)
    warm = Report()
    for question in questions:
        ask(question, random.Random(0), warm)
    assert warm.calls == 30
    assert soak(questions, 30, threads=2).calls > 0
