"""errstate's words and scopes, without any array library: the policy alone."""

from __future__ import annotations

import pytest

from batchlas import errstate
from batchlas._runtime import errstate as module


@pytest.mark.parametrize("word", ["", "warn", "Raise", "NaN", None])
def test_another_word_is_refused_with_those_allowed(word):
    with pytest.raises(ValueError, match="allowed: raise, nan, ignore"):
        errstate(linalg=word)


def test_the_word_is_a_keyword():
    with pytest.raises(TypeError, match="positional"):
        errstate("nan")


def test_nothing_is_in_force_before_the_block_begins():
    errstate(linalg="ignore")
    assert module._policies.get()[-1] == "raise"


@pytest.mark.parametrize("word", module.POLICIES)
def test_every_policy_can_be_entered(word):
    with errstate(linalg=word):
        assert module._policies.get()[-1] == word
    assert module._policies.get() == ("raise",)


class NoBackend:
    """A backend that must not be asked for anything."""


def test_a_call_without_failures_asks_nothing():
    module.settle(NoBackend, None, (), None, module.Failure("text", "status"))


def test_ignore_asks_nothing_of_the_device():
    with errstate(linalg="ignore"):
        module.settle(NoBackend, None, (), object(), module.Failure("text", "status"))
