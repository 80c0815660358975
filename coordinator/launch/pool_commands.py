"""The commands of pools: they make a value ready before a program begins that was given it, and
take away what it stands for afterwards.

Only a person's commands, or those that a person has trusted, are in the settings. They run in the
process that starts the program, never in the coordinator. `create` has to do for a value that is
there already: what was killed has dropped nothing.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from coordinator.files.git import clean_environment
from coordinator.rules.pools import Pool, read_value
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal

#: How long one command may take (seconds).
SECONDS_MAX = 300.0
#: How often it is looked whether one is to be stopped (seconds).
TICK_S = 0.2
#: For a value of a pool that these settings do not have.
NOTHING = Pool(values=[], env="")
#: Characters of its output that are told.
OUTPUT_CHARS = 500


class Call(NamedTuple):
    """A value that commands are run for: where, in which environment, and when to stop."""

    pool: str
    value: str
    environment: Mapping[str, str]
    place: Path
    stopped: Callable[[], bool]


def list_calls(given: rq.Claimed | rq.Environment, place: Path,
               stopped: Callable[[], bool] = lambda: False) -> list[Call]:
    """The values that an agent was given."""
    values = [read_value(lease.resource) for lease in given.leases]
    return [Call(*value, given.environment, place, stopped) for value in values if value]


def prepare(pools: Mapping[str, Pool], calls: Sequence[Call]) -> None:
    """Run `create` and `reset` of each value.

    Raises:
        Refusal: INVALID: one has failed. What comes after it has not run.
    """
    for call in calls:
        pool = pools.get(call.pool, NOTHING)
        for what, command in (("create", pool.create), ("reset", pool.reset)):
            trouble = _run(command, call)
            if trouble:
                raise Refusal(
                    Code.INVALID, f"`pools.{call.pool}.{what}` failed for {call.value}: {trouble}",
                    next=f"Correct `{what}` in coord.toml, or look at what {call.value} stands "
                    "for.")


def drop(pools: Mapping[str, Pool], calls: Sequence[Call]) -> list[str]:
    """Run `drop` of each value, while it is still leased. Returns a sentence on each that has
    failed."""
    troubles = [(call, _run(pools.get(call.pool, NOTHING).drop, call)) for call in calls]
    return [f"`pools.{call.pool}.drop` failed for {call.value}: {trouble}"
            for call, trouble in troubles if trouble]


def _run(command: str, call: Call) -> str:
    """Run one command until its shell ends. Returns why it has failed; empty if it has not. What it
    leaves running goes on, like a device that it has started."""
    if not command.strip():
        return ""
    variables = {**clean_environment(), **call.environment, "COORD_POOL": call.pool,
                 "COORD_VALUE": call.value}
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            ["sh", "-c", command], cwd=call.place, stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT, start_new_session=True, env=variables)
        trouble = _wait(process, call.stopped)
        output.seek(0)
        text = output.read().decode("utf-8", "replace").strip()[-OUTPUT_CHARS:]
    if trouble or not process.returncode:
        return trouble
    return text or f"exit code {process.returncode}"


def _wait(process: subprocess.Popen[bytes], stopped: Callable[[], bool]) -> str:
    """Wait for its end. Returns why it was ended from here; empty if it was not."""
    deadline, trouble = time.monotonic() + SECONDS_MAX, ""
    while not trouble:
        with suppress(subprocess.TimeoutExpired):
            process.wait(TICK_S)
            return ""
        if time.monotonic() > deadline:
            trouble = f"it took more than {SECONDS_MAX:g} s"
        elif stopped():
            trouble = "it was stopped"
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return trouble
