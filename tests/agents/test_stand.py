"""Each real agent, bare: it does what the scripted model says, and the model hears what came of it."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from tests.agents import by_hand, offline
from tests.agents.clis import CLIS, Extra
from tests.agents.conftest import need
from tests.agents.conversation import (
    Create,
    Edit,
    Mcp,
    Read,
    Refuse,
    Result,
    Say,
    Script,
    Scripted,
    Shell,
    Use,
    Writer,
    in_order,
)
from tests.agents.stand import Stand, TookTooLong
from tests.agents.vocabulary import TONGUES
from tests.waiting import until

pytestmark = pytest.mark.agents

WITH_HOOKS = ["claude", "codex", "copilot", "gemini", "opencode", "pi", "qwen"]
WITH_MCP = ["claude", "codex", "copilot", "gemini", "opencode", "qwen"]


@pytest.mark.parametrize("agent", sorted(CLIS))
def test_an_agent_works_as_scripted(agent: str, stand: Stand, workplace: Path) -> None:
    need(agent)
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
    assert ran.model.main.finished and ran.model.unknown == []


@pytest.mark.parametrize("agent", WITH_HOOKS)
def test_a_hook_can_refuse_and_remark(
    agent: str, stand: Stand, workplace: Path, tmp_path: Path,
) -> None:
    """The settings a test brings are in force: else nothing here could show what coord does."""
    need(agent)
    (workplace / "taken.txt").write_text("as it was\n")
    heard: dict[str, Result] = {}

    def script(_: Scripted) -> Script:
        yield Read("notes.txt")
        heard["create"] = yield Create("taken.txt", "changed\n")
        heard["shell"] = yield Shell("echo changed > taken.txt")
        heard["allowed"] = yield Edit("notes.txt", "second line", "a better line")
        yield Say("It is done.")

    ran = stand.run(agent, workplace, script, extra=by_hand.gate(agent, tmp_path))

    assert (workplace / "taken.txt").read_text() == "as it was\n"
    assert "a better line" in (workplace / "notes.txt").read_text(), ran.tail()
    assert by_hand.REFUSAL in heard["create"].text and by_hand.REFUSAL in heard["shell"].text
    assert not heard["create"].ok and heard["allowed"].ok
    if agent != "pi":  # whose extension here only refuses
        assert by_hand.REMARK in heard["allowed"].all_text, heard["allowed"]


@pytest.mark.parametrize("agent", WITH_MCP)
def test_a_tool_of_an_mcp_server_is_called(
    agent: str, stand: Stand, workplace: Path, tmp_path: Path,
) -> None:
    need(agent)
    heard: list[Result] = []

    def script(_: Scripted) -> Script:
        heard.append((yield Mcp("echo", "repeat", {"word": "hello"})))
        yield Say("It is done.")

    ran = stand.run(agent, workplace, script, extra=by_hand.echo_server(agent, tmp_path))
    assert "ECHO hello" in heard[0].text, ran.tail()


@pytest.mark.parametrize("pair", [("claude", "codex"), ("claude", "claude")], ids="+".join)
def test_two_agents_work_in_one_repository_in_an_order_that_the_test_sets(
    pair: tuple[str, str], stand: Stand, workplace: Path,
) -> None:
    for agent in pair:
        need(agent)
    edited = threading.Event()
    heard: list[str] = []

    def first(_: Scripted) -> Script:
        yield Read("notes.txt")
        yield Edit("notes.txt", "second line", "the first was here")
        edited.set()
        yield Say("It is done.")

    def second(_: Scripted) -> Script:
        assert edited.wait(60)
        heard.append((yield Read("notes.txt")).text)
        yield Edit("notes.txt", "third line", "the second was here")
        yield Say("It is done.")

    later = stand.start(pair[1], workplace, second)
    sooner = stand.start(pair[0], workplace, first)
    assert sooner.wait().code == 0 and later.wait().code == 0
    assert "the first was here" in heard[0]
    assert (workplace / "notes.txt").read_text().splitlines() == [
        "first line", "the first was here", "the second was here"]


@pytest.mark.parametrize("agent", ["claude", "codex", "copilot", "gemini"])
def test_a_killed_agent_leaves_nothing_running(agent: str, stand: Stand, workplace: Path) -> None:
    need(agent)

    def script(_: Scripted) -> Script:
        yield Shell("echo started > started.txt; sleep 300")

    running = stand.start(agent, workplace, script)
    until((workplace / "started.txt").exists, 60)
    family = [psutil.Process(running.pid), *psutil.Process(running.pid).children(recursive=True)]
    grouped = [p for p in family if _group(p.pid) == running.pid]
    assert grouped
    ran = running.kill()
    assert ran.code == -signal.SIGKILL and not running.alive
    until(lambda: not any(_runs(p) for p in grouped))
    for left in family:  # what an agent put into a group of its own outlives it: that is a crash
        if _runs(left):
            left.kill()


def test_an_agent_that_does_not_end_is_ended(stand: Stand, workplace: Path) -> None:
    need("claude")
    release = threading.Event()

    def script(_: Scripted) -> Script:
        release.wait(60)
        yield Say("too late")

    with pytest.raises(TookTooLong):
        stand.run("claude", workplace, script, seconds=3)
    release.set()


def test_a_sub_agent_has_a_script_of_its_own(stand: Stand, workplace: Path) -> None:
    need("claude")
    heard: list[Result] = []

    def helper(_: Scripted) -> Script:
        yield Create("helped.txt", "by the helper\n")
        yield Say("The helper is done.")

    def script(_: Scripted) -> Script:
        heard.append((yield Use("Agent", {
            "description": "Help", "prompt": "[[helper]] Help.", "run_in_background": False,
            "subagent_type": "general-purpose"})))
        yield Say("It is done.")

    ran = stand.run("claude", workplace, script, others={"helper": helper})
    assert (workplace / "helped.txt").read_text() == "by the helper\n", ran.tail()
    assert "The helper is done." in heard[0].text and ran.model.script("helper").finished
    assert {t.script for t in ran.model.work} == {"main", "helper"}


def test_something_else_can_start_several_agents_in_a_prepared_place(
    stand: Stand, workplace: Path,
) -> None:
    """As `coord launch` does: one environment, the prompt decides which script plays."""
    need("claude")

    def author(name: str) -> Writer:
        return in_order(Create(f"{name}.txt", f"{name}\n"), Say("It is done."))

    names = ("one", "two")
    ready = stand.prepare("claude", workplace, [], others={n: author(n) for n in names})
    started = [
        subprocess.Popen(["claude", "-p", f"[[{n}]] Write.", "--permission-mode", "acceptEdits"],
                         cwd=workplace, env=ready.env, stdin=subprocess.DEVNULL)
        for n in names]
    assert [process.wait(120) for process in started] == [0, 0]
    assert [(workplace / f"{n}.txt").read_text() for n in names] == ["one\n", "two\n"]


def test_a_session_is_resumed_in_its_home(stand: Stand, workplace: Path) -> None:
    need("claude")
    first = stand.start("claude", workplace, [Say("My first words.")], prompt="The first task.")
    assert first.wait().code == 0
    again = stand.run(
        "claude", workplace, [Say("My last words.")], prompt="The second task.", home=first.home,
        extra=Extra(("--continue",)))
    assert again.code == 0 and again.model.told("The first task.") and first.session is not again.model


def test_a_model_that_fails_is_an_exit_code(stand: Stand, workplace: Path) -> None:
    need("codex")
    ran = stand.run("codex", workplace, [Refuse(400, "I will not."), Say("never said")])
    assert ran.code == 1 and "I will not." in ran.out


def test_the_kernel_keeps_it_on_loopback(loopback: bool) -> None:
    if not loopback:
        pytest.skip("no network namespace for this user: only proxies keep agents on loopback")
    assert offline.is_cut_off()


def _group(pid: int) -> int:
    return os.getpgid(pid)


def _runs(process: psutil.Process) -> bool:
    return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
