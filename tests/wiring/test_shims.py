"""Shims: an agent typed as always, inside and outside of repositories that use coord."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from coordinator.namespaces import kernel
from coordinator.profiles import load
from tests.conftest import Repo
from tests.terminal import at_a_terminal
from tests.waiting import until

pytestmark = pytest.mark.slow

#: What stands for an agent: says how it was called.
SHOWS = """#!/bin/sh
[ "$1" = write ] && { echo H >> "$2"; exit; }
printf '%s\\n' "${COORD_AGENT-nobody}" "${0##*/}" "$PWD" "$@"
exit 7
"""
WEIRD = ["a b", "", "-x", "--", "it's", "two\nlines", "*", "$HOME", "ü"]


class Person:
    """A person's shell, with the shims first on its PATH."""

    def __init__(self, folder: Path, repo: Repo) -> None:
        self.bin, self.data, self.repo = folder / "their bin", folder / "data ü", repo
        self.shims = self.data / "coord/shims"
        self.bin.mkdir()
        for name in ("claude", "codex"):
            program = self.bin / name
            program.write_text(SHOWS)
            program.chmod(0o755)
        self.env = {"XDG_DATA_HOME": str(self.data), "SHELL": "/bin/bash",
                    "PATH": f"{self.shims}:{self.bin}:/usr/bin:/bin"}

    def types(self, *words: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(words, cwd=cwd or self.repo.root, env=os.environ | self.env | env, text=True,
                              capture_output=True, check=False, timeout=60)

    def coord(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.repo.coord(*words, env=self.env)


@pytest.fixture
def person(tmp_path: Path, repo: Repo) -> Person:
    made = Person(tmp_path, repo)
    assert made.coord("shims", "install", "claude").returncode == 0
    return made


needs_sessions = pytest.mark.skipif(bool(kernel.refused()), reason="no namespaces on this machine")


def test_elsewhere_the_program_itself_runs(person: Person, tmp_path: Path) -> None:
    for place in (tmp_path, Path("/")):
        done = person.types("claude", *WEIRD, cwd=place)
        assert done.returncode == 7 and not done.stderr
        assert done.stdout == "\n".join(["nobody", "claude", str(place), *WEIRD]) + "\n"
    assert not person.repo.state.lock.exists(), "nothing was started for it"


@needs_sessions
def test_in_a_repository_it_runs_in_a_session(person: Person) -> None:
    person.repo.coord("up")
    person.repo.write("deep/er/a.py", "one\n")
    below = person.repo.root / "deep/er"
    done = person.types("claude", *WEIRD, cwd=below)
    assert done.returncode == 7, done.stderr
    who, *rest = done.stdout.split("\n", 1)
    assert who.startswith("claude-code") and rest == [
        "\n".join(["claude", str(below), *load("claude-code", person.repo.root).in_session, *WEIRD]) + "\n"]
    person.repo.coord("lock", "deep/er/a.py", "--agent", "ann")
    assert person.types("claude", "write", "a.py", cwd=below).returncode != 0
    assert person.repo.read("deep/er/a.py") == "one\n"
    until(lambda: [one["agent"] for one in json.loads(person.repo.coord("agents", "--json").stdout)["items"]] == ["ann"])
    # what the agent itself starts is in its session already
    nested = person.types("claude", "x", COORD_AGENT_TOKEN="t", COORD_AGENT="me")
    assert nested.stdout.splitlines()[0] == "me"
    # and what only tells of itself needs none
    assert person.types("claude", "--version").stdout.splitlines()[0] == "nobody"


@needs_sessions
def test_in_a_worktree_and_in_a_submodule_too(person: Person, make_repo: Callable[..., Repo]) -> None:
    git = ("git", "-c", "user.name=x", "-c", "user.email=x@x", "-c", "protocol.file.allow=always")
    root, other = person.repo.root, make_repo("other")
    for place in (root, other.root):
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], cwd=place, check=True)
    outside = root.parent / "a worktree"
    subprocess.run([*git, "worktree", "add", "-q", "-b", "side", str(outside)], cwd=root, check=True)
    subprocess.run([*git, "submodule", "--quiet", "add", str(other.root), "sub"], cwd=root, check=True)
    for place in (outside, root / "sub"):
        assert person.types("claude", cwd=place).stdout.startswith("nobody\n"), "coord is not used here"
    person.repo.coord("up")
    for place in (outside, root / "sub"):
        assert person.types("claude", cwd=place).stdout.startswith("claude-code"), place


def test_where_no_session_can_be_had_the_program_runs_and_it_is_said(person: Person, tmp_path: Path) -> None:
    person.repo.coord("up")
    state = tmp_path / "state"
    (state / "coord/namespaces").mkdir(parents=True, mode=0o700)
    os.chmod(state / "coord", 0o700)
    done = person.types("claude", "x", XDG_STATE_HOME=str(state))
    assert done.returncode == 7 and done.stdout.splitlines()[0] == "nobody"
    assert "runs without a session of its own" in done.stderr and "Traceback" not in done.stderr
    assert not json.loads(person.repo.coord("agents", "--json").stdout)["items"]


def test_who_switched_sessions_off_has_none(tmp_path: Path, make_repo: Callable[..., Repo]) -> None:
    person = Person(tmp_path, make_repo(config="[hooks]\nconfine = false\n"))
    person.coord("shims", "install")
    person.repo.coord("up")
    done = person.types("claude", "x")
    assert done.stdout.splitlines()[0] == "nobody" and not done.stderr


@needs_sessions
def test_a_signal_reaches_the_program(person: Person) -> None:
    person.repo.coord("up")
    (person.bin / "claude").write_text("#!/bin/sh\ntrap 'exit 5' TERM\necho $$ > pid\nwhile :; do sleep 0.01; done\n")
    process = subprocess.Popen(["claude"], cwd=person.repo.root, env=os.environ | person.env)
    try:
        pid = int(until(lambda: (person.repo.root / "pid").exists() and person.repo.read("pid").strip()))
        assert pid == process.pid, "nothing of coord stands between it and its terminal"
        process.send_signal(signal.SIGTERM)
        assert process.wait(15) == 5
    finally:
        process.kill()


def test_it_is_installed_shown_and_removed(person: Person) -> None:
    done = person.coord("shims", "install")
    assert "claude: has a shim" in done.stdout and "codex: has a shim" in done.stdout and "note:" not in done.stdout
    assert sorted(one.name for one in person.shims.iterdir()) == ["claude", "codex"]
    (person.shims / "gemini").write_text("of somebody else\n")
    (person.shims / "codex").write_text("of somebody else\n")
    kept = person.coord("shims", "install", "codex")
    assert "not of coord's making" in kept.stdout and (person.shims / "codex").read_text() == "of somebody else\n"
    gone = person.coord("shims", "remove")
    assert gone.stdout == "claude: its shim is gone\n"
    assert sorted(one.name for one in person.shims.iterdir()) == ["codex", "gemini"]
    assert "no shims" in person.coord("shims", "remove").stdout
    assert shutil.which("claude", path=person.env["PATH"]) == str(person.bin / "claude")


def test_what_is_left_to_do_is_told(person: Person) -> None:
    person.env["PATH"] = f"{person.bin}:{person.shims}:/usr/bin:/bin"
    for shell, file in (("/bin/bash", "~/.bashrc"), ("/usr/bin/zsh", "~/.zshrc"), ("/usr/bin/fish", "config.fish"),
                        ("", "~/.profile")):
        person.env["SHELL"] = shell
        said = person.coord("shims", "install", "claude").stdout
        assert "not first on PATH" in said and file in said and str(person.shims) in said
    line = said.rpartition("new shell: ")[2].strip()
    shown = person.types("sh", "-c", f"{line}; command -v claude")
    assert shown.stdout.strip() == str(person.shims / "claude")


def test_mistakes_are_told(person: Person) -> None:
    for words, said in ((["nobody"], "no agent that is started as nobody"), (["opencode"], "is not installed")):
        done = person.coord("shims", "install", *words)
        assert done.returncode == 2 and said in done.stderr and "Nothing was written" in done.stderr
    (person.bin / "claude").unlink()
    done = person.types("claude", "x")
    assert done.returncode == 127 and "only its shim" in done.stderr
    done = person.coord("run", "claude-code")
    assert done.returncode == 127 and "no program called claude" in done.stderr


@needs_sessions
def test_init_offers_them(person: Person) -> None:
    person.coord("shims", "remove")
    shim, asks = person.shims / "claude", "Make shims for claude?"
    wire = ("init", "--agent", "claude-code", "--no-guard")
    said = person.coord(*wire, "--agent", "codex", "--yes").stdout
    assert "commands of codex can still write" in said and not shim.exists(), "nobody was there to be asked"
    assert "`coord shims install`" not in person.coord(*wire, "--yes").stdout, "its commands run in sessions by themselves"
    assert person.coord(*wire, "--yes", "--no-shims").stdout.count("shims") == 0
    code, shown = at_a_terminal(person.repo.root, *wire, env=person.env, at={asks: "n\n"})
    assert code == 0 and "cannot" not in shown and str(person.shims.parent.parent) in shown.replace("\r\n", "")
    assert not shim.exists()
    code, shown = at_a_terminal(person.repo.root, *wire, env=person.env, at={asks: "y\n"})
    assert code == 0 and "claude: has a shim" in shown and shim.exists()
    code, shown = at_a_terminal(person.repo.root, *wire, env=person.env)
    assert code == 0 and asks not in shown, "it is asked once"
    person.coord("shims", "remove")
    assert "has a shim" in person.coord(*wire, "--yes", "--shims").stdout and shim.exists()
    assert "shims        claude" in person.coord("doctor").stdout
    person.env["PATH"] = f"{person.bin}:{person.shims}:/usr/bin:/bin"
    assert "claude has a shim that is not what is typed" in person.coord("doctor").stdout
