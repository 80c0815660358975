"""Runs a person's command by a keeper (`command_keeper`): nothing of it outlives whoever asked.

Blocking: from a thread where a loop runs. What the keeper does is its own business; here it is
started, waited for, and let go of. Knows nothing of what the command is for.
"""

from __future__ import annotations

import contextlib
import json
import re
import select
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from coordinator.words.texts import harmless

#: How often it is looked whether anybody still wants it, and how long a keeper that was let go of
#: may take to end all that it has started (seconds).
LOOK_S, END_S = 0.1, 10.0
#: Of the command's output, what is told (bytes).
TAIL_BYTES = 2_000


class Ended(NamedTuple):
    """How a command went.

    Attributes:
        code: its exit code, negative for a signal; None: it was not waited for, or could not run.
        why: words on why it has no exit code of its own; empty if it has.
        late: it took longer than it may.
    """

    code: int | None
    why: str = ""
    late: bool = False


def run(command: str, *, cwd: Path, env: Mapping[str, str], log: Path, seconds: float,
        unwanted: Callable[[], bool]) -> Ended:
    """Run it with `sh -c`, its output appended to `log`, for at most `seconds`. It is ended as soon
    as `unwanted()`.

    Raises:
        OSError: it cannot be started.
    """
    keeper = subprocess.Popen(
        [sys.executable, "-P", "-m", "coordinator.workers.command_keeper", repr(seconds), str(log),
         command],
        cwd=cwd, env=dict(env), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, start_new_session=True,
    )
    assert keeper.stdout is not None and keeper.stdin is not None
    with keeper:
        stopped = False
        while not select.select([keeper.stdout], [], [], LOOK_S)[0]:
            if unwanted():
                stopped = True
                break
        keeper.stdin.close()  # nobody waits for it any more
        keeper.stdin = None
        try:
            data, errors = keeper.communicate(timeout=END_S)
        except subprocess.TimeoutExpired:
            keeper.kill()
            data, errors = keeper.communicate()
    if stopped:
        return Ended(None, "was stopped with the coordinator")
    message = {}
    with contextlib.suppress(ValueError):
        message = json.loads(data)
    if not isinstance(message, dict) or "code" not in message:
        last = errors.decode("utf-8", "replace").strip().splitlines()
        return Ended(None, f"could not be run: {last[-1] if last else 'its keeper was killed'}")
    if message["why"] == "time":
        return Ended(int(message["code"]), f"took over {seconds:g} s and was stopped", late=True)
    if message["why"]:
        return Ended(None, "was stopped from outside")
    return Ended(int(message["code"]))


def how(ended: Ended) -> str:
    """How it went, as the rest of a sentence."""
    code = ended.code
    if ended.why or code is None:
        return ended.why
    return f"failed (exit code {code})" if code > 0 else f"was ended by signal {-code}"


def tail(log: Path) -> str:
    """The last of what a command printed, harmless to show; empty if there is nothing."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - TAIL_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    return harmless(re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)).strip()
