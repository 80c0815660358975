"""`coord attach`: a launched agent followed, and taken over by a person at a terminal."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from coordinator.launch import door
from coordinator.launch.at_terminal import AtTerminal
from coordinator.launch.door import Visitor
from coordinator.launch.take_over import Seat
from coordinator.profiles import agent_logs
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from tests.conftest import Repo
from tests.launch.conftest import alive, pid_in
from tests.namespaces.conftest import can_have_sessions
from tests.terminal import CTRL_C, Terminal, at_a_terminal
from tests.waiting import until

pytestmark = pytest.mark.slow

#: An agent's CLI: `begin` and `resume` unattended, `person` at a terminal. Two at once are found out.
CLI = """
exec 9>>"$COORD_ROOT/../$COORD_AGENT.alone"; flock -n 9 || echo "two at once" >> "$COORD_ROOT/../two"
echo "$1 $2 $COORD_TASK $COORD_AGENT $(echo "$COORD_AGENT_TOKEN" | cksum)" >> "$COORD_ROOT/../order"
say() { printf '{"kind": "said", "say": "%s"}\\n' "$1"; }
case $1 in
  person)
    trap '' HUP; echo $$ > "$COORD_ROOT/../person"; echo "at $2 $TERM"
    while read -r line; do eval "$line" 2>&1; echo "=> $?"; done;;
  *)
    printf '{"kind": "init", "session": "s-%s"}\\n' "$COORD_TASK"; say "hello, $1"
    echo $$ > "$COORD_ROOT/../unattended"
    test $1 = begin || cat > "$COORD_ROOT/../resumed"
    until test -e "$COORD_ROOT/../go-$1"; do sleep 0.05; say busy; done
    say 'this is \\u001b[31mred'; printf '{"kind": "end", "result": "all done"}\\n';;
esac
"""
PROFILE = """
description = "talks"
prompt = "stdin"
command = ["sh", "{cli}", "begin"]
resume = ["sh", "{cli}", "resume", "{{session}}"]
{take_over}
[stream]
must_end = true
[[stream.rules]]
when = {{ kind = "init" }}
session = "session"
[[stream.rules]]
when = {{ kind = "said" }}
say = "say"
[[stream.rules]]
when = {{ kind = "end" }}
result = "result"
ends = true
"""


class Talkers:
    """A repository in which `coord launch` runs such agents."""

    def __init__(self, repo: Repo) -> None:
        self.repo = repo
        self.around = repo.root.parent
        self.processes: list[subprocess.Popen[str]] = []
        folder = self.around / "config/coord/agents"
        folder.mkdir(parents=True)
        cli = self.around / "cli.sh"
        cli.write_text(CLI)
        way = f'take_over = ["sh", "{cli}", "person", "{{session}}"]'
        for name, take_over in (("talker", way), ("mute", "")):
            (folder / f"{name}.toml").write_text(PROFILE.format(cli=cli, take_over=take_over))

    def launch(self, *tasks: tuple[str, str], agent: str = "talker", more: tuple[str, ...] = ()) -> subprocess.Popen[str]:
        with self.repo.client() as person:
            for title, file in tasks:
                person.call(rq.TaskAdd(title=title, resources=[file]))
        process = subprocess.Popen(
            [sys.executable, "-m", "coordinator.cli.main", "launch", "-", "--agent", agent, "-n", "1", "--json",
             "--grace", "1s", *more], cwd=self.repo.root, stdout=subprocess.PIPE,
            stderr=(self.around / "said").open("a"), text=True, start_new_session=True)
        self.processes.append(process)
        self.launched = process
        return process

    def at_work(self) -> int:
        """Its unattended program, as soon as there is one."""
        return pid_in(self.around / "unattended")

    def go(self, *ways: str) -> None:
        for way in ways or ("begin", "resume"):
            (self.around / f"go-{way}").touch()

    def order(self) -> list[str]:
        return (self.around / "order").read_text().splitlines()

    def ways(self) -> list[str]:
        """How it was run, one time after the other."""
        return [line.split()[0] for line in self.order()]

    def report(self) -> dict[str, Any]:
        out, _ = self.launched.communicate(timeout=40)
        assert not (self.around / "two").exists(), "two processes of one agent at once"
        return json.loads(out)  # type: ignore[no-any-return]

    def said(self) -> str:
        return (self.around / "said").read_text()

    def take_over(self, at: dict[str, str | Callable[[], None]], *more: str) -> tuple[int, str]:
        return at_a_terminal(self.repo.root, "attach", "--take-over", *more, at=at)

    def task(self, task: str = "T-1") -> rq.Task:
        with self.repo.client() as person:
            return person.call(rq.TaskShow(task=task))

    def follow(self, *words: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "coordinator.cli.main", "attach", *words], cwd=self.repo.root, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            # a Ctrl-C counts, whatever the tests were started with
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        self.processes.append(process)
        return process


@pytest.fixture
def talkers(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> Iterator[Talkers]:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(repo.root.parent / "config"))
    made = Talkers(repo)
    yield made
    made.go()
    for process in made.processes:
        for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL):
            if process.poll() is None:
                process.send_signal(number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(5)
        if process.stdout:
            process.stdout.close()


def test_what_an_agent_says_is_followed_to_its_end(talkers: Talkers) -> None:
    # Given an agent at the first of two tasks, and somebody who follows the only one there is
    talkers.launch(("one", "a"), ("two", "b"))
    talkers.at_work()
    piped, as_json = talkers.follow("-n", "9999"), talkers.follow("--json", "talker-1")
    assert piped.stdout is not None and as_json.stdout is not None
    told = [json.loads(as_json.stdout.readline())]
    head = [piped.stdout.readline() for _ in range(2)]
    assert head == ["== talker-1 is at T-1 'one' (T-1-1.log)\n", "hello, begin\n"]
    # When it comes to the end of both
    talkers.go()
    out, _ = piped.communicate(timeout=20)
    # Then all of it was shown, each end too, and nothing that steers a terminal
    said = [line for line in out.splitlines() if line != "busy"]
    assert said[0] == "this is \\x1b[31mred"
    assert said[1].startswith("== talker-1: T-1 done after ")
    assert said[2:4] == ["== talker-1 is at T-2 'two' (T-2-1.log)", "hello, begin"] or (
        said[2] == "== talker-1 waits for a task")
    assert any(line.startswith("== talker-1: T-2 done after ") for line in said)
    assert said[-1] == "== talker-1 has ended: nothing is left to do"
    assert piped.returncode == 0 and "\x1b" not in out
    told += [json.loads(line) for line in as_json.communicate(timeout=20)[0].splitlines()]
    assert [one["task"] for one in told if one["kind"] == "begins"] == ["T-1", "T-2"]
    assert told[-1] == {"agent": "talker-1", "task": None, "kind": "over",
                        "text": "talker-1 has ended: nothing is left to do"}
    assert talkers.report()["complete"]
    # and who asks now is told what there is instead
    done = talkers.repo.coord("attach", "talker-1")
    assert done.returncode == 7, done.stderr
    assert "talker-1 has ended (nothing is left to do). Its last task: T-2 done after" in done.stderr
    assert "next: coord logs T-2" in done.stderr


def test_whom_nobody_can_follow(talkers: Talkers) -> None:
    repo = talkers.repo
    none = repo.coord("attach")
    assert none.returncode == 7 and "No launched agent is at work" in none.stderr
    with repo.client("ann") as ann:
        ann.acquire("b")
        typed, nobody = repo.coord("attach", "ann"), repo.coord("attach", "bob")
        assert typed.returncode == 2 and "was not started by `coord launch`" in typed.stderr
        assert "next: coord explain ann" in typed.stderr
        assert nobody.returncode == 7 and "No agent is called bob" in nobody.stderr
        # an agent that is at no task can be followed, and there is nothing to take over
        talkers.launch(("one", "a"), ("two", "b"), agent="mute", more=("-n", "2"))
        talkers.at_work()
        many = repo.coord("attach")
        assert many.returncode == 2 and "2 launched agents are at work: mute-" in many.stderr
        with repo.client() as person:
            (row,) = [one for one in person.call(rq.Agents()).items if one.agent.startswith("mute") and not one.tasks]
        idle = talkers.follow(row.agent)
        assert idle.stdout is not None and idle.stdout.readline() == f"== {row.agent} waits for a task\n"
        idle.send_signal(signal.SIGINT)
        assert idle.communicate(timeout=20)[0] == f"coord: detached; {row.agent} goes on.\n" and idle.returncode == 0
        busy = "mute-1" if row.agent == "mute-2" else "mute-2"
        # one whose CLI has no way for it cannot be taken over; nor can anybody without a terminal
        piped = repo.coord("attach", busy, "--take-over")
        assert piped.returncode == 2 and "needs a terminal" in piped.stderr
        code, shown = talkers.take_over({}, busy)
        assert code == 2 and "the profile mute says no way for that" in " ".join(shown.split()), shown
        agents = repo.coord("attach", "--take-over", busy, env={"COORD_AGENT_TOKEN": "x"})
        assert agents.returncode == 6 and "taking another over is for people" in agents.stderr
        ann.call(rq.Leave(agent="ann"))
    talkers.go()
    assert talkers.report()["complete"]


def test_ctrl_c_detaches_and_touches_nothing(talkers: Talkers) -> None:
    talkers.launch(("a title that is rather long, so that it may not fit in eighty columns", "a"))
    pid = talkers.at_work()
    until(lambda: len(agent_logs.find(talkers.repo.state, "T-1")[0].read_text().splitlines()) > 5)
    code, shown = at_a_terminal(talkers.repo.root, "attach", "-n", "2", at={"busy": CTRL_C}, env={"NO_COLOR": "1"})
    assert code == 0 and "coord: detached; talker-1 goes on." in shown, shown
    assert "lines before: `coord logs T-1`" in shown and "\x1b" not in shown
    assert alive(pid)
    talkers.go()
    assert talkers.report()["complete"] and talkers.ways() == ["begin"]


def test_a_person_takes_over_and_hands_back(talkers: Talkers) -> None:
    # Given an agent that may not be silent for long, and another agent that holds a file
    repo = talkers.repo
    repo.write("held", "bob's\n")
    repo.write("a", "before\n")
    with repo.client("bob") as bob:
        bob.acquire("held")
        talkers.launch(("one", "a"), more=("--ttl", "1s", "--stall", "1500ms"))
        first = talkers.at_work()
        seen: dict[str, Any] = {}

        def look() -> None:
            seen["first lives"] = alive(first)
            seen["task"] = talkers.task()
            seen["refused"] = talkers.take_over({})
            followed = talkers.follow("--json")
            assert followed.stdout is not None
            until(lambda: "taken over" in json.loads(followed.stdout.readline())["kind"])
            with repo.client() as person:
                # longer than either of its limits
                until(lambda: float(_progress(person).partition("(")[2].split(" s")[0] or 0) > 1.7)
                seen["later"] = person.call(rq.TaskShow(task="T-1"))
                seen["holders"] = {one.resource: one.locked_by for one in person.call(rq.Locks()).items}
            followed.kill()

        # When a person takes it over, works as it for a while, and leaves
        code, shown = talkers.take_over({
            "at s-T-1 xterm-256color": "echo half > a\n", "=> 0": look,
            **({"=> ": "echo mine > held; echo tried\n"} if can_have_sessions() else {"=> ": "echo tried\n"}),
            "tried\r\n=>": "exit\n",
        })
        assert code == 0, shown
        assert "you are talker-1 now, at T-1 'one'" in shown and "coord task done T-1 --agent talker-1" in shown
        # Then its own program had been stopped, it kept its task and its lease, and nobody else came
        assert not seen["first lives"]
        assert seen["refused"][0] == 8 and "Another person has taken talker-1 over" in seen["refused"][1]
        assert (seen["task"].state, seen["later"].state) == ("claimed", "claimed")
        assert seen["later"].claimed_by == "talker-1" and seen["holders"] == {"a": "talker-1", "held": "bob"}
        if can_have_sessions():
            assert repo.read("held") == "bob's\n", shown
        # and it goes on by itself in the same conversation, as the same agent, and is told of it
        until(lambda: talkers.ways() == ["begin", "person", "resume"])
        ways = [line.split() for line in talkers.order()]
        assert [way[1] for way in ways[1:]] == ["s-T-1", "s-T-1"] and len({tuple(way[2:]) for way in ways[1:]}) == 1
        assert "A person had taken this conversation over" in until(
            lambda: (talkers.around / "resumed").exists() and (talkers.around / "resumed").read_text())
        talkers.go()
        report = talkers.report()
    assert report["complete"] and [one["outcome"] for one in report["attempts"]] == ["done"]
    assert report["reviews"] == 0 and report["attempts"][0]["changed"] and talkers.task().attempts == 1
    assert "talker-1: a person has taken T-1 over" in talkers.said()
    assert "T-1 goes on unattended, after a person was at it for" in talkers.said()


def test_a_seat_is_one_persons_and_only_while_its_agent_works() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        visitor = Visitor(theirs, AtTerminal.found(os.getpid(), "ann", ""))
        seat = Seat()
        with pytest.raises(Refusal, match="between two tasks"):
            seat.ask("ann", visitor)
        seat.open()
        seat.ask("ann", visitor)
        with pytest.raises(Refusal, match="Another person"):
            seat.ask("ann", visitor)
        # who waits when the program ends by itself is told so, at once
        assert seat.asked
        seat.close("ann", "T-1")
        assert not seat.asked and "has just come to the end of T-1" in ours.recv(4096).decode()


def test_the_door_of_a_repository_with_a_long_path_is_elsewhere(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 30)
    folder.mkdir(mode=0o700)
    came: list[str] = []

    def ask(agent: str, visitor: Visitor) -> None:
        came.append(agent)
        raise Refusal(Code.UNKNOWN_AGENT, "Nobody is here.")

    opened = door.Door(folder, "", ask)
    try:
        assert opened.path.parent != folder
        with door.send_request(opened.path, "ann") as link, pytest.raises(Refusal, match="Nobody is here"):
            door.read_answer(link, "ann")
        with socket.socket(socket.AF_UNIX) as rude:  # who says nothing that is understood
            rude.connect(str(opened.path))
            rude.sendall(b"hello\n")
            assert rude.recv(100) == b""
    finally:
        opened.close()
    with pytest.raises(Refusal, match="ended, or does not answer"):
        door.send_request(opened.path, "ann")
    assert came == ["ann"]


def _progress(client: Any) -> str:
    rows = {row.agent: row.progress or "" for row in client.call(rq.Agents()).items}
    return rows["talker-1"] if "taken over" in rows["talker-1"] else ""


def test_a_task_that_a_person_ended_is_not_gone_on_with(talkers: Talkers) -> None:
    talkers.launch(("one", "a"))
    talkers.at_work()
    code, shown = talkers.take_over({"at s-T-1": "coord task done $COORD_TASK\n", "=> 0": "exit 3\n"})
    assert code == 3, shown
    report = talkers.report()
    assert report["complete"] and talkers.ways() == ["begin", "person"]
    assert [one["outcome"] for one in report["attempts"]] == ["done"]


def test_whatever_ends_the_person_the_agent_goes_on(talkers: Talkers) -> None:
    # Given a person whose terminal's programs do not heed that it is closed
    talkers.launch(("one", "a"))
    talkers.at_work()
    person = talkers.around / "person"
    with Terminal(talkers.repo.root, "attach", "--take-over") as first:
        assert pid_in(person) == first.process.pid  # nothing of coord stays between
        first.types("exec 9>&-; sh -c 'trap \"\" HUP; while :; do sleep 0.1; done' <&- & echo $! > child\n")
        child = pid_in(talkers.repo.root / "child")
        (talkers.around / "unattended").unlink()
        # When the terminal is closed, it goes on, alone
        first.closes()
        until(lambda: talkers.ways() == ["begin", "person", "resume"])
        assert not alive(first.process.pid) and not alive(child)
    talkers.at_work()
    # When the next person's process is killed, too
    person.unlink()
    code, shown = talkers.take_over({"at s-T-1": lambda: os.kill(pid_in(person), signal.SIGKILL)})
    assert code == -signal.SIGKILL, shown
    until(lambda: len(talkers.ways()) == 5)
    assert talkers.ways()[3:] == ["person", "resume"]
    talkers.go()
    report = talkers.report()
    assert report["complete"] and report["reviews"] == 0 and talkers.task().attempts == 1


def test_a_launcher_that_is_killed_takes_the_persons_turn_with_it(talkers: Talkers) -> None:
    talkers.repo.write("a", "before\n")
    launcher = talkers.launch(("one", "a"))
    talkers.at_work()
    followed = talkers.follow("talker-1")
    assert followed.stdout is not None and "is at T-1" in followed.stdout.readline()
    code, shown = talkers.take_over({"at s-T-1": "echo half > a\n", "=> 0": launcher.kill})
    # Its program is ended, and what was half done waits for a verdict, as with every dead launch
    assert code == -signal.SIGTERM or code == 128 + signal.SIGTERM, (code, shown)
    until(lambda: talkers.task().state == "review")
    out, _ = followed.communicate(timeout=20)
    assert followed.returncode == 1 and "talker-1 has ended: its launch was killed" in out
    with talkers.repo.client() as person:
        assert person.call(rq.Agents()).items == []
    done = talkers.repo.coord("attach", "talker-1")
    assert done.returncode == 7 and "was killed" in done.stderr and "next: coord logs T-1" in done.stderr
    (record,) = talkers.repo.state.runs.glob("*/record")
    door = Path(json.loads(record.read_text())["door"])
    until(lambda: not door.exists())  # whoever ends the agents takes it away after them
    assert talkers.ways() == ["begin", "person"]
