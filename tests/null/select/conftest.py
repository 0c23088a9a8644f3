"""Every selection test starts and ends with shipped tables, no pins and no memory."""

import os

import pytest
from hypothesis import settings as hypothesis_settings

from batchlas._runtime import settings as settings_module
from batchlas._select import testing

# A busy machine is no failure: examples have no time limit.
hypothesis_settings.register_profile("no deadline", deadline=None)
hypothesis_settings.load_profile("no deadline")


def _forget():
    testing.use_shipped_tables()
    testing.reset_warnings()
    testing.reset_coverage()


@pytest.fixture(autouse=True)
def _clean_selection(monkeypatch):
    for name in list(os.environ):
        if name.startswith("BATCHLAS_"):
            monkeypatch.delenv(name)
    monkeypatch.setattr(settings_module._state, "used", False)
    monkeypatch.setattr(
        settings_module._state, "configured", settings_module.Settings()
    )
    settings_module.reload_settings()
    _forget()
    yield
    _forget()
    monkeypatch.undo()
    settings_module.reload_settings()
