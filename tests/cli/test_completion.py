"""What a shell completes: commands, options and names of what there is, by the coordinator that runs; in real shells."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator import _command
from coordinator.commands import completion
from coordinator.commands.shell import Shell
from coordinator.words import requests as rq
from tests.conftest import Repo

QUICK = [sys.executable, "-I", "-S", _command.__file__, "__complete"]


def completed(repo: Repo, *words: str) -> dict[str, str]:
    """Value and what it is."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("COORD_")}
    done = subprocess.run([*QUICK, *words], cwd=repo.root, text=True, capture_output=True, timeout=60, env=kept)
    assert done.returncode == 0 and done.stderr == "", done
    return dict(line.partition("\t")[::2] for line in done.stdout.splitlines())


@pytest.fixture
def busy(repo: Repo) -> Repo:
    repo.write("a.py", "x\n")
    with repo.client() as boss:
        boss.call(rq.StatePut(agent="ann", key="key:account:1", version=0, value=msgspec.Raw(b"1")))
        boss.call(rq.Acquire(agent="ann", resources=["a.py", "key:account:1"]))
        boss.call(rq.TaskAdd(title="Add it\tnow \x1b[31m" + "long " * 40))
        boss.call(rq.RequestFile(agent="bob", resource="a.py", reason="me"))
    return repo


def test_words_options_and_names(busy: Repo) -> None:
    assert {"lock", "task", "launch", "completion"} <= set(completed(busy, "")) and "__complete" not in completed(busy, "")
    assert list(completed(busy, "ta")) == ["task"] and {"add", "claim"} <= set(completed(busy, "task", ""))
    about = completed(busy, "task", "show", "")["T-1"]
    assert about.startswith("ready: Add it now") and "\x1b" not in about and len(about) <= 60
    for words, wanted in ((["lock", "x", "--agent", ""], {"ann", "bob"}), (["request", "approve", ""], {"U-1"}), (["state", "get", ""], {"key:account:1"}),
                          (["unlock", ""], {"a.py", "key:account:1"}), (["lock", "--mode", "s"], {"shared"}), (["review", "list", "--state", "k"], {"kept"}),
                          (["launch", "--agent", "cl"], {"claude-code"}), (["run", "co"], {"codex", "copilot"}), (["lock", "--ag"], {"--agent"}), (["tell", "an"], {"ann"}),
                          (["explain", ""], {"T-1", "U-1", "ann", "bob"}), (["help", "laun"], {"launch"}),
                          (["task", "show", "T-9"], set()), (["lock", ""], set()), (["nonsense", ""], set(completed(busy, "")))):
        assert set(completed(busy, *words)) == wanted, words


def test_a_key_press_starts_nothing(tmp_path: Path) -> None:
    """Neither where coord is not used, nor where its coordinator has ended."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("COORD_")}
    for there in (tmp_path, tmp_path / "used"):
        (there / ".coord").mkdir(parents=True) if there.name == "used" else None
        before = sorted(there.rglob("*"))
        for words, wanted in ((["ta"], "task\tThe backlog.\n"), (["task", "show", ""], "")):
            done = subprocess.run([*QUICK, *words], cwd=there, text=True, capture_output=True, timeout=60, env=kept)
            assert (done.returncode, done.stdout, done.stderr) == (0, wanted, ""), done
        assert sorted(there.rglob("*")) == before


SHELLS = {
    "bash": """source <(coord completion bash)
try() { COMP_LINE="$1"; COMP_POINT=${#COMP_LINE}; shift; COMP_WORDS=("$@"); COMP_CWORD=$(( $# - 1 )); _coord; printf '%s ' "${COMPREPLY[@]}"; echo; }
try 'coord ta' coord ta; try 'coord task show ' coord task show ''; try 'coord state get key:acc' coord state get key : acc""",
    "zsh": """autoload -U compinit; compinit -u -D 2>/dev/null; source <(coord completion zsh)
_describe() { local -a them; eval "them=(\\"\\${${2}[@]}\\")"; print -rl -- $them | sed 's/\\\\:/;/g; s/:.*//' | tr '\\n' ' '; print }
try() { words=("$@"); CURRENT=$#; _coord }
try coord ta; try coord task show ''; try coord state get key:acc""",
    "fish": """coord completion fish | source
for line in 'coord ta' 'coord task show ' 'coord state get key:acc'; complete -C $line | string replace -r '\\t.*' '' | string join ' '; end""",
}


@pytest.mark.parametrize("shell", SHELLS)
def test_in_a_real_shell(busy: Repo, tmp_path: Path, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    (tmp_path / "coord").write_text(f"#!/bin/sh\nexec '{sys.executable}' -P -m coordinator._command \"$@\"\n")
    (tmp_path / "coord").chmod(0o755)
    script = tmp_path / "script"
    script.write_text(SHELLS[shell])
    kept = {k: v for k, v in os.environ.items() if not k.startswith("COORD_")}
    done = subprocess.run([shell, str(script)], cwd=busy.root, text=True, capture_output=True, timeout=120,
                          env={**kept, "PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path), "TERM": "dumb"})
    shown = [line.strip() for line in done.stdout.splitlines()]
    assert shown[0] == "task" and shown[1] == "T-1", done
    assert shown[2] in ("account:1", "key:account:1", "key;account;1"), done


@given(words=st.lists(st.one_of(st.sampled_from(["", "task", "show", "lock", "--agent", "--json", "-", "--", "state", "review", "list", "--state", "T-"]), st.text(max_size=8)), max_size=6))
def test_any_line_can_be_completed(words: list[str]) -> None:
    shell = Shell(cwd="/", now_ms=0)
    asking = completion.complete(shell, words=words)
    try:
        request = next(asking)
        while True:
            request = asking.send(NOTHING[type(request).__name__])
    except StopIteration:
        pass
    begun = words[-1] if words else ""
    for plain, text in shell.taken():
        assert plain and text.endswith("\n") and text.count("\n") == 1 and text.startswith(begun)


#: What is there: nothing.
NOTHING = {
    "Agents": rq.AgentList(items=[]), "Tasks": rq.TaskList(items=[], counts={}), "Reviews": rq.ReviewList(items=[]), "Requests": rq.UnlockList(items=[]),
    "Dead": rq.DeadList(items=[]), "StateKeys": rq.StateList(items=[]), "Changes": rq.ChangeList(items=[]), "Locks": rq.LockList(items=[], waiters=[]),
}
