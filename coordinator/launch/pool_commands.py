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
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from coordinator.files.git import clean_environment
from coordinator.rules.pools import Pool, read_value
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal

#: How long one command may take (seconds).
SECONDS_MAX = 300.0
#: Characters of its output that are told.
OUTPUT_CHARS = 500


def prepare(pools: Mapping[str, Pool], leases: Sequence[rq.Lease],
            environment: Mapping[str, str], place: Path) -> None:
    """Run `create` and `reset` of each value among these leases, in `place`.

    Raises:
        Refusal: INVALID: one has failed. What comes after it has not run.
    """
    for name, value in _list_values(pools, leases):
        pool = pools[name]
        for what, command in (("create", pool.create), ("reset", pool.reset)):
            trouble = _run(command, name, value, environment, place)
            if trouble:
                raise Refusal(
                    Code.INVALID, f"`pools.{name}.{what}` failed for {value}: {trouble}",
                    next=f"Correct `{what}` in coord.toml, or look at what {value} stands for.")


def drop(pools: Mapping[str, Pool], leases: Sequence[rq.Lease],
         environment: Mapping[str, str], place: Path) -> list[str]:
    """Run `drop` of each value among these leases, while it is still leased. Returns a sentence on
    each that has failed."""
    troubles = [(name, value, _run(pools[name].drop, name, value, environment, place))
                for name, value in _list_values(pools, leases)]
    return [f"`pools.{name}.drop` failed for {value}: {trouble}"
            for name, value, trouble in troubles if trouble]


def _list_values(pools: Mapping[str, Pool], leases: Sequence[rq.Lease]) -> list[tuple[str, str]]:
    values = [read_value(lease.resource) for lease in leases]
    return [value for value in values if value is not None and value[0] in pools]


def _run(command: str, name: str, value: str, environment: Mapping[str, str], place: Path) -> str:
    """Run one command, to its end. Returns why it has failed; empty if it has not."""
    if not command.strip():
        return ""
    process = subprocess.Popen(
        ["sh", "-c", command], cwd=place, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
        env={**clean_environment(), **environment, "COORD_POOL": name, "COORD_VALUE": value})
    try:
        output, _ = process.communicate(timeout=SECONDS_MAX)
    except subprocess.TimeoutExpired:
        output = f"it took more than {SECONDS_MAX:g} s"
        process.returncode = -1
    finally:
        with suppress(ProcessLookupError):  # what it has left behind
            os.killpg(process.pid, signal.SIGKILL)
    message = output.strip()[-OUTPUT_CHARS:] or f"exit code {process.returncode}"
    return message if process.returncode else ""
