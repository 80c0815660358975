"""`coord-plugin`, which a plugin's hooks run, and the launcher before it, as real processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import coordinator._hook as hook_file
from coordinator.words import requests as rq
from tests.conftest import BARE, Repo
from tests.hook.test_hook import payload

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = [sys.executable, "-m", "coordinator._plugin"]
SETTINGS = [sys.executable, "-I", "-S", "-E", str(hook_file.__file__)]
LAUNCHERS = [ROOT / "plugins/claude-code/coord.sh", ROOT / "plugins/gemini/coord.sh"]


def run(*words: str, at: Path, given: bytes = b"{}", **env: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(words, cwd=at, input=given, capture_output=True, check=False, timeout=60,
                          env={**BARE, "COORD_ROOT": "", **env})


def asked(*words: str, at: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(words, cwd=at, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=BARE)


def events(repo: Repo) -> Counter[str]:
    with repo.client() as client:
        return Counter(one.kind for one in client.call(rq.Events(limit=1000)).items)


def test_the_coordinator_is_found_from_where_the_agent_works(up: Repo, tmp_path: Path) -> None:
    """From the project that the CLI names, else from the working directory; started if need be."""
    up.write("src/a.py", "a = 1\n")
    with up.client() as client:
        client.call(rq.Acquire(agent="ann", resources=["src/a.py"]))
    given = payload(up.root, str(up.root / "src/a.py"))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for words, at in (([], up.root / "src"), (["30", str(up.root)], elsewhere), (["30", ""], up.root),
                      (["30", str(elsewhere)], up.root), (["30", str(elsewhere / "gone")], up.root)):
        done = run(*PLUGIN, "guard", "claude-code", *words, at=at, given=given)
        assert done.returncode == 0 and b'"deny"' in done.stdout and b"ann" in done.stdout, done.stderr
    up.coord("down")
    done = run(*PLUGIN, "guard", "claude-code", at=up.root, given=given)
    assert b'"deny"' in done.stdout, done.stderr


def test_where_coord_is_not_used_it_does_nothing(tmp_path: Path) -> None:
    place = tmp_path / "plain"
    (place / "src").mkdir(parents=True)
    for words in (["guard", "claude-code"], ["notice", "claude-code", "5", str(place)], ["begin", "claude-code"], ["socket"]):
        done = run(*PLUGIN, *words, at=place, given=payload(place))
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b""), words
    assert sorted(path.name for path in place.rglob("*")) == ["src"]


@pytest.mark.parametrize("launcher", LAUNCHERS, ids=["claude-code", "gemini"])
def test_a_command_whose_python_is_gone_stops_the_write_and_nothing_else(launcher: Path, tmp_path: Path) -> None:
    command = tmp_path / "bin/coord-plugin"
    command.parent.mkdir()
    command.write_text("#!/nowhere/python\n")
    command.chmod(0o755)
    path = f"{command.parent}:/usr/bin:/bin"
    assert run("sh", str(launcher), "guard", "x", at=tmp_path, PATH=path).returncode == 2
    assert run("sh", str(launcher), "notice", "x", at=tmp_path, PATH=path).returncode not in (0, 2)


@pytest.mark.parametrize("first", ["settings", "plugin", "both at once"])
def test_two_hooks_of_one_event_are_one_question(up: Repo, first: str) -> None:
    up.write("a.py", "a = 1\n")
    up.write("b.py", "b = 1\n")
    with up.client() as client:
        client.call(rq.Acquire(agent="ann", resources=["a.py"]))
    doors = [[*SETTINGS, str(up.state.socket()), "claude-code"], [*PLUGIN, "guard", "claude-code"]]
    if first == "plugin":
        doors.reverse()
    for path, denied in (("a.py", True), ("b.py", False)):
        given = payload(up.root, str(up.root / path), tool_use_id=f"call-{path}")
        if first == "both at once":
            hooks = [asked(*words, at=up.root) for words in doors]
            said = [hook.communicate(given, timeout=60) for hook in hooks]
        else:
            said = [(done.stdout, done.stderr) for done in (run(*words, at=up.root, given=given) for words in doors)]
        assert [b'"deny"' in out for out, _ in said] == [denied, denied], said
    found = events(up)
    once = ("acquisition_refused", "waiter_queued", "agent_hooked")
    assert [found[kind] for kind in once] == [1, 1, 1] and found["agent_registered"] == 2, found


def test_what_the_same_hook_asks_again_is_a_question_of_its_own(up: Repo) -> None:
    up.write("a.py", "a = 1\n")
    with up.client() as client:
        client.call(rq.Acquire(agent="ann", resources=["a.py"]))
    given = payload(up.root, str(up.root / "a.py"))
    assert b"leased by ann" in run(*PLUGIN, "guard", "claude-code", at=up.root, given=given).stdout
    with up.client() as client:
        client.call(rq.Release(agent="ann", resources=["a.py"]))
    assert b"leased by ann" not in run(*PLUGIN, "guard", "claude-code", at=up.root, given=given).stdout, "ann has let go"


def test_what_is_told_is_told_by_one_of_the_two(up: Repo) -> None:
    given = json.dumps({"session_id": "s", "cwd": str(up.root), "hook_event_name": "SessionStart", "source": "startup"}).encode()
    both = [run(*SETTINGS, str(up.state.socket()), "claude-code", "open", at=up.root, given=given),
            run(*PLUGIN, "begin", "claude-code", at=up.root, given=given)]
    assert [done.returncode for done in both] == [0, 0]
    assert b"coord" in both[0].stdout and both[1].stdout == b"", both


@pytest.mark.parametrize("words", [[], ["guard"], ["other", "x"], ["mcp"], ["git", "pre-push"], ["guard", "x", "1", "y", "z"]])
def test_words_that_are_not_understood(words: list[str], tmp_path: Path) -> None:
    done = run(*PLUGIN, *words, at=tmp_path)
    assert done.returncode == 2 and done.stderr.startswith(b"usage: coord-plugin")


# The launcher, on a machine without the command --------------------------------------------------


@pytest.fixture
def bare_path(tmp_path: Path) -> str:
    """A PATH with a shell's own tools, and no coord."""
    folder = tmp_path / "tools"
    folder.mkdir()
    for name in ("sh", "sed", "cat"):
        (folder / name).symlink_to(f"/bin/{name}" if os.path.exists(f"/bin/{name}") else f"/usr/bin/{name}")
    return str(folder)


@pytest.mark.parametrize("launcher", LAUNCHERS, ids=lambda path: path.parent.name)
def test_without_the_command_nothing_is_stopped_and_one_sentence_said(launcher: Path, bare_path: str, tmp_path: Path) -> None:
    used, plain = tmp_path / "used", tmp_path / "plain"
    (used / ".coord").mkdir(parents=True)
    (used / "deep/er").mkdir(parents=True)
    plain.mkdir()

    def said(mode: str, at: Path, source: str = "startup") -> bytes:
        done = run("/bin/sh", str(launcher), mode, "claude-code", "30", at=at, given=b'{"source":"%s"}' % source.encode(),
                   PATH=bare_path, HOME=str(tmp_path))
        assert (done.returncode, done.stderr) == (0, b"")
        return done.stdout

    assert b"not on this machine" in json.loads(said("begin", used / "deep/er"))["systemMessage"].encode()
    assert [said("begin", used, "compact"), said("guard", used), said("notice", used)] == [b"", b"", b""]
    assert [said("begin", plain), said("guard", plain)] == [b"", b""]


@pytest.mark.parametrize("launcher", LAUNCHERS, ids=lambda path: path.parent.name)
def test_without_the_command_the_tools_server_has_no_tools_and_no_failure(launcher: Path, bare_path: str, tmp_path: Path) -> None:
    lines = [{"jsonrpc": "2.0", "id": "probe-1", "method": "server/discover"},
             {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}}},
             {"jsonrpc": "2.0", "method": "notifications/initialized"}, {"jsonrpc": "2.0", "id": 7, "method": "tools/list"}]
    given = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines).encode()
    done = run("/bin/sh", str(launcher), "mcp", "x", at=tmp_path, given=given, PATH=bare_path, HOME=str(tmp_path))
    probe, begun, listed = [json.loads(line) for line in done.stdout.splitlines()]
    assert probe["id"] == "probe-1" and probe["error"]["code"] == -32601
    assert begun["id"] == 0 and begun["result"]["protocolVersion"] == "2025-06-18"
    assert (listed["id"], listed["result"]) == (7, {"tools": []})
