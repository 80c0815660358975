"""Carrying out a task by roles: planner, editor, recovery and validator. A user supplies each of
them.

    carry(client, editor=MyEditor(), validator=Command("make check"))

The roles share a blackboard, which is the task itself in the coordinator: its title and prompt, its
resources, the attempts and their outcomes. So an agent that takes the task after a crash continues
where the last one stopped. `rules/recovery.py` decides what follows a refusal, unless the user's
own recovery decides otherwise. The module runs no program except a `Command`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import msgspec

from coordinator.client.asking import here
from coordinator.client.client import Client
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import from_root

#: The default time limit of a `Command` (seconds), and the length of its reported output
#: (characters).
COMMAND_S, TAIL_CHARS = 600.0, 2_000


@dataclass(frozen=True, slots=True)
class Work:
    """The input of a role.

    Attributes:
        task: the intent and the plan; `tried` is in `claimed`.
        claimed: what the claim answered.
        leases: everything leased for it until now.
        refusal: why the last attempt was not the last; None at the first one. Its facts have the
            fresh text where a region was changed, and the leases that came with it.
    """

    task: rq.Task
    claimed: rq.Claimed
    leases: Sequence[rq.Lease] = ()
    refusal: Refusal | None = None
    rounds: int = field(default=0)


class Planner(Protocol):
    """Names the needs of a task before it begins."""

    def plan(self, work: Work) -> Sequence[str]:
        """Resources to be leased beside those of its plan, all at once."""
        ...


class Editor(Protocol):
    """Makes the change."""

    def edit(self, work: Work) -> Sequence[rq.RegionText]:
        """New texts of leased regions; of none, if there is nothing to be written."""
        ...


class Recovery(Protocol):
    """Says what follows from a refusal."""

    def remedy(self, work: Work, refusal: Refusal) -> str:
        """`person` to give up; any other has the editor try again."""
        ...


class Validator(Protocol):
    """Judges the written work."""

    def validate(self, work: Work) -> str:
        """Why it is not right; empty if it is."""
        ...


@dataclass(frozen=True, slots=True)
class Command:
    """A validator that is a command for `sh -c`, run in `folder`: right, if it exits with 0."""

    command: str
    folder: Path | None = None
    seconds: float = COMMAND_S

    def validate(self, work: Work) -> str:
        """See `Validator`."""
        with subprocess.Popen(["sh", "-c", self.command], cwd=self.folder, start_new_session=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT) as process:
            try:
                data, _ = process.communicate(timeout=self.seconds)
            except subprocess.TimeoutExpired:
                return f"{self.command} took over {self.seconds:g} s"
            finally:  # its children end with it, also after an interruption
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
        if not process.returncode:
            return ""
        tail = data.decode("utf-8", "replace")[-TAIL_CHARS:]
        return f"{self.command} failed (exit code {process.returncode}):\n{tail}"


class CoordinatorsRecovery:
    """Follows the coordinator's decision: its refusals of commits carry the remedy."""

    def remedy(self, work: Work, refusal: Refusal) -> str:
        """See `Recovery`."""
        return str(refusal.facts.get("remedy", "person"))


def carry(client: Client, *, editor: Editor, task: str | None = None,
          planner: Planner | None = None, recovery: Recovery | None = None,
          validator: Validator | None = None) -> rq.Task:
    """Take one task (without `task`, the best) and bring it to an end. Returns the task as it is
    then: done; failed, because a role gave up; offered again, because others hold what it needs; or
    a person's. It is leased and written in the working tree around the program's working directory.
    A role names resources like their leases, or from that directory.

    Raises:
        Refusal: it cannot be claimed, or a commit was refused for what no attempt cures.
        Exception: whatever a role raises; the task has failed then.
    """
    agent = client.name()
    claimed = client.call(rq.TaskClaim(agent=agent, task=task, cwd=here(), reentrant=True))
    name = claimed.task.task
    work = Work(claimed.task, claimed, list(claimed.leases))
    try:
        if planner is not None and (more := list(planner.plan(work))):
            work = replace(work, leases=[*work.leases, *client.call(
                rq.Acquire(agent=agent, resources=more, task=name, cwd=here(), reentrant=True)
            ).leases])
        return _try(client, agent, work, editor, recovery or CoordinatorsRecovery(), validator)
    except BaseException as bad:
        why = bad.message if isinstance(bad, Refusal) else f"{type(bad).__name__}: {bad}"
        if client.call(rq.TaskShow(task=name)).claimed_by == agent:
            client.call(rq.TaskFail(agent=agent, task=name, reason=why[:2000]))
        raise


def _try(client: Client, agent: str, work: Work, editor: Editor, recovery: Recovery,
         validator: Validator | None) -> rq.Task:
    name = work.task.task
    while True:
        texts = [_based(region_text, work.refusal) for region_text in editor.edit(work)]
        refusal = None
        if texts:
            try:
                client.call(rq.CommitRegion(
                    agent=agent, regions=_named(texts, work.leases), cwd=here()))
            except Refusal as no:
                refusal = no
        if refusal is None:
            why = validator.validate(work) if validator is not None else ""
            if not why:
                return client.call(rq.TaskDone(agent=agent, task=name))
            judged = client.call(rq.TaskOutcome(agent=agent, task=name,
                                                outcome=Code.VERIFY_FAILED, note=why[:2000]))
            refusal = Refusal(Code.VERIFY_FAILED, why, remedy=judged.remedy, round=judged.round)
        elif "remedy" not in refusal.facts:
            raise refusal  # it is about rights, or about the coordinator: no text cures it
        ended = _ended(client, agent, name, refusal, recovery.remedy(work, refusal))
        if ended is not None:
            return ended
        leased = [rq.Lease(**item) for item in refusal.facts.get("leases", [])]
        work = replace(work, refusal=refusal, rounds=work.rounds + 1,
                       leases=[*work.leases, *leased])


def _ended(client: Client, agent: str, task: str, refusal: Refusal, remedy: str) -> rq.Task | None:
    """The task, if this was the last attempt; otherwise None."""
    now = client.call(rq.TaskShow(task=task))
    if now.claimed_by != agent:
        return now  # it is a person's
    if refusal.facts.get("conflicts"):
        needed = [str(item) for item in refusal.facts.get("needs", [])]
        return client.call(rq.TaskFail(agent=agent, task=task, blocked=needed,
                                       reason=refusal.message[:2000]))
    if remedy == "person":
        return client.call(rq.TaskFail(agent=agent, task=task, reason=refusal.message[:2000]))
    return None


def _named(texts: Sequence[rq.RegionText], leases: Sequence[rq.Lease]) -> list[rq.RegionText]:
    """The same texts with names that are valid in the working directory, because leases are named
    from the root."""
    resources = {lease.resource for lease in leases}
    return [msgspec.structs.replace(region_text, resource=from_root(region_text.resource))
            if region_text.resource in resources else region_text for region_text in texts]


def _based(text: rq.RegionText, refusal: Refusal | None) -> rq.RegionText:
    """Base a text on the region's fresh text, if it was made after that was received."""
    if (text.content_hash is None and refusal is not None
            and refusal.code is Code.REGION_CHANGED
            and refusal.facts.get("resource") == text.resource):
        text.content_hash = refusal.facts.get("content_hash")
    return text
