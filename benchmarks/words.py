"""`python -m benchmarks words`: what a model pays to read coord's answers, in tokens (o200k).

Whole commands over a real coordinator with ordinary data; what is counted is all that they print. A
refusal is also counted as an agent's hook gives it. Counts only: the same in each run but for the
digits of instants.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from benchmarks.command_line import AsJson, Folder, show_report
from benchmarks.measuring.own_daemon import own_daemon, own_environment
from coordinator import _command, _hook
from coordinator.client.client import Client
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal

ARCHIVE = """# House

## 1. Parser

`parser.py` reads a report in two passes. The first one finds the sections, the second one their
rows; both must see the same bytes, so the text is read once and kept.
"""
#: What is typed, in order, with what it shows.
STEPS = (
    ("a grant", "lock report.py --agent ann"),
    ("a grant with a reason", "lock util.py --agent ann -m refactoring"),
    ("a renewal", "renew --agent ann"),
    ("a release", "unlock util.py --agent ann"),
    ("a refusal without excerpt", "lock src/module_1.py --agent bob"),
    ("the same with a reason", "lock src/module_2.py --agent bob"),
    ("a refusal with excerpt", "lock parser.py --agent bob"),
    ("the same refusal again", "lock parser.py --agent bob"),
    ("a task claimed", "task claim --agent bob"),
    ("a task done", "task done T-1 --agent bob --force"),
    ("10 leases", "locks"),
    ("10 leases, short", "locks --short"),
    ("10 leases, JSON", "locks --json"),
    ("20 tasks", "task list"),
    ("20 tasks, short", "task list --short"),
    ("the dashboard", "status"),
    ("the dashboard, short", "status --short"),
    ("the dashboard, JSON", "status --json"),
)


class Counted(msgspec.Struct):
    """One answer: how many tokens, and how many characters."""

    what: str
    command: str
    tokens: int
    characters: int
    text: str


def counter() -> Callable[[str], int]:
    """Counts the tokens of a text.

    Raises:
        ImportError: the tokenizer is not installed.
    """
    import bpe_openai

    encoding = bpe_openai.get_encoding("o200k_base")
    return lambda text: len(encoding.encode(text))


def run(folder: Path | None = None) -> list[Counted]:
    """Carry all of it out, and count.

    Raises:
        ImportError: the tokenizer is not installed. RuntimeError: the daemon did not start.
    """
    count = counter()
    out = []
    with own_daemon(folder) as daemon:
        prepare(daemon.root)
        for what, typed in STEPS:
            said = answer(daemon.root, [sys.executable, "-I", "-S", _command.__file__,
                                        *typed.split()])
            out.append(Counted(what, f"coord {typed}", count(said), len(said), said))
        said = refused_by_hook(daemon.root, daemon.socket)
        out.append(Counted("a refusal by the hook", "an edit of parser.py by eve", count(said),
                           len(said), said))
    return out


def prepare(root: Path) -> None:
    """An ordinary afternoon: ten leases, twenty tasks, an archive that explains one file."""
    (root / "context_archive").mkdir(exist_ok=True)
    (root / "context_archive" / "house.md").write_text(ARCHIVE)
    for name in ("report.py", "util.py", "parser.py", *(f"src/module_{n}.py" for n in range(8))):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("x = 1\n")
    with Client(root) as boss:
        boss.call(rq.ArchiveIndexNow())
        for n in range(20):
            boss.call(rq.TaskAdd(title=f"Add the report of part {n}",
                                 resources=[f"out/part_{n}.py"]))
        boss.call(rq.Acquire(agent="ann", resources=["parser.py"], description="the second pass"))
        for n in range(8):
            boss.call(rq.Acquire(agent=f"agent-{n % 3}", resources=[f"src/module_{n}.py"],
                                 description=f"part {n}" if n != 1 else ""))


def answer(root: Path, words: Sequence[str]) -> str:
    """All that a command prints."""
    kept = {name: text for name, text in own_environment().items() if name != "COLUMNS"}
    done = subprocess.run(words, cwd=root, capture_output=True, text=True, check=False, env=kept)
    return done.stdout + done.stderr


def refused_by_hook(root: Path, socket: str) -> str:
    """What a model reads whose edit of a leased file is refused by Claude Code's hook."""
    event = {"hook_event_name": "PreToolUse", "session_id": "eve", "cwd": str(root),
             "tool_name": "Write", "tool_input": {"file_path": str(root / "parser.py"),
                                                  "content": "x = 2\n"}}
    done = subprocess.run(
        [sys.executable, "-I", "-S", _hook.__file__, socket, "claude-code"],
        cwd=root, input=msgspec.json.encode(event), capture_output=True, check=False,
        env=own_environment())
    said = msgspec.json.decode(done.stdout or b"{}")
    return str(said.get("hookSpecificOutput", {}).get("permissionDecisionReason", done.stderr))


def count_words(
    texts: Annotated[bool, typer.Option("--texts", help="The texts, too.")] = False,
    folder: Folder = None,
    as_json: AsJson = False,
) -> None:
    """What a model pays to read coord's answers, in tokens."""
    try:
        answers = run(folder)
    except ImportError:
        raise Refusal(
            Code.INVALID, "Counting tokens needs the tokenizer `bpe-openai`.",
            next="python -m pip install bpe-openai",
        ) from None
    show_report(answers, as_json, lambda counted: describe(counted, texts=texts))


def describe(answers: Sequence[Counted], *, texts: bool) -> Iterator[str]:
    """The counts in lines; `texts`: with what was counted."""
    for answer in answers:
        yield (f"{answer.what:28} {answer.tokens:6} tokens {answer.characters:7} characters   "
               f"{answer.command}")
        if texts:
            yield from (f"    {line}" for line in answer.text.splitlines())
