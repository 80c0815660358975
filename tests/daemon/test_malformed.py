"""Requests that cannot be read: each answer names the field, the value it may have, and what to do."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from coordinator.operations.listing import OPERATIONS, decode
from coordinator.words.refusals import Code, Refusal

WRONG: list[tuple[str, Any, str, str]] = [
    ("locks", {"limit": 0}, "`limit` must be at least 1.", "limit"), ("locks", {"limit": "x"}, "`limit` must be a whole number, not a text.", "limit"),
    ("acquire", {"agent": "ann"}, "it lacks the field `resources`.", "resources"), ("acquire", {"agent": "ann", "resorces": []}, "it has no field `resorces`.", "resorces"),
    ("acquire", {"agent": "ann", "resources": "a.py"}, "`resources` must be a list, not a text.", "resources"),
    ("acquire", {"agent": "ann", "resources": [1]}, "`resources[0]` must be a text, not a whole number.", "resources[0]"),
    ("acquire", {"agent": "ann", "resources": ["a"], "mode": "odd"}, "`mode` cannot be 'odd'.", "mode"),
    ("acquire", {"agent": "ann", "resources": ["a"], "description": "x" * 1001}, "`description` must be at most 1,000 characters long.", "description"),
    ("acquire", {"agent": "ann", "resources": ["a"], "retry": 1}, "`retry` must be true or false, not a whole number.", "retry"),
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
        assert refusal.next == "Repeat it with another `changes[0]`."
        return
    if " field " in said:
        field = ""
    assert refusal.next == f"Repeat it with another `{field}`." if field else refusal.next.startswith(f"`{operation}` takes: agent, resources")
