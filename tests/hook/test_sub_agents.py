"""A session and its sub-agents write the same files: what one is writing is not the other's to write."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from coordinator.words import requests as rq
from tests.conftest import Repo
from tests.effort import crossed
from tests.hook.test_sessions import Claude, held
from tests.waiting import patience, until

FILE = "top.txt"


def given(repo: Repo, text: str, tool: str) -> dict[str, Any]:
    said: dict[str, Any] = {"file_path": str(repo.root / FILE)}
    return said | ({"content": text} if tool == "Write" else {"old_string": "hi\n", "new_string": text})


@pytest.mark.parametrize(("tool", "reads"), crossed(["Write", "Edit"], [True, False]))
def test_what_a_parent_is_writing_is_handed_down_when_it_is_written(up: Repo, tool: str, reads: bool) -> None:
    up.write(FILE, "hi\n")
    parent, sub = Claude(up, "ann", here=True), Claude(up, "ann", "s1", here=True)
    parent.read(FILE)
    if reads:
        sub.read(FILE)
    own, wanted = given(up, "hi\nparent\n", tool), given(up, "hi\nsub\n", tool)
    assert "permissionDecision" not in parent._call(tool, own)
    with ThreadPoolExecutor(1) as pool:
        late = pool.submit(sub._call, tool, wanted)
        time.sleep(0.5)  # whatever it does, it does not pass meanwhile
        assert not late.done()
        up.write(FILE, "hi\nparent\n")
        parent._call(tool, own, "PostToolUse", tool_response={})
        answer = late.result(patience(30))
    assert answer["permissionDecision"] == "deny" and "+parent" in answer["permissionDecisionReason"], "it knows what was before"
    assert sub.edit(FILE, "hi\nparent\nsub\n") == "", "it was told"
    assert held(up) == {FILE: sub.name}
    with up.client() as client:
        assert client.call(rq.Reviews()).items == []


def test_a_command_of_a_sub_agent_is_told_to_wait(up: Repo) -> None:
    up.write(FILE, "hi\n")
    parent, sub = Claude(up, "ann", here=True), Claude(up, "ann", "s1", here=True)
    own = given(up, "hi\nparent\n", "Write")
    parent._call("Write", own)
    why, _, _ = sub.shell(f"echo sub >> {FILE}")
    assert f"{parent.name} is writing {FILE} just now. That takes a moment." in why, why
    up.write(FILE, "hi\nparent\n")
    parent._call("Write", own, "PostToolUse", tool_response={})
    why, code, _ = sub.shell(f"echo sub >> {FILE}")
    assert code == 0 and (up.root / FILE).read_text() == "hi\nparent\nsub\n", why


def test_what_a_parent_wrote_meanwhile_is_known_as_its_own(up: Repo) -> None:
    """Its edit had a window because its sub-agent asked; it goes on without reading the file again."""
    up.write(FILE, "hi\n")
    parent, sub = Claude(up, "ann", here=True), Claude(up, "ann", "s1", here=True)
    own = given(up, "hi\nparent\n", "Write")
    parent._call("Write", own)
    assert "just now" in sub.shell(f"echo sub >> {FILE}")[0]
    up.write(FILE, "hi\nparent\n")
    parent._call("Write", own, "PostToolUse", tool_response={})
    assert parent.edit(FILE, "hi\nparent\nmore\n") == ""
    until(lambda: held(up) == {FILE: parent.name})


def test_an_edit_that_nobody_told_the_end_of_keeps_a_sub_agent_for_a_moment_only(up: Repo) -> None:
    up.write(FILE, "hi\n")
    (up.root / "coord.toml").write_text("[leases]\nwindow_s = 1\n")
    up.coord("trust", "--yes")
    up.coord("down")
    with up.client() as client:
        client.call(rq.Health())
    parent, sub = Claude(up, "ann", here=True), Claude(up, "ann", "s1", here=True)
    parent._call("Write", given(up, "hi\nparent\n", "Write"))
    until(lambda: not sub.edit(FILE, "hi\nsub\n"))
    assert held(up) == {FILE: sub.name}
