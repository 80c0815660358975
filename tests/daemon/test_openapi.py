"""What the HTTP door says of itself: all is described, examples are what they are examples of, and
what is not served is refused in the same shape."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

from coordinator.daemon.openapi import example_of, example_of_request, openapi
from coordinator.operations.field_meanings import meaning, read_examples, read_shared
from coordinator.operations.listing import OPERATIONS
from coordinator.words import requests as rq
from coordinator.words.refusals import Code
from tests.conftest import Repo

DESCRIBED = openapi()
COMPONENTS = DESCRIBED["components"]["schemas"]
ROUTES = [(path, method, one) for path, methods in DESCRIBED["paths"].items() for method, one in methods.items()]
STRUCTS = [one for one in (getattr(rq, name) for name in dir(rq)) if isinstance(one, type) and issubclass(one, msgspec.Struct)
           and one not in (rq.Request, rq.Reply)]


def _list_undescribed(shapes: list[type[Any]]) -> list[str]:
    """`Shape.field` of each field without a description."""
    return [f"{shape.__name__}.{field.name}" for shape in shapes
            for field in msgspec.structs.fields(shape) if not meaning(shape, field.name)]


def properties(schema: Any, at: str) -> list[tuple[str, Any]]:
    out = []
    for name, one in schema.get("properties", {}).items():
        out += [(f"{at}.{name}", one), *properties(one, f"{at}.{name}")]
    return out


def test_no_property_is_without_description() -> None:
    found = [one for name, schema in COMPONENTS.items() for one in properties(schema, name)]
    found += [(f"{path} {p['name']}", p) for path, _, one in ROUTES for p in one["parameters"]]
    assert len(found) > 500
    assert [name for name, one in found if not one.get("description", "").strip()] == []
    assert _list_undescribed(STRUCTS) == []


def test_durations_sizes_and_instants_say_their_unit() -> None:
    for name, schema in COMPONENTS.items():
        for field, one in properties(schema, name):
            said = one["description"].lower()
            if field.endswith("_s"):
                assert "second" in said or "days" in said, (field, said)
            if field.endswith("_bytes"):
                assert "bytes" in said, (field, said)
            if field.endswith("_at") and field != "ReviewFile.flagged_at" and not field.endswith("baseline_at"):
                assert "utc" in said, (field, said)


def test_every_line_of_the_tables_is_of_use() -> None:
    fields = {f.name for shape in STRUCTS for f in msgspec.structs.fields(shape)}
    exact = {f"{shape.__name__}.{f.name}" for shape in STRUCTS for f in msgspec.structs.fields(shape)}
    for table in (read_shared(), read_examples().examples):
        assert [key for key in table if key not in (exact if "." in key else fields)] == []
    assert set(read_examples().shown_only) <= {o.request.__name__ for o in OPERATIONS.values()}


def test_bodies_are_required_where_a_field_is() -> None:
    optional = set()
    for path, method, one in ROUTES:
        assert ("requestBody" in one) == (method in ("post", "put", "patch")), path
        if "requestBody" in one:
            schema = COMPONENTS[one["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]]
            assert one["requestBody"]["required"] is bool(schema["required"])
            assert not {p["name"] for p in one["parameters"]} & set(schema["properties"]), "said once"
            if not schema["required"]:
                optional.add(one["operationId"])
    assert optional <= {"sweep", "compact", "shutdown", "replay", "archive_index", "verify", "task_retry", "task_cancel", "task_edit",
                        "review_undo", "dead_retry", "dead_drop", "page_open"}


def test_every_refusal_stands_with_its_status() -> None:
    told = {code: int(status.removeprefix("Refused")) for status, one in DESCRIBED["components"]["responses"].items()
            for code in one["content"]["application/json"]["examples"]}
    assert told == {code.value: code.row.http for code in Code}
    for path, _, one in ROUTES:
        if one["operationId"] in OPERATIONS:
            statuses = {int(status) for status in one["responses"]} - {200}
            least = {400, 401, 403, 404, 409, 413, 500, 503, 507}
            assert statuses >= least | ({422, 423} if OPERATIONS[one["operationId"]].writes else set()), path


#: What release 0.2.0 called the subjects. Made clients name their modules after them.
SUBJECTS = {
    "limit_reached": "agents", "register": "agents", "acquire": "leases", "task_add": "backlog",
    "tasks": "backlog", "request_file": "negotiation", "propose": "proposals", "commit_region": "regions",
    "land": "landing", "signal_add": "signals", "message_send": "messages", "state_get": "state",
    "changes": "state", "step_add": "steps", "dead": "steps", "guard_check": "guard", "sweep": "reviews",
    "review_decide": "reviews", "verify": "verification", "archive_search": "archive", "health": "story",
    "status": "story", "events": "story", "report": "report"}


def test_subjects_keep_their_names() -> None:
    tags = {operation["operationId"]: operation["tags"] for _, _, operation in ROUTES}
    assert {name: tags[name] for name in SUBJECTS} == {name: [tag] for name, tag in SUBJECTS.items()}


def test_everything_has_a_tag_that_is_told() -> None:
    tags = {tag["name"]: tag["description"] for tag in DESCRIBED["tags"]}
    used = {tag for _, _, one in ROUTES for tag in one["tags"]}
    assert used == set(tags) and all(tags.values())
    assert all(one["summary"] and one["description"] for _, _, one in ROUTES)


@pytest.mark.parametrize("op", OPERATIONS)
def test_examples_are_what_they_are_examples_of(op: str) -> None:
    shape = OPERATIONS[op].request
    msgspec.json.decode(msgspec.json.encode(example_of_request(shape)), type=shape)
    reply = OPERATIONS[op].reply
    msgspec.json.decode(msgspec.json.encode(example_of(reply)), type=reply)


def test_what_ends_in_an_example_has_not_ended_where_it_began() -> None:
    lease = example_of(rq.Acquired)["leases"][0]
    assert lease["locked_at"] < lease["expires_at"]


def test_all_that_is_described_has_an_example_and_the_stream_its_header() -> None:
    stream = DESCRIBED["paths"]["/v1/events/stream"]["get"]
    assert {one["name"]: one["in"] for one in stream["parameters"]} == {"after": "query", "Last-Event-ID": "header"}
    for path, _, one in ROUTES:
        (media,) = one["responses"]["200"]["content"].values()
        assert "example" in media, path


def test_what_is_not_served_is_refused_in_the_same_shape(repo: Repo) -> None:
    repo.coord("up", "--http", "0")
    to = urlsplit(repo.state.http.read_text().strip())
    bearer = {"Authorization": f"Bearer {repo.state.bearer.read_text().strip()}"}
    asked = [("GET", "/assets/nothing.js", 404), ("GET", "/nothing", 404), ("GET", "/v1/task", 404), ("PATCH", "/v1/tasks", 405),
             ("DELETE", "/v1/locks", 405), ("POST", "/openapi.json", 405), ("BREW", "/v1/locks", 405),
             *(("GET", f"/v1/{name}?limit={limit}", 400) for limit in ("0", "-1", "x", "9" * 30)
               for name in ("tasks", "locks", "events", "reviews", "requests", "signals", "changes", "steps", "dead",
                            "messages", "state", "verifications", "archive/search"))]
    for method, path, status in asked:
        if "search" in path:
            path += "&query=x"
        link = http.client.HTTPConnection(to.hostname or "", to.port, timeout=20)
        link.request(method, path, headers=bearer)
        answer = link.getresponse()
        body = json.loads(answer.read())
        link.close()
        assert answer.status == status, (method, path, body)
        assert answer.headers["content-type"] == "application/json"
        assert set(body) == {"error"} and {"code", "message", "retryable", "next"} <= set(body["error"])
        if status == 405:
            allowed = {"/v1/tasks": "GET, HEAD, POST", "/v1/locks": "GET, HEAD, POST", "/openapi.json": "GET, HEAD"}
            assert answer.headers["allow"] == allowed[path]
        if "limit" in path:
            assert "limit" in body["error"]["message"], body


def test_a_wrong_field_of_a_query_is_named_as_in_a_body(repo: Repo) -> None:
    repo.coord("up", "--http", "0")
    to = urlsplit(repo.state.http.read_text().strip())
    bearer = {"Authorization": f"Bearer {repo.state.bearer.read_text().strip()}"}
    for path, said, then in (
        ("/v1/locks?limit=x", "locks: `limit` must be a whole number, not a text. Nothing was done.", "Repeat it with another `limit`."),
        ("/v1/locks?limits=3", "locks: it has no field `limits`. Nothing was done.", "`locks` takes: agent, "),
        ("/v1/events/stream?agent=ann", "The stream has no field `agent`.", "It takes `after`; "),
        ("/v1/events/stream?after=x", "`after` must be the number of an event.", "Give such a number"),
    ):
        link = http.client.HTTPConnection(to.hostname or "", to.port, timeout=20)
        link.request("GET", path, headers=bearer)
        answer = link.getresponse()
        error = json.loads(answer.read())["error"]
        link.close()
        assert (answer.status, error["message"]) == (400, said) and error["next"].startswith(then)


def test_what_would_be_overlooked_in_an_address_is_refused(repo: Repo) -> None:
    """Fields of a body that stand in the address, and those that stand there twice."""
    repo.coord("up", "--http", "0")
    for method, path, said in (
        ("POST", "/v1/locks?ttl_s=5", "acquire: `ttl_s` stands in the address, where POST takes no field. Nothing was done."),
        ("POST", "/v1/tasks/claim?agent=ann", "task_claim: `agent` stands in the address, where POST takes no field. Nothing was done."),
        ("GET", "/v1/tasks?state=ready&state=done", "tasks: `state` is given twice. Nothing was done."),
        ("GET", "/v1/events/stream?after=1&after=2", "The stream's `after` is given twice."),
    ):
        status, error = asked(repo, method, path, b'{"agent": "ann", "resources": ["a.py"]}' if method == "POST" else None)
        assert (status, error["code"], error["message"]) == (400, "INVALID", said)
    assert repo.client().locks().items == []


def test_a_body_that_is_no_json_is_told_what_it_should_be(repo: Repo) -> None:
    repo.coord("up", "--http", "0")
    for path in ("/v1/locks", "/v1/tasks/T-1/done"):
        for body in (b"agent=ann", b"\xff", b"\x1f\x8b\x08\x00", b'{"agent": NaN}'):
            status, error = asked(repo, "POST", path, body)
            assert status == 400 and error["next"] == "Send one JSON object, as UTF-8 and not compressed."


@pytest.mark.parametrize(("headers", "then"), [
    ({"Authorization": "Bearer wrong"}, "The operator's token is in {bearer}; POST /v1/agents gives an agent its own."),
    ({"Host": "evil.example"}, "Ask at {base}; a proxy before it must send that as the host."),
    ({"Origin": "http://evil.example"}, "Ask by a program, or from a page of {base}."),
])
def test_who_is_kept_out_is_told_what_helps(repo: Repo, headers: dict[str, str], then: str) -> None:
    repo.coord("up", "--http", "0")
    status, error = asked(repo, "GET", "/v1/locks", None, **headers)
    base = repo.state.http.read_text().strip()
    assert status == (403 if "Origin" in headers else 401) and error["next"] == then.format(bearer=repo.state.bearer, base=base)


def test_names_of_hosts_have_no_case_and_tokens_no_spaces(repo: Repo) -> None:
    repo.coord("up", "--http", "0")
    host = repo.state.http.read_text().strip().removeprefix("http://127.0.0.1")
    token = repo.state.bearer.read_text().strip()
    assert asked(repo, "GET", "/v1/locks", None, Host=f"LocalHost{host}", Authorization=f"BEARER  {token} ")[0] == 200
    assert asked(repo, "GET", "/v1/locks", None, Host=f"LocalHost{host}", Origin=f"http://localhost{host}")[0] == 200


def test_asked_for_its_head_a_stream_ends(repo: Repo) -> None:
    repo.coord("up", "--http", "0")
    to = urlsplit(repo.state.http.read_text().strip())
    link = http.client.HTTPConnection(to.hostname or "", to.port, timeout=20)
    bearer = {"Authorization": f"Bearer {repo.state.bearer.read_text().strip()}"}
    for method, path, status in (("HEAD", "/v1/events/stream", 200), ("HEAD", "/v1/events/stream?after=x", 400), ("GET", "/v1/health", 200)):
        link.request(method, path, headers=bearer)  # over one connection: each is answered to its end
        answer = link.getresponse()
        answer.read()
        assert answer.status == status
    link.close()


def asked(repo: Repo, method: str, path: str, body: bytes | None, **headers: str) -> tuple[int, dict[str, Any]]:
    """(status, error) of one request by the operator, unless the headers say otherwise."""
    to = urlsplit(repo.state.http.read_text().strip())
    link = http.client.HTTPConnection(to.hostname or "", to.port, timeout=20)
    bearer = {"Authorization": f"Bearer {repo.state.bearer.read_text().strip()}"}
    try:
        link.request(method, path, body=body, headers=bearer | headers)
        answer = link.getresponse()
        text = answer.read()
        return answer.status, json.loads(text).get("error", {}) if text else {}
    finally:
        link.close()
