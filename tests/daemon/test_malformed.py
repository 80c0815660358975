"""Requests that cannot be read: each answer names the field, the value it may have, and what to do."""

from __future__ import annotations

import json
import socket
from typing import Any

import msgspec
import pytest

from coordinator.operations.listing import OPERATIONS, decode
from coordinator.words.refusals import Code, Refusal
from tests.conftest import Repo

WRONG: list[tuple[str, Any, str, str]] = [
    ("locks", {"limit": 0}, "`limit` must be at least 1.", "limit"), ("locks", {"limit": "x"}, "`limit` must be a whole number, not a text.", "limit"),
    ("acquire", {"agent": "ann"}, "it lacks the field `resources`.", "resources"), ("acquire", {"agent": "ann", "resorces": []}, "it has no field `resorces`.", "resorces"),
    ("acquire", {"agent": "ann", "resources": "a.py"}, "`resources` must be a list, not a text.", "resources"),
    ("acquire", {"agent": "ann", "resources": [1]}, "`resources[0]` must be a text, not a whole number.", "resources[0]"),
    ("acquire", {"agent": "ann", "resources": ["a"], "mode": "odd"}, "`mode` cannot be 'odd'.", "mode"),
    ("acquire", {"agent": "ann", "resources": ["a"], "description": "x" * 1001}, "`description` must be at most 1,000 characters long.", "description"),
    ("acquire", {"agent": "ann", "resources": ["a"], "retry": 1}, "`retry` must be true or false, not a whole number.", "retry"),
    ("tasks", {"state": "bogus"}, "`state` cannot be 'bogus'.", "state"),
    ("acquire", [], "the request must be an object with fields, not a list.", ""),
    ("propose", {"agent": "ann", "changes": [{"content": "x"}]}, "`changes[0]` lacks the field `resource`.", "changes[0].resource"),
]


@pytest.mark.parametrize(("operation", "params", "said", "field"), WRONG)
def test_what_is_wrong_is_said(operation: str, params: Any, said: str, field: str) -> None:
    with pytest.raises(Refusal) as refused:
        decode(OPERATIONS[operation], msgspec.json.encode(params))
    refusal = refused.value
    assert refusal.code is Code.INVALID and refusal.message == f"{operation}: {said} Nothing was done."
    assert refusal.facts["field"] == (field or None)
    if "`changes[0]`" in said:
        assert refusal.next == "`changes[0]` takes: resource, version, content, patch, delete."
        return
    if " field " in said:
        field = ""
    if " cannot be " in said:
        assert refusal.next == "Choose one of: " + ("exclusive, shared." if field == "mode" else "blocked, cancelled, claimed, dead, done, failed, pending, ready, review.")
        return
    assert refusal.next == f"Repeat it with another `{field}`." if field else refusal.next.startswith(f"`{operation}` takes: agent, resources")


LINES: list[tuple[bytes, str, str]] = [
    (b"not json", "Not a request line: JSON is malformed: invalid character (byte 4).", "Send one JSON object a line"),
    (b"[]", "Not a request line: the request must be an object with fields, not a list.", "Send one JSON object a line"),
    (b"{}", "Not a request line: it lacks the field `op`.", "Send one JSON object a line"),
    (b'{"id":[1],"op":"locks"}', "Not a request line: `id` must be a whole number or a text or null, not a list.", "Send one JSON object a line"),
    (b'{"op":"locks","parms":{}}', "Not a request line: it has no field `parms`.", "Send one JSON object a line"),
    (b'{"op":"lock"}', "There is no operation called 'lock'.", "Did you mean `locks`? "),
    (b'{"op":"qqq"}', "There is no operation called 'qqq'.", "Over HTTP GET /openapi.json lists them"),
]


def test_a_line_that_is_no_request_is_told_what_one_is(repo: Repo) -> None:
    repo.coord("up")
    with socket.socket(socket.AF_UNIX) as wire:
        wire.connect(str(repo.state.socket()))
        answers = wire.makefile("rb")
        for line, said, then in LINES:
            wire.sendall(line + b"\n")
            error = json.loads(answers.readline())["error"]
            assert (error["code"], error["message"]) == ("INVALID", said)
            assert error["next"].startswith(then), error
