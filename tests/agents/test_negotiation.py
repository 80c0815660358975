"""Two real agents that settle between them who has a file: asked, approved, handed over, told."""

from __future__ import annotations

import re

import pytest

from coordinator.words import requests as rq
from tests.agents.conftest import need
from tests.agents.conversation import Edit, Read, Result, Say, Script, Scripted, Shell
from tests.agents.wired import PROFILES, Wired
from tests.waiting import until

pytestmark = pytest.mark.agents


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini", "opencode", "copilot"])
def test_a_holder_is_asked_and_hands_over(agent: str, wired: Wired) -> None:
    """Everything is typed in the agents' own shells, the answer as the question says it; nothing
    but their hooks tells either of the other."""
    need(agent)
    wired.coord("init", "--agent", PROFILES[agent], "--yes")
    heard: dict[str, Result] = {}
    with wired.client() as client:

        def holder() -> str:
            held = client.call(rq.Locks(resource="notes.txt")).items
            return held[0].locked_by if held else ""

        def pending() -> list[rq.Unlock]:
            return client.call(rq.Requests()).items

        def first(_: Scripted) -> Script:
            yield Read("notes.txt")
            heard["first edit"] = yield Edit("notes.txt", "first line", "a first line")
            until(pending, 90)
            for _more in range(5):
                heard["asked"] = yield Shell("echo on with it")
                if found := re.search(r"`([^`]*coord'? request approve [^`]+)`", heard["asked"].all_text):
                    heard["approved"] = yield Shell(found[1])
                    break
            until(lambda: "second edit" in heard, 90)
            yield Say("done")

        def second(_: Scripted) -> Script:
            until(lambda: "a first line" in wired.read("notes.txt"), 90)
            yield Read("lib/sum.py")
            heard["files"] = yield Shell(f"'{wired.root}/.coord/bin/coord' request file notes.txt --reason 'the build is red'")
            until(lambda: not pending() or "approved" in heard, 90)
            heard["told"] = yield Shell("echo on with it")
            heard["fresh"] = yield Read("notes.txt")
            heard["second edit"] = yield Edit("notes.txt", "second line", "a second line")
            if "a second line" not in wired.read("notes.txt"):  # some must be told to look first
                heard["second edit"] = yield Edit("notes.txt", "second line", "a second line")
            heard["holder"] = Result(text=holder())
            yield Say("done")

        one = wired.stand.start(agent, wired.root, first, extra=wired.extra(agent))
        two = wired.run(agent, second)
        ran = one.wait()
        assert (ran.code, two.code) == (0, 0), ran.tail() + two.tail()
        (made,) = client.call(rq.Requests(state="all")).items
    assert "is asked to release notes.txt" in heard["files"].text
    assert f'{made.requested_by} asks you to release notes.txt: "the build is red"' in heard["asked"].all_text
    assert "has notes.txt now" in heard["approved"].text, heard
    assert (made.status, made.responded_by) == ("approved", made.holder)
    told = "\n".join(result.all_text for result in heard.values())
    assert f"{made.holder} gave up notes.txt, as you asked ({made.request})" in told, told
    assert heard["holder"].text == made.requested_by != made.holder
    assert wired.read("notes.txt") == "a first line\na second line\nthird line\n", heard
