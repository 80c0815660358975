"""A repository whose coordinator runs."""

from __future__ import annotations

import pytest

from coordinator.words import requests as rq
from tests.conftest import Repo


@pytest.fixture
def up(repo: Repo) -> Repo:
    with repo.client() as client:
        client.call(rq.Health())
    return repo
