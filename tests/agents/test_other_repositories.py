"""Real agents of one repository that edit files of another, which has a coordinator of its own."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from coordinator.words import requests as rq
from tests.agents.clis import Extra
from tests.agents.conftest import need
from tests.agents.conversation import Edit, Read, Result, Say, Script, Scripted
from tests.agents.wired import PROFILES, Wired

pytestmark = pytest.mark.agents

#: How each is told of a further folder.
FURTHER = {"claude": "--add-dir", "codex": "--add-dir", "gemini": "--include-directories", "copilot": "--add-dir"}


@pytest.mark.parametrize("agent", sorted(FURTHER))
def test_an_edit_in_another_repository_is_asked_of_its_coordinator(agent: str, wired: Wired, tmp_path: Path) -> None:
    need(agent)
    other = tmp_path / "other"
    other.mkdir()
    subprocess.run(["git", "init", "-q", str(other)], check=True)
    (other / "held.txt").write_text("first line\nsecond line\n")
    (other / "free.txt").write_text("first line\nsecond line\n")
    wired.coord("init", "--agent", PROFILES[agent], "--yes")
    there = Wired(other, wired.stand)
    there.coord("init")
    heard: dict[str, Result] = {}
    leased: list[tuple[str, str]] = []
    try:
        with there.client() as client:
            client.call(rq.Acquire(agent="ann", resources=["held.txt"], description="reordering them"))

            def script(_: Scripted) -> Script:
                yield Read("../other/held.txt")
                heard["held"] = yield Edit("../other/held.txt", "second line", "HACK")
                yield Read("../other/free.txt")
                yield Edit("../other/free.txt", "second line", "mine")
                leased.extend((one.resource, one.locked_by) for one in client.call(rq.Locks()).items)
                yield Say("done")

            ran = wired.run(agent, script, more=Extra(argv=(FURTHER[agent], str(other))))
            assert ran.code == 0, ran.tail()
            assert there.read("held.txt") == "first line\nsecond line\n", ran.tail()
            assert there.read("free.txt") == "first line\nmine\n", ran.tail()
            said = heard["held"].text
            assert "ann" in said and "reordering them" in said, said
            (mine,) = [holder for resource, holder in leased if resource == "free.txt"]
            assert mine.startswith(PROFILES[agent])
            assert [one.resource for one in client.call(rq.Locks()).items] == ["held.txt"], "its session has ended"
        with wired.client() as client:
            assert client.call(rq.Locks()).items == []
    finally:
        there.coord("down")
