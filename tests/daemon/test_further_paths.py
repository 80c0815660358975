"""What people expect to find below a task or a resource over HTTP: lock, unlock, unlock requests."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest

from tests.conftest import Repo

Call = Callable[..., tuple[int, Any]]


@pytest.fixture
def call(repo: Repo) -> Call:
    repo.coord("up", "--http", "0")
    base = repo.state.http.read_text().strip()
    bearer = repo.state.bearer.read_text().strip()

    def asked(method: str, path: str, **fields: Any) -> tuple[int, Any]:
        query = "?" + "&".join(f"{k}={v}" for k, v in fields.items()) if method in ("GET", "DELETE") and fields else ""
        body = None if query or method == "GET" else json.dumps(fields).encode()
        request = urllib.request.Request(base + path + query, body, {"Authorization": f"Bearer {bearer}"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refused:
            return refused.code, json.load(refused)

    return asked


@pytest.mark.parametrize("name", ["tasks/T-1", "tasks/1", "tasks/t-1", "resources/src/my%20file.py", "resources/key:user:7", "resources/src/"])
def test_locked_asked_for_handed_over_and_unlocked(repo: Repo, call: Call, name: str) -> None:
    repo.write("src/my file.py", "x = 1\n")
    call("POST", "/v1/tasks", title="a task")
    at = f"/v1/{name}"
    status, got = call("POST", f"{at}/lock", agent="ann", description="mine")
    assert status == 200 and got["leases"][0]["locked_by"] == "ann"
    status, refused = call("POST", f"{at}/lock", agent="bob")
    assert (status, refused["error"]["code"]) == (423, "LOCKED")
    status, refused = call("POST", f"{at}/unlock", agent="bob")
    assert (status, refused["error"]["code"]) == (403, "NOT_HOLDER") and "Only the holder can unlock it" in refused["error"]["message"]
    status, refused = call("POST", f"{at}/unlock-requests", agent="bob", reason=" ")
    assert (status, refused["error"]["code"]) == (400, "INVALID"), "the reason is required"
    status, asked = call("POST", f"{at}/unlock-requests", agent="bob", reason="I know it")
    assert status == 200 and asked["status"] == "pending" and asked["requested_by"] == "bob"
    request = asked["request"]
    status, listed = call("GET", f"{at}/unlock-requests", agent="bob")
    assert [one["request"] for one in listed["items"]] == [request]
    assert call("POST", f"/v1/resources/other.py/unlock-requests/{request}/approve", agent="ann")[1]["error"]["code"] == "UNKNOWN_REQUEST"
    status, answer = call("POST", f"{at}/unlock-requests/{request}/approve", agent="ann")
    assert status == 200 and answer["granted"] and answer["unlock"]["responded_by"] == "ann"
    asked = call("POST", f"{at}/unlock-requests", agent="ann", reason="back, please")[1]
    status, answer = call("POST", f"{at}/unlock-requests/{asked['request']}/reject", agent="bob", answer="no")
    assert status == 200 and answer["unlock"]["status"] == "rejected"
    assert call("POST", "/v1/locks/withdraw", agent="ann", acquisition_id=asked["request"])[0] == 200
    call("POST", f"{at}/unlock", agent="bob")
    call("POST", f"{at}/lock", agent="cyd")
    asked = call("POST", f"{at}/unlock-requests", agent="bob", reason="again")[1]
    status, gone = call("DELETE", f"{at}/unlock-requests/{asked['request']}", agent="bob")
    assert status == 200 and gone["status"] == "withdrawn"


def test_a_task_says_who_has_locked_it(call: Call) -> None:
    call("POST", "/v1/tasks", title="a task")
    agent = call("POST", "/v1/agents", agent="ann", description="the importer")[1]["agent"]
    call("POST", "/v1/tasks/T-1/lock", agent=agent)
    task = call("GET", "/v1/tasks/T-1")[1]
    assert (task["locked_by"], task["locked_by_name"]) == ("ann", "the importer") and task["locked_at"]
    status, refused = call("POST", "/v1/tasks/T-9/lock", agent="ann")
    assert (status, refused["error"]["code"]) == (404, "UNKNOWN_TASK")


def test_each_further_path_is_described(repo: Repo, call: Call) -> None:
    described = call("GET", "/openapi.json")[1]
    ids = [one["operationId"] for path in described["paths"].values() for one in path.values()]
    assert len(set(ids)) == len(ids)
    lock = described["paths"]["/v1/tasks/{task}/lock"]["post"]
    assert [one["name"] for one in lock["parameters"]] == ["task", "Idempotency-Key"]
    body = lock["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
    assert "agent" in described["components"]["schemas"][body]["properties"]
    assert "resources" not in described["components"]["schemas"][body]["properties"]


def test_a_slash_within_a_name_does_not_divide_the_path(call: Call) -> None:
    call("POST", "/v1/agents", agent="ann")
    for key in ("key%3Aa%2Fb", "key:a%2Fhistory", "key:50%25%2Foff"):
        status, stored = call("PUT", f"/v1/state/{key}", agent="ann", value=key, version=0)
        assert status == 200, stored
        assert call("GET", f"/v1/state/{key}")[1]["value"] == key
        assert call("GET", f"/v1/state/{key}/history")[1]["items"][0]["version"] == 1
    listed = [one["key"] for one in call("GET", "/v1/state")[1]["items"]]
    assert listed == ["key:50%/off", "key:a/b", "key:a/history"]


@pytest.mark.parametrize("path", ["/v1/resources//unlock-requests", "/v1/resources/%0A/lock", "/v1/changes/", "/v1/resources//lock"])
def test_a_name_that_is_none_is_refused_in_the_form_of_a_refusal(call: Call, path: str) -> None:
    status, refused = call("POST", path, agent="ann", reason="r")
    assert refused["error"]["code"] == "INVALID" and status in (400, 404)


def test_what_contradicts_the_path_is_refused(call: Call) -> None:
    """Of two names one would be overlooked, and another file leased than was meant."""
    for title in ("one", "two"):
        call("POST", "/v1/tasks", title=title)
    for method, path, fields, named in (
            ("POST", "/v1/resources/free.py/lock", {"agent": "bob", "resources": ["x.py"]}, "resources"),
            ("PATCH", "/v1/tasks/T-1", {"task": "T-2", "title": "renamed"}, "task"), ("GET", "/v1/tasks/T-1", {"task": "T-2"}, "task")):
        status, refused = call(method, path, **fields)
        assert status == 400 and refused["error"]["field"] == named and f"the path names `{named}`" in refused["error"]["message"], refused
    status, same = call("PATCH", "/v1/tasks/T-1", task="T-1", title="renamed")
    assert status == 200 and same["title"] == "renamed"
    assert call("GET", "/v1/locks")[1]["items"] == []


def test_fields_in_the_body_of_a_delete_are_told_to_stand_in_the_address(call: Call) -> None:
    status, refused = call("DELETE", "/v1/state/key:a")  # with `{}` as its body
    assert status == 400 and "lacks the field `agent`" in refused["error"]["message"]
    assert refused["error"]["next"].startswith("DELETE takes its fields in the address (`?agent=…`), not in a body.")
