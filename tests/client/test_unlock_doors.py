"""Unlock requests over Python and HTTP: the same four operations, each agent held to itself."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

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


def test_parts_are_kept_and_files_shared_over_http_and_typed(repo: Repo) -> None:
    repo.coord("up", "--http", "0")
    for name in ("d/a.py", "d/b.py", "c.py"):
        repo.write(name, "one\n")
    with repo.client("ann") as ann, repo.client("bob") as bob:
        ann.acquire("d/", "c.py")
        bob.register()
        for resource in ("d/a.py", "c.py"):
            bob.call(rq.RequestFile(agent="bob", resource=resource, reason="now"))
        kept = repo.coord("request", "narrow", "U-1", "--keep", "b.py", "--agent", "ann", cwd=repo.root / "d")
        assert kept.stdout.startswith("U-1 narrowed. Released d/; bob has d/a.py now. ann keeps d/b.py."), kept.stderr
        status, done = below(repo, "c.py", "U-2", "coexist", ann.token)
        assert (status, done["unlock"]["status"], done["kept"][0]["agreed_as"]) == (200, "coexisting", "U-2")
        held = {(one.resource, one.locked_by, one.mode) for one in ann.call(rq.Locks()).items}
        assert held == {("d/b.py", "ann", "exclusive"), ("d/a.py", "bob", "exclusive"), ("c.py", "ann", "shared"), ("c.py", "bob", "shared")}
        bob.call(rq.RequestFile(agent="bob", resource="d/b.py", reason="now"))
        status, done = below(repo, "d/b.py", "U-3", "narrow", ann.token)
        assert status == 400 and "none is named" in done["error"]["message"]
        assert "coexisting" in repo.coord("request", "list", "--state", "coexisting").stdout
        assert repo.coord("request", "coexist", "U-3", "--agent", "ann").stdout.startswith("U-3 coexisting. ann and bob share d/b.py")


def below(repo: Repo, resource: str, request: str, verdict: str, token: str | None) -> tuple[int, dict[str, Any]]:
    """The same by the path below a resource."""
    url = f"{repo.state.http.read_text().strip()}/v1/resources/{resource}/unlock-requests/{request}/{verdict}"
    asked = urllib.request.Request(url, b'{"agent": "ann"}', {"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(asked) as got:
            return got.status, json.loads(got.read())
    except urllib.error.HTTPError as bad:
        return bad.code, json.loads(bad.read())


def test_a_limit_is_told_by_command(repo: Repo) -> None:
    repo.coord("task", "add", "work")
    repo.coord("task", "claim", "--agent", "ann")
    done = repo.coord("limit", "--for", "1h", "-m", "5-hour limit", env={"COORD_AGENT": "ann"})
    assert done.stdout.startswith("ann rests until ") and done.stdout.endswith("Given back: T-1.\n"), done.stderr
    assert "rests until" in repo.coord("agents").stdout and "rests " in repo.coord("status").stdout
    no = repo.coord("task", "claim", "--agent", "ann")
    assert no.returncode == 4 and "ann rests until" in no.stderr
    assert repo.coord("limit", "--for", "0", "--agent", "ann").stdout == "ann goes on.\n"
    assert repo.coord("task", "claim", "--agent", "ann").returncode == 0
    assert repo.coord("limit", "--agent", "ann").returncode == 2
