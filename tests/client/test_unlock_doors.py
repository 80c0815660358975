"""Unlock requests over Python and HTTP: the same four operations, each agent held to itself."""

from __future__ import annotations

from coordinator.words import requests as rq
from tests.conftest import Repo
from tests.daemon.test_refusals import http


def test_asked_over_python_answered_over_http(repo: Repo) -> None:
    repo.coord("up", "--http", "0")
    with repo.client("ann") as ann, repo.client("bob") as bob:
        ann.acquire("a.py", "b.py")
        bob.register()
        made = bob.call(rq.RequestFile(agent="bob", resource="a.py", reason="now"))
        assert (made.request, made.holder) == ("U-1", "ann")
        status, listed = http(repo, rq.Requests(), ann.token)
        assert status == 200 and [row["request"] for row in listed["items"]] == ["U-1"]
        yes = rq.RequestAnswer(agent="ann", request="U-1", verdict="approve", answer="yours")
        assert http(repo, yes, bob.token)[0] == 401
        status, done = http(repo, yes, ann.token)
        assert status == 200 and done["granted"] is True and done["unlock"]["status"] == "approved"
        (told,) = bob.heartbeat().notices
        assert told.kind == "granted" and "ann gave up a.py" in told.text
        status, made_too = http(repo, rq.RequestFile(agent="bob", resource="b.py", reason="x"), bob.token)
        assert (status, made_too["request"]) == (200, "U-2")
        taken = bob.call(rq.RequestWithdraw(agent="bob", request="U-2"))
        assert taken.status == "withdrawn"
        held = {one.resource: one.locked_by for one in ann.call(rq.Locks()).items}
        assert held == {"a.py": "bob", "b.py": "ann"}
