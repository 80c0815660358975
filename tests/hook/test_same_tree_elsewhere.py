"""The same tree under another path (a bind mount, a container): what a hook there names is asked about in the tree that it means."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import coordinator._hook as hook_file
from coordinator.words import requests as rq
from tests.conftest import BARE, Repo
from tests.hook.test_hook import held
from tests.waiting import until

APART = ["unshare", "-m"] if os.getuid() == 0 else ["unshare", "-Urm"]
CAN_MOUNT = subprocess.run([*APART, "sh", "-c", "mount --bind / /mnt"], check=False, capture_output=True).returncode == 0
pytestmark = pytest.mark.skipif(not CAN_MOUNT, reason="nothing can be mounted on this machine, not even in a namespace")


class There:
    """Where the repository, or a part of it, is mounted once more, for one process and what it starts."""

    def __init__(self, repo: Repo, place: Path, what: str = ".", hide: bool = False) -> None:
        self.repo, self.place, self.socket = repo, place, "-"
        place.mkdir(exist_ok=True)
        steps = [f"mount --bind {shlex.quote(str(repo.root / what))} {shlex.quote(str(place))}"]
        if hide:  # as in a container
            steps.append(f"mount -t tmpfs none {shlex.quote(str(repo.root))}")
        self.process = subprocess.Popen([*APART, "sh", "-c", " && ".join([*steps, "exec sh"])], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True, env=BARE, cwd="/")

    def runs(self, command: str) -> str:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(f"{command}; echo; echo \"=> $?\"\n")
        self.process.stdin.flush()
        out = []
        while not (line := self.process.stdout.readline()).startswith("=> "):
            assert line, out
            out.append(line)
        return "".join(out).strip()

    def hook(self, tool: str, given: dict[str, str], event: str = "PreToolUse", cwd: str = "") -> str:
        """Why it was denied; empty: it was not."""
        said = json.dumps({"session_id": "s-1", "cwd": cwd or str(self.place), "hook_event_name": event, "permission_mode": "default",
                           "tool_name": tool, "tool_use_id": str(sorted(given.items())), "tool_input": given})
        words = shlex.join([sys.executable, "-I", "-S", "-E", hook_file.__file__, self.socket, "claude-code", "closed", "20"])
        out = self.runs(f"cd {shlex.quote(cwd or str(self.place))} && printf %s {shlex.quote(said)} | {words}")
        return str(json.loads(out).get("hookSpecificOutput", {}).get("permissionDecisionReason", "")) if out else ""

    def write(self, path: str, **more: str) -> str:
        return self.hook("Write", {"file_path": path, "content": "x\n"}, **more)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


@pytest.fixture
def there(up: Repo, tmp_path: Path) -> Iterator[Callable[..., There]]:
    made: list[There] = []
    up.write("src/held.py", "1\n")
    up.write("src/free.py", "1\n")
    with up.client() as client:
        client.call(rq.Acquire(agent="ann", resources=["src/held.py", "made/"], description="rewriting it"))

    def mounted(**more: Any) -> There:
        made.append(There(up, tmp_path / "other", **more))
        return made[-1]

    yield mounted
    for one in made:
        one.close()


@pytest.mark.parametrize("hide", [False, True], ids=["beside", "instead"])
def test_what_is_held_is_refused_by_whatever_path_it_is_named(up: Repo, there: Callable[..., There], hide: bool) -> None:
    one = there(hide=hide)
    (one.place.parent / "link").symlink_to("other/src")
    for path in (f"{one.place}/src/held.py", "src/held.py", f"{one.place}/src/../src/held.py", f"{one.place.parent}/link/held.py", f"{one.place}/made/new.py"):
        assert "ann" in one.write(path), path
    assert "ann" in one.write("held.py", cwd=f"{one.place}/src")
    assert one.write(f"{one.place}/src/free.py") == "" and held(up)["src/free.py"] == "s1"
    assert "ann" in one.hook("Bash", {"command": "echo x > src/held.py"}) and "ann" in one.hook("Bash", {"command": "git stash"})
    assert one.write("/tmp/nobodys.txt") == "", "what lies elsewhere is none of its business"


def test_a_part_that_is_mounted_alone_is_known(up: Repo, there: Callable[..., There]) -> None:
    one = there(what="src")
    one.socket = str(up.state.socket())
    assert "ann" in one.write(f"{one.place}/held.py") and "ann" in one.write("held.py")
    assert one.write(f"{one.place}/new.py") == "" and held(up)["src/new.py"] == "s1"


def test_a_commit_there_is_looked_at(up: Repo, there: Callable[..., There]) -> None:
    for words in (("config", "user.name", "x"), ("config", "user.email", "x@x")):
        subprocess.run(["git", *words], cwd=up.root, check=True)
    up.coord("guard", "install")
    one = there(hide=True)
    assert "src/held.py: held by ann" in one.runs(f"cd {shlex.quote(str(one.place))} && git add src && git commit -m x")
    assert "nothing to commit" not in one.runs("git commit -m x -- src/free.py; git log --oneline -- src/free.py")


def test_an_agent_that_cannot_be_looked_at_writes_nothing_outside(repo: Repo, tmp_path: Path) -> None:
    """Its coordinator lives in another tree of processes, as in a container."""
    alone = [*APART, "-pf", "--kill-child", "--mount-proc"]
    served = subprocess.Popen([*alone, sys.executable, "-P", "-m", "coordinator.cli.main", "serve"], cwd=repo.root, env={**BARE, "COORD_ROOT": str(repo.root)},
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until(repo.state.socket().exists)
        one = There(repo, tmp_path / "other", hide=True)
        try:
            said = one.write(f"{one.place}/a.py")
            assert "nobody can say whether it is the same tree" in said and str(one.place) in said
            assert one.write("a.py", cwd=str(tmp_path)) == "", "a hook without a repository has no door"
        finally:
            one.close()
    finally:
        served.kill()
        served.wait(20)
