"""Runs a person's command by a keeper (`command_keeper`): nothing of it outlives its caller.

It blocks, so an event loop calls it from a thread. The keeper's work is its own business. This
module starts it, waits for it, and lets go of it. Knows nothing of the command's purpose.
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

#: The time between two checks whether the command is still wanted, and how long a keeper may take
#: afterwards to end all that it has started (seconds).
LOOK_S, END_S = 0.1, 10.0
#: How much of the command's output is shown (bytes).
TAIL_BYTES = 2_000


class Ended(NamedTuple):
    """The result of a command.

    Attributes:
        code: its exit code, negative for a signal; None if it was stopped, or could not run.
        why: why it has no exit code of its own; empty if it has one.
        late: whether it took too long.
    """

    code: int | None
    why: str = ""
    late: bool = False


def run(command: str, *, cwd: Path, env: Mapping[str, str], log: Path, seconds: float,
        unwanted: Callable[[], bool]) -> Ended:
    """Run it with `sh -c`, output appended to `log`, for at most `seconds`, or until `unwanted()`.

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
        keeper.stdin.close()  # the keeper ends the command
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
    """Describe the result, as the rest of a sentence."""
    code = ended.code
    if ended.why or code is None:
        return ended.why
    return f"failed (exit code {code})" if code > 0 else f"was ended by signal {-code}"


def tail(log: Path) -> str:
    """Return the last output of a command, harmless to show; empty if there is none."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - TAIL_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    return harmless(re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)).strip()
