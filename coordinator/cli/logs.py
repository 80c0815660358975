"""`coord logs`: what launched agents said and did, from the logs of their runs."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import msgspec

from coordinator.cli.app import ask, complain, say
from coordinator.client.locating import locate_root
from coordinator.commands.signatures import Argument, AsJson, Option, command
from coordinator.files.state import StateDir
from coordinator.profiles import agent_logs as run_logs
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal

#: How often a log that grows is looked at (seconds).
LOOK_S = 0.25


@command("logs")
def logs(
    task: Annotated[str, Argument("T-3, or 3.")],
    follow: Annotated[bool, Option("Go on as it grows.", "-f")] = False,
    every: Annotated[bool, Option("All attempts, not the last.", "--all")] = False,
    raw: Annotated[bool, Option("As it is, JSON and all.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what the launched agents of a task said and did. With --json one object a line."""
    state = StateDir(locate_root())
    name = _read_name(task)
    paths = run_logs.find(state, name)
    if not paths:
        _check_there(name)
    if not paths and not follow:
        raise Refusal(
            Code.UNKNOWN_TASK, f"No launched agent has worked on {name} yet.",
            next=f"`coord explain {name}` tells its story.",
        )
    followed: tuple[str, run_logs.Follower] | None = None
    message = 0
    for path in paths if every else paths[-1:]:
        followed = _titled(path), _open(state, path, raw)
        message += _print(*followed, title=every, over=not follow, as_json=as_json)
    if not message and not follow:
        _complain_of_silence(name, paths, every=every, raw=raw)
    while follow:
        newest = run_logs.find(state, name)
        is_new = bool(newest and (not paths or newest[-1] != paths[-1]))
        if is_new:
            paths, followed = newest, (_titled(newest[-1]), _open(state, newest[-1], raw))
        if followed is not None:
            _print(*followed, title=is_new, over=False, as_json=as_json)
        time.sleep(LOOK_S)


def _read_name(task: str) -> str:
    name = f"T-{task}" if task.isdecimal() else task.upper()
    if not name.removeprefix("T-").isdecimal() or not name.startswith("T-"):
        raise Refusal(
            Code.INVALID, f"{task!r} names no task: one is `T-3`, or `3`. Nothing was read.",
            next="`coord task list` names them.",
        )
    return name


def _complain_of_silence(name: str, paths: list[Path], *, every: bool, raw: bool) -> None:
    """Complain about the missing output, and say whether the logs have more."""
    whole = not raw and any(path.stat().st_size for path in (paths if every else paths[-1:]))
    complain(f"coord: the agent of {name} has said nothing"
             + (f" for people; `coord logs {name} --raw` shows its log." if whole else ".")
             + (f"\n  next: `coord logs {name} --all` shows its earlier tries, too."
                if len(paths) > 1 and not every else ""))


def _open(state: StateDir, path: Path, raw: bool) -> run_logs.Follower:
    return run_logs.Follower(path, None if raw else run_logs.stream_of(path, state.root))


def _check_there(task: str) -> None:
    """
    Raises:
        Refusal: UNKNOWN_TASK: it will never be worked on.
    """
    try:
        ask(rq.TaskShow(task=task))
    except Refusal as refusal:
        if refusal.code is Code.UNKNOWN_TASK:
            raise


def _titled(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def _print(name: str, log: run_logs.Follower, *, title: bool, over: bool, as_json: bool) -> int:
    """Print the new output. Returns the number of lines."""
    lines = 0
    if title and not as_json:
        say(f"== {name}")
    for lines, line in enumerate(log.shown(over=over), 1):  # noqa: B007
        say(msgspec.json.encode({"log": name, "line": line}).decode() if as_json else line)
    sys.stdout.flush()
    return lines
