"""`coord launch` as a person uses it: real processes, real files, real daemon."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import signal
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import coordinator._hook as hook_file
from coordinator.profiles import agent_logs
from coordinator.words import requests as rq
from tests.conftest import Repo
from tests.launch.conftest import Launch, alive, pid_in
from tests.namespaces.conftest import can_have_sessions
from tests.waiting import until

pytestmark = pytest.mark.slow

Start = Callable[..., Launch]


def states(repo: Repo) -> dict[str, str]:
    with repo.client() as client:
        return {t.title: t.state for t in client.call(rq.Tasks()).items}


def test_an_agent_that_said_nothing_is_said_to(repo: Repo, launch: Start) -> None:
    going = launch('case $COORD_TASK in T-2) echo done;; esac', ("quiet", []), ("loud", []))
    assert going.report()["complete"], going.said()
    for words in (["logs", "T-1"], ["logs", "1", "--raw"], ["logs", "T-1", "--json"], ["logs", "T-1", "--all", "--json"]):
        silent = repo.coord(*words)
        assert (silent.returncode, silent.stdout) == (0, "") and silent.stderr == "coord: the agent of T-1 has said nothing.\n", silent
    loud = repo.coord("logs", "T-2")
    assert (loud.stdout, loud.stderr) == ("done\n", "")
    (log,) = agent_logs.find(repo.state, "T-1")
    log.write_text("\n\n")
    assert "has said nothing for people; `coord logs T-1 --raw`" in repo.coord("logs", "T-1").stderr


def test_what_an_earlier_try_said_is_not_passed_over_in_silence(repo: Repo, launch: Start) -> None:
    going = launch('[ -e flag ] && exit 0; touch flag; echo "table missing"; exit 3', ("one", []))
    assert going.report()["complete"], going.said()
    silent = repo.coord("logs", "T-1")
    assert silent.stderr == "coord: the agent of T-1 has said nothing.\n  next: `coord logs T-1 --all` shows its earlier tries, too.\n"
    assert "table missing" in repo.coord("logs", "T-1", "--all").stdout


@pytest.mark.parametrize("pause", [0, 0.3])
def test_what_was_changed_outside_of_leases_is_told(repo: Repo, launch: Start, pause: float) -> None:
    """Also what a program wrote in its last instant."""
    repo.write("coord.toml", "")  # with a watcher
    repo.write("stray.py", "1\n")
    going = launch(f"echo 2 >> mine.py; echo 2 >> stray.py; rm -f never.py; sleep {pause}", ("one", ["mine.py"]))
    report = going.report()
    assert report["complete"] and report["unleased"] == ["stray.py"], repo.coord("events").stdout
    assert "stray.py was changed without a lease" in repo.coord("explain", "stray.py").stdout


def test_tasks_of_one_file_run_one_after_the_other(repo: Repo, launch: Start) -> None:
    going = launch(
        'echo "begin $COORD_TASK" >> order; echo working; sleep 0.2; cat > prompt-$COORD_TASK\n'
        'echo "end $COORD_TASK" >> order',
        ("one", ["shared.txt"]), ("two", ["shared.txt"]), ("three", ["other.txt"]), n=3,
    )
    report = going.report()
    assert going.process.returncode == 0, going.said()
    assert report["complete"] and report["tasks"] == {"done": 3}
    order = (repo.root / "order").read_text().splitlines()
    first, second = (order.index(f"begin {t}") for t in ("T-1", "T-2"))
    assert order.index("end T-1") < second or order.index("end T-2") < first
    prompt = (repo.root / "prompt-T-1").read_text()
    assert "T-1: one" in prompt and "`shared.txt` (exclusive)" in prompt
    # the log is found by task, and `coord logs` shows it
    (log,) = agent_logs.find(repo.state, "T-1")
    assert log.read_text() == "working\n"
    assert repo.coord("logs", "1").stdout == "working\n"
    # nobody holds anything, and no secret lies in the record
    with repo.client() as client:
        assert client.call(rq.Locks()).items == []
        assert client.call(rq.Agents()).items == []
    assert "token" not in (log.parent / "record").read_text()


def test_two_programs_without_hooks_write_two_regions_of_one_file_as_they_are_told(repo: Repo, launch: Start) -> None:
    (repo.root / "a.py").write_text("def one():\n    return 1\n\n\ndef two():\n    return 2\n")
    going = launch(
        'cat > prompt-$COORD_TASK; grep -q "commit-region FILE::NAME" prompt-$COORD_TASK || exit 1\n'
        'name=$(grep -o "a.py::[a-z]*" prompt-$COORD_TASK | head -1); sleep 0.5\n'
        f'printf "def ${{name#a.py::}}():\\n    return 0\\n" | {sys.executable} -m coordinator.cli.main commit-region "$name"',
        ("one", ["a.py::one"]), ("two", ["a.py::two"]))
    assert going.report()["complete"], going.said()
    assert (repo.root / "a.py").read_text().split() == ["def", "one():", "return", "0", "def", "two():", "return", "0"]


def test_an_agent_acts_as_itself_in_its_own_shell(repo: Repo, launch: Start) -> None:
    going = launch(
        f'"{sys.executable}" -m coordinator.cli.main lock found.txt --task $COORD_TASK || exit 9\n'
        f'"{sys.executable}" -m coordinator.cli.main launch -n 1 -c true && exit 9\n'
        'coord task done $COORD_TASK\nexit 1',  # found though it is on nobody's PATH
        ("one", ["a"]), n=1, env={"PATH": "/usr/bin:/bin"},
    )
    report = going.report()
    assert report["tasks"] == {"done": 1}, going.said()
    log = agent_logs.find(repo.state, "T-1")[-1].read_text()
    assert "UNAUTHORIZED" in log  # launching is for people
    with repo.client() as client:
        assert client.call(rq.Locks()).items == []


@pytest.mark.parametrize("ends", [
    "coord task done $COORD_TASK", "coord task fail $COORD_TASK",
    "test -e tried || coord task fail $COORD_TASK --blocked later.txt; touch tried",
])
def test_an_agent_that_ends_its_task_itself_gets_the_next_one(repo: Repo, launch: Start, ends: str) -> None:
    # Given an agent with hooks that ends its task as its prompt says; then its session ends
    end = json.dumps({"session_id": "s1", "cwd": str(repo.root), "hook_event_name": "SessionEnd",
                      "reason": "other"})
    report = launch(
        f"echo $COORD_TASK >> order\n{ends}\n"
        f"echo '{end}' | \"{sys.executable}\" -I -S -E \"{hook_file.__file__}\" \"$COORD_SOCKET\" claude-code\n",
        ("one", ["a"]), ("two", ["b"]), n=1,
    ).report()
    # Then that is no end of the launch: each task comes to its own
    order = (repo.root / "order").read_text().split()
    assert {"T-1", "T-2"} <= set(order)
    wanted = {"dead": 2} if "blocked" not in ends and "fail" in ends else {"done": 2}
    assert report["tasks"] == wanted, report


def test_an_agent_that_a_person_removed_is_not_the_end_of_the_launch(repo: Repo, launch: Start) -> None:
    going = launch(
        "echo $$ >> pids; while ! test -e again; do echo busy; sleep 0.1; done",
        ("one", ["a"]), ("two", ["b"]), n=1, options=("--ttl", "2s", "--grace", "1s"),
    )
    pids = repo.root / "pids"
    pid = int(until(lambda: pids.exists() and pids.read_text().split())[0])
    with repo.client() as person:
        person.call(rq.Leave(agent="shell-1", clean=True))
    until(lambda: not alive(pid))
    (repo.root / "again").touch()
    assert going.report()["tasks"] == {"done": 2}, going.said()


SLOW = "echo $COORD_TASK >> began; echo $$ > pid; while ! test -e go; do echo busy; sleep 0.1; done; echo $COORD_TASK >> ended"


def _begin(repo: Repo, **streams: Any) -> subprocess.Popen[bytes]:
    """A launch of one agent for two tasks, which is at its first."""
    with repo.client() as person:
        for name in ("one", "two"):
            person.call(rq.TaskAdd(title=name, resources=[name]))
    script = repo.root.parent / "agent.sh"
    script.write_text(SLOW)
    process = subprocess.Popen(
        [sys.executable, "-m", "coordinator.cli.main", "launch", "-", "--agent", "shell",
         "--command", f"sh '{script}'", "-n", "1"], cwd=repo.root, **streams)
    pid_in(repo.root / "pid")
    return process


def _drained(repo: Repo, process: subprocess.Popen[bytes]) -> None:
    """What runs is finished, nothing more is begun, and nothing is left behind."""
    assert process.poll() is None, "it did not wait for its agent"
    (repo.root / "go").touch()
    assert process.wait(30) == 1
    assert (repo.root / "ended").read_text().split() == ["T-1"]
    assert (repo.root / "began").read_text().split() == ["T-1"]
    assert states(repo) == {"one": "done", "two": "ready"}
    with repo.client() as person:
        assert person.call(rq.Agents()).items == []
        assert person.call(rq.Reviews()).items == []


def test_a_terminal_that_is_closed_lets_what_runs_finish(repo: Repo) -> None:
    ours, theirs = pty.openpty()
    process = _begin(repo, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
                     preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
    os.close(theirs)
    os.close(ours)  # as when its window is closed
    _drained(repo, process)


def test_a_reader_that_ends_lets_what_runs_finish(repo: Repo) -> None:
    process = _begin(repo, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()  # as `| head` does
    _drained(repo, process)


def test_who_was_refused_and_changed_nothing_has_given_up(repo: Repo, launch: Start) -> None:
    # Given agents that all end with 0: one that was refused a file and did nothing, one that was
    # refused and did its own, one that got it in the end, and one that had nothing to do
    with repo.client("ann") as ann:
        ann.acquire("held")
        report = launch(
            'ask() { coord lock "$1" --task $COORD_TASK; }\n'
            "case $COORD_TASK in T-1) ask held;; T-2) ask held; echo done > b;;\n"
            "T-3) ask held; ask free;; T-4) true;; T-5) ask held;; esac; exit 0",
            ("refused", ["a"]), ("worked", ["b"]), ("got another", ["c"]), ("idle", ["d"]),
            ("no files", []), n=1,
        ).report()
    # Then only the first has given up, and is tried again like one that failed
    outcomes = {one["task"]: (one["outcome"], one["changed"]) for one in report["attempts"]}
    assert outcomes == {"T-1": ("gave up", False), "T-2": ("done", True), "T-3": ("done", False),
                        "T-4": ("done", False), "T-5": ("done", None)}, report
    assert sum(one["task"] == "T-1" for one in report["attempts"]) == 3
    assert report["attempts"][0]["why"] == "it changed none of its files, and was last refused held"
    assert states(repo)["refused"] == "dead"


def test_work_that_changed_nothing_is_said(repo: Repo) -> None:
    repo.coord("task", "add", "one", "--resource", "a")
    done = repo.coord("launch", "-", "-n", "1", "-c", "true")
    assert done.returncode == 0
    assert "and changed none of its files" in done.stdout
    assert "done without a change to their files: T-1" in done.stdout


@pytest.mark.parametrize("act", [
    "mv a b", "mv -T d/one d/two", "mv a aside; ln -s aside a", "ln -sfn ../b d/link", "chmod +x a", "rm b", "rm d/one",
    "touch -r a kept; echo new > a; touch -r kept a", "ln a d/another", "echo new > c", "mv d/one e; ln -s ../e d/one",
    "mkdir d/new", "chmod 700 d", "mv a t; mv b a; mv t b", "echo new > through",
])
def test_any_change_of_a_tasks_files_is_one(repo: Repo, launch: Start, act: str) -> None:
    # Given files, a directory, and links, all of one age
    (repo.root / "d").mkdir()
    for name in ("a", "b", "d/one", "elsewhere"):
        (repo.root / name).write_text("as before\n")
        os.utime(repo.root / name, (1_000_000_000, 1_000_000_000))
    (repo.root / "d/link").symlink_to("../a")
    (repo.root / "through").symlink_to("elsewhere")
    # When an agent changes any of them, in whatever way
    going = launch(act, ("one", ["a", "b", "c", "d/", "through"]), n=1)
    report = going.report()
    # Then it is not told that it changed none
    assert [one["changed"] for one in report["attempts"]] == [True], (going.said(), report)
    assert "changed none" not in going.said()


def test_a_failing_agent_is_retried_then_dead(repo: Repo, launch: Start) -> None:
    going = launch('echo "no luck" >&2; exit 3', ("bad", ["a"]), ("good", ["b"]), n=1)
    report = going.report()
    assert going.process.returncode == 1
    assert report["tasks"] == {"dead": 2}
    assert len(report["attempts"]) == 6
    assert report["attempts"][0]["why"] == "exit code 3: no luck"
    assert report["open"][0].startswith("T-1 is dead")
    assert len(agent_logs.find(repo.state, "T-1")) == 3


def test_what_a_failed_agent_changed_becomes_a_review(repo: Repo, launch: Start) -> None:
    (repo.root / "a").write_text("before\n")
    report = launch("echo half > a; exit 1", ("one", ["a"]), n=1).report()
    assert report["tasks"] == {"review": 1} and report["reviews"] == 1
    with repo.client() as client:
        (review,) = client.call(rq.Reviews()).items
        shown = client.call(rq.ReviewShow(review=review.review))
    assert "+half" in shown.files[0].diff and "-before" in shown.files[0].diff


def test_a_hung_agent_loses_its_lease_and_a_slow_one_does_not(repo: Repo, launch: Start) -> None:
    # Given one agent that says nothing, and one that is as slow but prints
    going = launch(
        'if [ -e second ]; then exit 0; fi\n'
        'case $COORD_TASK in T-1) echo $$ > pid; touch second.$$; sleep 600;;\n'
        '*) for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo $i; sleep 0.25; done;; esac',
        ("hung", ["a"]), ("slow", ["b"]), n=2, options=("--ttl", "1s", "--grace", "1s"),
    )
    # When the hung one's lease has ended, its process is stopped and another takes the task
    pid = pid_in(repo.root / "pid")
    until(lambda: not alive(pid))
    (repo.root / "second").touch()
    report = going.report()
    # Then the slow one finished at its first attempt
    outcomes = {(a["task"], a["attempt"]): a["outcome"] for a in report["attempts"]}
    assert outcomes["T-1", 1] == "lapsed", report
    assert outcomes["T-2", 1] == "done"
    assert report["tasks"] == {"done": 2}


def test_a_timeout_ends_the_whole_process_group(repo: Repo, launch: Start) -> None:
    going = launch(
        'test -e again && exit 0; touch again\n'
        'trap "" TERM\nsh -c \'trap "" TERM; echo $$ > grandchild; while :; do sleep 1; done\' &\n'
        'while :; do echo busy; sleep 0.1; done',
        ("endless", []), n=1, options=("--timeout", "700ms", "--grace", "200ms"),
    )
    grandchild = pid_in(repo.root / "grandchild")
    report = going.report()
    assert report["attempts"][0]["why"] == "it took longer than 0.7 s"
    assert report["tasks"] == {"done": 1}
    until(lambda: not alive(grandchild))


def test_what_a_finished_agent_left_running_is_ended_before_its_leases(
    repo: Repo, launch: Start
) -> None:
    report = launch("(echo started; exec sleep 600) & echo $! > child", ("one", ["a"]), n=1).report()
    assert report["tasks"] == {"done": 1}
    assert not alive(pid_in(repo.root / "child"))


def test_a_launcher_that_was_killed_is_tidied_up_after(repo: Repo, launch: Start) -> None:
    # Given a launcher that is killed while its agents work
    (repo.root / "a").write_text("before\n")
    stuck = ('case $COORD_TASK in T-1) test -e go || { echo half > a; echo $$ > pid; '
             'while :; do sleep 0.2; done; };; esac')
    first = launch(stuck, ("one", ["a"]), ("two", ["b"]), ("three", ["a"]), n=1, outlived=False)
    orphan = pid_in(repo.root / "pid")
    first.kill()
    assert alive(orphan)
    # When the same command is given again
    (repo.root / "go").touch()
    again = launch(stuck, ("one", ["a"]), ("two", ["b"]), ("three", ["a"]), n=2)
    report = again.report()
    # Then the orphan is stopped, its work is flagged, nothing was imported twice, the rest is done
    assert not alive(orphan)
    assert report["orphans_stopped"] == 1 and report["reviews"] == 1
    assert states(repo) == {"one": "review", "two": "done", "three": "done"}
    assert "go on" in again.said()


def test_a_task_file_that_has_grown_adds_what_is_new(repo: Repo, launch: Start) -> None:
    work = "echo $COORD_TASK >> order"
    first = launch(work, ("one", ["a"]), ("two", ["b"]), n=1)
    assert first.report()["tasks"] == {"done": 2}
    more = launch(work, ("one", ["a"]), ("two", ["b"]), ("three", ["c"]), n=1)
    assert more.report()["tasks"] == {"done": 3}, more.said()
    assert "all its 2 tasks are done." in more.said() and "1 task imported from" in more.said()
    same = launch(work, ("one", ["a"]), ("two", ["b"]), ("three", ["c"]), n=1)
    assert same.report()["complete"]
    assert "all its 3 tasks are done. `coord task import" in same.said()
    assert (repo.root / "order").read_text().split() == ["T-1", "T-2", "T-3"]


def test_who_works_for_a_launcher_that_was_killed_is_stopped_at_once(repo: Repo, launch: Start) -> None:
    (repo.root / "a").write_text("before\n")
    going = launch("echo half > a; echo $$ > pid; while :; do sleep 0.2; done", ("one", ["a"]), n=1)
    orphan = pid_in(repo.root / "pid")
    (record,) = repo.state.runs.glob("*/record")
    until(lambda: f'"pid": {orphan}' in record.read_text())
    going.kill()
    until(lambda: not alive(orphan))
    until(lambda: states(repo) == {"one": "review"})
    until(lambda: json.loads(record.read_text())["ended_at"])
    with repo.client() as person:
        assert person.call(rq.Agents()).items == []


def test_the_process_that_outlives_a_launch_ends_with_it(repo: Repo, launch: Start) -> None:
    launch("true", ("one", []), n=1).report()
    (record,) = repo.state.runs.glob("*/record")
    assert not alive(json.loads(record.read_text())["outlived_by"])


def test_an_agent_that_its_launcher_had_no_time_to_write_down_is_found(repo: Repo, launch: Start) -> None:
    # Given a launcher that is killed between the start of its agent and the record of that
    stuck = ('case $COORD_TASK in T-1) test -e go || { echo half > a; echo $$ > pid; '
             'while :; do sleep 0.2; done; };; esac')
    first = launch(stuck, ("one", ["a"]), n=1, outlived=False)
    orphan = pid_in(repo.root / "pid")
    first.kill()
    (record,) = repo.state.runs.glob("*/record")
    data = json.loads(record.read_text())
    data.update(workers=[{"agent": worker["agent"]} for worker in data["workers"]])
    record.write_text(json.dumps(data))
    # Then the next launch ends it all the same
    (repo.root / "go").touch()
    report = launch(stuck, ("one", ["a"]), n=1).report()
    assert not alive(orphan)
    assert report["orphans_stopped"] == 1 and report["reviews"] == 1


def test_a_pid_that_was_given_away_is_left_alone(repo: Repo, launch: Start) -> None:
    # Given the record of a dead launcher whose agent's pid is somebody else's now: this test's
    launch("true", ("one", []), n=1).report()
    (record,) = repo.state.runs.glob("*/record")
    data = json.loads(record.read_text())
    data.update(ended_at=None, workers=[{"agent": "shell-1", "pid": os.getpid(), "mark": "old/1",
                                       "task": "T-1", "attempt": 1}])
    record.write_text(json.dumps(data))
    # Then the next launch does not touch it
    report = launch("true", ("two", []), n=1).report()
    assert report["orphans_stopped"] == 0 and report["complete"]


def test_the_daemon_may_be_killed_in_the_middle(repo: Repo, launch: Start) -> None:
    tasks = [(f"task {n}", [f"f{n % 4}"]) for n in range(12)]
    going = launch("sleep 0.3; echo x >> done-$COORD_TASK", *tasks, n=4)
    for count in (2, 6):
        until(lambda count=count: len(list(repo.root.glob("done-*"))) >= count)
        old = repo.pid()
        os.kill(old, signal.SIGKILL)
        # the launch starts another by itself
        until(lambda old=old: repo.state.lock.read_text() not in ("", str(old)))
    report = going.report()
    assert report["complete"], going.said()
    assert report["tasks"] == {"done": 12}
    # nothing was done twice
    assert all((repo.root / f"done-T-{n}").read_text() == "x\n" for n in range(1, 13))


def test_ctrl_c_once_drains_and_twice_stops(repo: Repo, launch: Start) -> None:
    (repo.root / "a").write_text("before\n")
    agent = ('case $COORD_TASK in T-1) touch one; while ! test -e go; do sleep 0.05; done;;\n'
             '*) echo half > a; echo $$ > pid; sleep 600;; esac')
    going = launch(agent, ("one", []), ("two", ["a"]), n=1)
    until(lambda: (repo.root / "one").exists())
    going.process.send_signal(signal.SIGINT)
    until(lambda: "No new tasks" in going.said())
    (repo.root / "go").touch()
    report = going.report()
    # what ran was finished; nothing new was begun
    assert report["tasks"] == {"done": 1, "ready": 1} and going.process.returncode == 1

    going = launch(agent, n=1)
    pid = pid_in(repo.root / "pid")
    going.process.send_signal(signal.SIGINT)
    until(lambda: "No new tasks" in going.said())
    assert alive(pid)
    going.process.send_signal(signal.SIGINT)
    report = going.report()
    assert not alive(pid)
    assert states(repo)["two"] == "review" and report["attempts"][0]["outcome"] == "stopped"


def test_lines_and_report_when_piped(repo: Repo) -> None:
    file = repo.root / "tasks.md"
    file.write_text("- [ ] Say hello (files: hello)\n  in English\n- [x] Done before\n")
    done = repo.coord("launch", "tasks.md", "--agents", "1", "-c", "cat")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "1 task imported from tasks.md."
    assert "shell-1 took T-1 'Say hello'" in lines
    assert any(line.startswith("1 done; ") for line in lines)
    assert "\x1b" not in done.stdout
    assert "in English" in repo.coord("logs", "T-1").stdout


def test_bad_input_starts_nothing(repo: Repo, tmp_path: Path) -> None:
    def refused(*args: str) -> str:
        done = repo.coord("launch", *args)
        assert done.returncode == 2, done.stderr
        assert "next:" in done.stderr and "Traceback" not in done.stderr
        return done.stderr

    bad = repo.root / "bad.yaml"
    bad.write_text("- title: x\n  resources: [a\n")
    assert "line 3" in refused("bad.yaml", "-c", "true")
    (repo.root / "tasks.txt").write_text("x")
    assert "cannot be told" in refused("tasks.txt", "-c", "true")
    assert "cannot be read" in refused("nowhere.yaml", "-c", "true")
    assert "no agent profile called 'nobody'" in refused("-", "--agent", "nobody")
    assert "which agents" in refused("-")
    assert "has no command" in refused("-", "--agent", "shell")
    assert "no program called no-such-thing" in refused("-", "-c", "no-such-thing {prompt_file}")
    assert "no placeholder {prmpt}" in refused("-", "-c", "cat {prmpt}")
    assert "without a shell" in refused("-", "-c", "cat {prompt_file} | wc")
    assert "between 1 and 50" in refused("-", "-c", "true", "--agents", "99")
    assert "duration" in refused("-", "-c", "true", "--ttl", "soon")
    assert "duration" in refused("-", "-c", "true", "--ttl", "-5s")
    with repo.client() as client:
        assert client.call(rq.Agents(all=True)).items == []
        assert client.call(rq.Tasks()).items == []


def test_several_profiles_work_in_one_launch(repo: Repo, launch: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = repo.root.parent / "config"
    (folder / "coord/agents").mkdir(parents=True)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))
    (repo.root.parent / "talker.sh").write_text(
        'while ! test -e go; do sleep 0.05; done; echo \'{"kind": "said", "say": "hello"}\'\n'
        "echo $COORD_AGENT > $COORD_TASK.by")
    (folder / "coord/agents/talker.toml").write_text(
        f'name = "talker"\ndescription = "talks"\nprompt = "stdin"\nsuccess_codes = [0]\nversions_tried = []\n'
        f'command = ["sh", "{repo.root.parent}/talker.sh"]\n'
        '[[stream.rules]]\nwhen = { kind = "said" }\nsay = "say"\n')
    tasks = [(f"t{n}", [f"T-{n}.by"]) for n in range(1, 7)]
    going = launch("while ! test -e go; do sleep 0.05; done; echo $COORD_AGENT > $COORD_TASK.by", *tasks,
                   n=3, options=("--agent", "talker:2"))
    until(lambda: len([t for t in states(repo).values() if t == "claimed"]) == 3)
    with repo.client() as person:
        agents = {row.agent: row.profile for row in person.call(rq.Agents()).items}
    assert agents == {"shell-1": "shell", "talker-1": "talker", "talker-2": "talker"}
    (repo.root / "go").touch()
    report = going.report()
    assert report["tasks"] == {"done": 6} and report["agents"] == 3
    # a log is read by the rules of whoever wrote it
    for one in report["attempts"]:
        shown = repo.coord("logs", one["task"]).stdout
        assert shown == ("hello\n" if one["agent"].startswith("talker") else ""), one


#: An agent's CLI that has coord's plugin and does not start it: it tells of a tool that no hook saw.
DEAF = """
echo $COORD_TASK >> "$COORD_ROOT/../began"
echo '{"type": "tool_use", "sessionID": "s-1", "part": {"tool": "read"}}'
case $HOW in fails) exit 1;; hangs) exec sleep 60;;
model) echo '{"type": "error", "error": {"data": {"message": "overloaded"}}}'; exit 1;; esac
"""


@pytest.mark.parametrize("how", ["fails", "model", "hangs", "ends well"])
def test_an_agent_whose_hooks_are_never_heard_stops_and_spends_no_attempt(
    repo: Repo, monkeypatch: pytest.MonkeyPatch, how: str,
) -> None:
    """However its attempt ends, and though it has changed nothing: its next one would be as unguarded."""
    folder = repo.root.parent / "config"
    (folder / "coord/agents").mkdir(parents=True)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))
    (repo.root.parent / "deaf.sh").write_text(DEAF)
    known = (Path(__file__).parents[2] / "agents/opencode.toml").read_text()
    words = f'command = ["sh", "{repo.root.parent}/deaf.sh", "{{options}}", "{{prompt}}"]'
    text = re.sub(r"^command = .*opencode.*run.*$", lambda _: words, known, count=1, flags=re.M)
    text = re.sub(r"^(resume = .*|trust = .*|versions_tried = .*)$", "", text.replace('name = "opencode"', 'name = "deaf"'), flags=re.M)
    (folder / "coord/agents/deaf.toml").write_text(re.sub(r"^\[trust\]\n(.+\n)*", "", text, flags=re.M))
    repo.coord("init", "--agent", "deaf", "--yes")
    with repo.client() as person:
        for number in (1, 2):
            person.call(rq.TaskAdd(title=f"t{number}", resources=[f"f{number}"]))
    done = repo.coord("launch", "-", "-a", "deaf", "-n", "1", "--json", "--grace", "1s", env={"HOW": how})
    made = json.loads(done.stdout)
    assert [(one["task"], one["outcome"]) for one in made["attempts"]] == [("T-1", "unguarded")], done.stderr
    assert "hooks never reported in" in made["attempts"][0]["why"]
    assert done.returncode == 1 and not made["complete"]
    assert "hooks never reported in" in str(made["problems"]), made
    assert states(repo) == {"t1": "ready", "t2": "ready"}
    assert (repo.root.parent / "began").read_text().split() == ["T-1"]
    with repo.client() as person:
        assert person.call(rq.TaskShow(task="T-1")).attempts == 0


@pytest.mark.parametrize(("words", "says"), [
    (["-a", "shell:0"], "how many has to be a number"), (["-a", "shell:x"], "how many has to be a number"),
    (["-a", "shell:2", "-n", "3"], "is not what --agent adds up to (2)"),
    (["-a", "shell", "-a", "gemini", "-n", "1"], "2 profiles cannot share 1 agents"),
    (["-a", "shell:2", "-a", "shell:1"], "Each profile is named once"), (["-n", "0"], "between 1 and 50"),
    (["-a", "shell:51"], "a number from 1 to 50"), (["-a", "shell:30", "-a", "gemini:30"], "between 1 and 50"),
])
def test_numbers_that_do_not_fit_are_refused(repo: Repo, words: list[str], says: str) -> None:
    done = repo.coord("launch", "-", "-c", "true", *words)
    assert done.returncode == 2 and says in done.stderr, done.stderr


@pytest.mark.skipif(not can_have_sessions(), reason="no namespaces on this machine")
def test_no_agent_can_write_what_another_holds(repo: Repo, launch: Start) -> None:
    """Each runs in a session of its own; no command is rewritten for that."""
    for number in (1, 2, 3):
        repo.write(f"f{number}", "one\n")
    report = launch(
        "mine=f${COORD_TASK#T-}; touch began-$COORD_TASK; while [ $(ls began-* | wc -l) -lt 3 ]; do sleep 0.02; done; "
        "echo mine >> $mine; for one in f1 f2 f3; do [ $one = $mine ] || echo H >> $one; done; "
        "touch tried-$COORD_TASK; while [ $(ls tried-* | wc -l) -lt 3 ]; do sleep 0.02; done",
        ("one", ["f1"]), ("two", ["f2"]), ("three", ["f3"]), n=3).report()
    assert [one["outcome"] for one in report["attempts"]] == ["done"] * 3, report
    assert {repo.read(f"f{number}") for number in (1, 2, 3)} == {"one\nmine\n"}


def test_without_sessions_a_launch_goes_on_and_says_so(repo: Repo, launch: Start, tmp_path: Path) -> None:
    (tmp_path / "state/coord/namespaces").mkdir(parents=True)
    (tmp_path / "state/coord").chmod(0o700)
    going = launch("echo done", ("one", ["f1"]), n=1, env={"XDG_STATE_HOME": str(tmp_path / "state")})
    assert [one["outcome"] for one in going.report()["attempts"]] == ["done"]
    assert "only seen afterwards" in going.said()


def test_what_a_launch_waits_for_is_said_once(repo: Repo, launch: Start) -> None:
    with repo.client("stranger") as stranger:
        stranger.acquire("held.txt")
        going = launch("true", ("one", ["held.txt"]))
        said = until(lambda: [line for line in going.said().splitlines() if "No task can start" in line])
        assert "held.txt (stranger, until " in said[0] and "`coord locks`" in said[0]
        stranger.release("held.txt")
    assert going.report()["tasks"] == {"done": 1}
    assert going.said().count("No task can start") == 1
