"""What surrounds a launch."""

import pytest
from select_cases import POTRF, SM_90, Blocked, call, op_spec

from batchlas._runtime.settings import scoped_env
from batchlas._select import run
from batchlas._select.testing import set_builtin_tables
from batchlas.exceptions import NoRouteError


@pytest.fixture(params=["0", "1"], ids=["trace off", "trace on"])
def trace(request):
    set_builtin_tables({})
    with scoped_env(BATCHLAS_SELECT_TRACE=request.param):
        yield


@pytest.mark.usefixtures("trace")
def test_run_launches_the_choice_once_and_returns_its_result():
    launched = []

    def launch(choice):
        launched.append(choice)
        return "result"

    assert run(POTRF, call(), SM_90, launch) == "result"
    assert launched == [Blocked()]


@pytest.mark.usefixtures("trace")
def test_an_error_of_the_launch_is_the_callers():
    def launch(_choice):
        message = "mine"
        raise KeyError(message)

    with pytest.raises(KeyError, match="mine"):
        run(POTRF, call(), SM_90, launch)


@pytest.mark.usefixtures("trace")
def test_nothing_is_launched_when_nothing_can_run():
    launched = []
    nobody = op_spec(can_run=lambda _choice, _call, _device: False)
    with pytest.raises(NoRouteError):
        run(nobody, call(), SM_90, launched.append)
    assert launched == []
