"""Each real agent, bare: it does what the scripted model says, and the model hears what came of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents import offline
from tests.agents.clis import CLIS
from tests.agents.conftest import need
from tests.agents.conversation import Create, Edit, Read, Result, Say, Script, Scripted, Shell
from tests.agents.stand import Stand
from tests.agents.vocabulary import TONGUES

pytestmark = pytest.mark.agents


@pytest.fixture(params=sorted(CLIS))
def agent(request: pytest.FixtureRequest) -> Iterator[str]:
    need(request.param)
    yield request.param


def test_an_agent_works_as_scripted(agent: str, stand: Stand, workplace: Path) -> None:
    tongue = TONGUES[agent]
    heard: dict[str, Result] = {}

    def script(_: Scripted) -> Script:
        heard["read"] = yield Read("notes.txt")
        heard["edit"] = yield Edit("notes.txt", "second line", "a better line")
        heard["create"] = yield Create("lib/new.py", "ANSWER = 42\n")
        yield Read("lib/sum.py")
        heard["wrong"] = yield Edit("lib/sum.py", "    no such line", "    nothing")
        if tongue.has_shell:
            heard["shell"] = yield Shell("wc -l < notes.txt > counted.txt; echo counted it")
            heard["failing"] = yield Shell("ls no-such-file-anywhere")
        yield Say("It is done.")

    ran = stand.run(agent, workplace, script, prompt="Improve the notes.")

    assert ran.code == 0, ran.tail()
    assert (workplace / "notes.txt").read_text() == "first line\na better line\nthird line\n"
    assert (workplace / "lib/new.py").read_text() == "ANSWER = 42\n"
    assert (workplace / "lib/sum.py").read_text() == "def add(a, b):\n    return a - b\n"
    assert heard["read"].ok and "second line" in heard["read"].text, heard["read"]
    assert heard["edit"].ok and heard["create"].ok and not heard["wrong"].ok, heard
    if tongue.has_shell:
        assert (workplace / "counted.txt").read_text().split() == ["3"]
        assert heard["shell"].ok and "counted it" in heard["shell"].text, heard["shell"]
        assert "no-such-file-anywhere" in heard["failing"].text
        assert heard["failing"].ok != tongue.tells_exit_codes, heard["failing"]
    first, *_, last = ran.model.work
    assert first.turn is not None and "Improve the notes." in first.turn.everything()
    assert last.reply is not None and "It is done." in last.reply.text
    assert ran.model.unknown == []


def test_the_kernel_keeps_it_on_loopback(loopback: bool) -> None:
    if not loopback:
        pytest.skip("no network namespace for this user: only proxies keep agents on loopback")
    assert offline.is_cut_off()
