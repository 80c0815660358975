"""The page on the socket protocol: its clients are as short as it says, and work with a real daemon;
what it states holds."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from coordinator.daemon import unix_server
from coordinator.operations.listing import OPERATIONS
from coordinator.words.refusals import Code
from tests.conftest import Repo

PAGE = (Path(__file__).resolve().parent.parent.parent / "docs" / "protocol.md").read_text("utf-8")
LINES_MAX = 15


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.M | re.S)


def program(text: str) -> list[str]:
    """Lines that are neither empty nor remarks nor what every program of its kind begins with."""
    return [line for line in text.splitlines() if line.strip() and not line.strip().startswith(("#", "//"))]


def test_the_clients_are_short() -> None:
    (shell,) = blocks("bash")
    client, _ = blocks("javascript")
    assert len(program(shell)) <= LINES_MAX and len(program(client)) <= LINES_MAX


@pytest.mark.parametrize("wire", ["nc -U", "socat"])
def test_the_shell_client(repo: Repo, wire: str) -> None:
    missing = [name for name in ("bash", "jq", wire.split()[0]) if shutil.which(name) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not there: the shell client is not tried")
    (text,) = blocks("bash")
    if wire == "socat":
        text = text.replace('nc -U "$path"', 'socat - "UNIX-CONNECT:$path"')
    repo.write("locked.sh", text)
    repo.coord("up")

    def run(agent: str, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["bash", "locked.sh", agent, "src/my pay.py", *command], cwd=repo.root, capture_output=True,
                              text=True, check=False, timeout=60)

    said = run("ann", "cat", "locked.sh")
    assert said.returncode == 0 and said.stdout == text, said.stderr
    assert repo.client().locks().items == [], "it was given back"
    repo.client("bob").acquire("src/my pay.py")
    said = run("ann", "echo", "ran")
    assert said.returncode == 3 and "bob" in said.stderr and "ran" not in said.stdout


def test_the_javascript_client(repo: Repo) -> None:
    if shutil.which("node") is None:
        pytest.skip("node is not there: the JavaScript client is not tried")
    client, use = blocks("javascript")
    repo.write("coord.mjs", client)
    repo.write("use.mjs", use)
    repo.coord("up")
    said = subprocess.run(["node", "use.mjs"], cwd=repo.root, capture_output=True, text=True, check=False, timeout=60)
    assert said.returncode == 0, said.stderr
    first, second = said.stdout.splitlines()
    assert first == f"ann has src/pay.py in {repo.root.resolve()}" and second.startswith("UNKNOWN_TASK: ")


def test_what_the_page_states_holds(repo: Repo) -> None:
    repo.coord("up")
    path = repo.state.socket_path.read_text()
    with socket.socket(socket.AF_UNIX) as link, link.makefile("rb") as answers:
        link.connect(path)

        def ask(line: dict[str, Any] | bytes) -> dict[str, Any]:
            link.sendall((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n")
            answer: dict[str, Any] = json.loads(answers.readline())
            return answer

        known = ask({"id": "a", "op": "register", "params": {"agent": "ann"}})
        assert known["id"] == "a" and known["ok"]["agent"] == "ann"
        token = known["ok"]["token"]
        add = {"id": 1, "op": "task_add", "params": {"title": "x"}, "key": "k-1", "token": token, "v": 1}
        assert ask(add)["ok"]["task"] == ask(add)["ok"]["task"] == "T-1", "it takes effect once"
        assert ask({"op": "status", "v": 2})["error"]["code"] == Code.VERSION_SKEW
        assert ask({"id": 2, "op": "locks", "params": {"more": 1}})["error"]["code"] == Code.INVALID
        for odd in ({"id": "b", "op": "locks", "extra": 1}, {"id": 5, "op": "locks", "token": 5}, {"id": 6}):
            no = ask(odd)
            assert (no["id"], no["error"]["code"]) == (odd["id"], Code.INVALID), "whoever asked waits for it"
        assert ask(b"no json")["id"] is None and ask({"id": [1], "op": "locks"})["id"] is None
        told = ask({"id": 3, "op": "subscribe", "params": {"after": 0}})
        assert told == {"id": 3, "ok": {"after": 0}}
        assert json.loads(answers.readline())["event"]["seq"] == 1
    for number, bound in ((1000, unix_server.UNANSWERED_MAX), (8 * 1024 * 1024, unix_server.LINE_BYTES_MAX)):
        assert number == bound
    for name in re.findall(r'"op": "(\w+)"', PAGE):
        assert name in OPERATIONS or name == "subscribe"
    fields = set(re.findall(r"^\| `(\w+)` \|", PAGE, re.M))
    assert fields == set(unix_server.Envelope.__struct_fields__)
    for link_to in re.findall(r"\]\((\.\./[^)]+)\)", PAGE):
        assert (Path(__file__).parent.parent.parent / "docs" / link_to).exists()
