"""A session of one repository that edits files of another, which has a coordinator of its own."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coordinator.words import requests as rq
from tests.agent_process import AgentProcess
from tests.conftest import Repo
from tests.hook.test_hook import held, up
from tests.hook.test_session_processes import Session
from tests.waiting import until

pytestmark = pytest.mark.slow


class Pair:
    def __init__(self, here: Repo, there: Repo) -> None:
        self.here, self.there = here, there
        self.session = Session(here, "one")

    def write(self, *paths: Path, event: str = "PreToolUse", session: Session | None = None, cwd: Path | None = None) -> str:
        """One call of the Write tool for each; why the last was denied."""
        said: dict[str, Any] = {}
        for path in paths:
            said = (session or self.session).hook(event, tool_name="Write", tool_use_id=str(path),
                                                  tool_input={"file_path": str(path), "content": "x"},
                                                  **({"cwd": str(cwd)} if cwd else {}))
        return str(said.get("hookSpecificOutput", {}).get("permissionDecisionReason", ""))


@pytest.fixture
def pair(make_repo: Callable[..., Repo]) -> Pair:
    here, there = make_repo("here"), make_repo("there")
    up(here)
    up(there)
    (there.root / "held.txt").write_text("theirs\n")
    return Pair(here, there)


def test_what_another_holds_there_is_refused_in_the_same_words(pair: Pair) -> None:
    with pair.there.client() as client:
        client.call(rq.Acquire(agent="ann", resources=["held.txt"], description="reordering it"))
    said = pair.write(pair.there.root / "held.txt")
    assert "held.txt is leased by ann" in said and "reordering it" in said
    assert held(pair.here) == {}


def test_its_own_edit_there_is_leased_there_and_registered_there(pair: Pair) -> None:
    assert pair.write(pair.there.root / "new.txt") == ""
    assert held(pair.there) == {"new.txt": "one"} and held(pair.here) == {}
    with pair.there.client() as client:
        (known,) = [one for one in client.call(rq.Agents(all=True)).items if one.agent == "claude-code-one"]
        assert known.hooked_at
    other = Session(pair.there, "two")
    assert "new.txt is leased by claude-code-one" in pair.write(pair.there.root / "new.txt", session=other)


def test_a_relative_path_and_a_link_lead_there_too(pair: Pair) -> None:
    (pair.here.root / "link").symlink_to(pair.there.root)
    assert pair.write(Path("../there/one.txt")) == "" == pair.write(pair.here.root / "link" / "two.txt")
    assert sorted(held(pair.there)) == ["one.txt", "two.txt"] and held(pair.here) == {}


def test_both_are_asked_of_an_edit_here_after_one_there(pair: Pair) -> None:
    assert pair.write(pair.there.root / "a.txt", pair.here.root / "a.txt") == ""
    assert held(pair.there) == {"a.txt": "one"} == held(pair.here)


def test_the_end_of_the_session_ends_its_leases_there(pair: Pair) -> None:
    pair.write(pair.there.root / "a.txt")
    pair.write(pair.there.root / "a.txt", event="PostToolUse")
    pair.session.hook("SessionEnd")
    assert held(pair.there) == {}


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="processes are known on Linux only")
def test_the_death_of_its_process_ends_its_leases_there(pair: Pair) -> None:
    pair.write(pair.there.root / "a.txt")
    pair.write(pair.there.root / "a.txt", event="PostToolUse")
    assert held(pair.there)
    pair.session.agent.kill()
    until(lambda: held(pair.there) == {})


def test_a_coordinator_there_that_is_down_is_started(pair: Pair) -> None:
    pair.there.down()
    assert pair.write(pair.there.root / "a.txt") == ""
    assert held(pair.there) == {"a.txt": "one"}


def test_it_is_started_for_itself_by_an_agent_that_was_told_of_the_first(pair: Pair) -> None:
    """In a session of `coord run` the environment names this repository's coordinator."""
    pair.there.down()
    pair.session.agent = AgentProcess(pair.here.root, {
        "COORD_SOCKET": str(pair.here.state.socket()), "COORD_ROOT": str(pair.here.root)})
    assert pair.write(pair.there.root / "a.txt") == ""
    assert held(pair.there) == {"a.txt": "one"} and held(pair.here) == {}


def test_one_that_cannot_be_started_stops_the_write(pair: Pair) -> None:
    pair.there.down()
    (pair.there.root / "coord.toml").write_text("[leases]\nttl_s = 'never'\n")
    with pytest.raises(AssertionError, match="no coordinator answers"):
        pair.write(pair.there.root / "a.txt")
    (pair.there.root / "coord.toml").unlink()


def test_a_file_in_no_such_repository_is_nobodys_business(pair: Pair, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    assert pair.write(tmp_path / "plain" / "a.txt") == ""
    assert held(pair.here) == {} == held(pair.there)


def test_what_was_read_there_and_replaced_since_is_refused(pair: Pair) -> None:
    file = pair.there.root / "held.txt"
    pair.session.hook("PostToolUse", tool_name="Read", tool_use_id="r", tool_input={"file_path": str(file)})
    other = Session(pair.there, "two")
    pair.write(file, session=other)
    file.write_text("another's\n")
    pair.write(file, session=other, event="PostToolUse")
    other.hook("SessionEnd")
    assert "another's" in pair.write(file)
