"""The tests of the command line start it as a person does: from nothing, each time."""

from __future__ import annotations

import pytest

from tests.conftest import Repo


@pytest.fixture(autouse=True)
def _from_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Repo, "forked", False)
