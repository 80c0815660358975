"""The blackboard of a task: what was tried for it, what came of that, and what is tried next.

The intent is the task's own title and prompt, which no change of a file touches; the lock plan is
the resources that its claim leases, all at once. A candidate is a text for a region, made from a
known content: stale as soon as that moves. What follows from an outcome, `rules.recovery` says; it
is done here, in the transaction that notes the outcome.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from coordinator.files.content import digest
from coordinator.kernel import tasks
from coordinator.kernel.core import Actor, Service
from coordinator.kernel.leasing import lapse, leases
from coordinator.kernel.leasing.overlapping import leases_near
from coordinator.rules import recovery
from coordinator.store import events as ev
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import Row, TaskRow, VersionRow
from coordinator.words import requests as rq
from coordinator.words.refusals import HELD, Refusal
from coordinator.words.resource_names import kind_of, resource

#: How much of one candidate's texts is kept (bytes, all together), and how much of one text is
#: shown (characters).
KEPT_BYTES_MAX, TOLD_CHARS_MAX = 256 * 1024, 20_000
#: How much of the intent each refusal repeats (characters), because a model reads it every time.
INTENT_CHARS_MAX = 1_000
#: How many candidates the next agent of the task is shown.
TOLD_MAX = 3


class Tried(NamedTuple):
    """One region of a candidate: the content that it was made from, and its text (None: gone)."""

    resource: str
    base: str | None
    text: str | None


def task_of(tx: View, agent: str, names: Sequence[str], fold_case: bool) -> TaskRow | None:
    """The claimed task for which this agent leases what is named; None unless there is exactly one.
    """
    matches = set()
    for name in names:
        for row in leases_near(tx, resource(name, "region", fold_case=fold_case)):
            if row.locked_by == agent and row.task_id is not None:
                matches.add(row.task_id)
    claimed = [task for task in tx.each(TaskRow, "tasks_of_holder", agent)
               if task.task_id in matches]
    return claimed[0] if len(claimed) == 1 else None


def committed(svc: Service, tx: Tx, agent: str, written: Sequence[tuple[str, str | None]]) -> None:
    """Note that these regions were written (name, the name of what is there now)."""
    task = task_of(tx, agent, [name for name, _ in written], svc.fold_case)
    if task is not None:
        note(tx, task, agent, recovery.COMMITTED, "none",
             [(name, None, now) for name, now in written], "")


def refused(svc: Service, agent: str, tried: Sequence[Tried], refusal: Refusal, tx: Tx,
            actor: Actor) -> Refusal:
    """Record the outcome of a candidate and take its remedy. Returns what the agent is told.

    Raises:
        Unready: what its next attempt needs has to be looked at.
    """
    task = task_of(tx, agent, [other_tried.resource for other_tried in tried], svc.fold_case)
    if task is None or refusal.code not in recovery.REMEDIES:
        return refusal
    rounds = _rounds(tx, task) + 1
    remedy = recovery.remedy(refusal.code, rounds, svc.settings.backlog.rounds_max)
    names = _needed(refusal) if remedy in ("widen", "escalate") else []
    if remedy == "person":
        lapse.look_first(svc, tx, agent, task.task_id)
    regions = []
    room = KEPT_BYTES_MAX
    for other_tried in tried:
        data = None if other_tried.text is None else other_tried.text.encode("utf-8",
                                                                             "surrogatepass")
        kept = None if data is None else digest(data)
        if kept is not None and data is not None and len(data) <= room:
            room -= len(data)
            tx.keep(kept, data, None)
        regions.append((other_tried.resource, other_tried.base, kept))
    got = _widened(svc, tx, actor, task, agent, names) if names else None
    note(tx, task, agent, refusal.code, remedy, regions, refusal.message)
    narrowing = _describe_narrowing(task, agent, refusal, rounds, names, got)
    if remedy == "person":
        _give_to_a_person(svc, tx, task, agent, rounds, refusal.message)
        narrowing = _with(refusal,
                          f"That was round {rounds}: {task.task_id} is a person's now, with "
                     "all that was tried. Stop working on it.", f"`coord task show {task.task_id}`")
    narrowing.facts |= {"task": task.task_id, "round": rounds, "remedy": remedy,
                        "intent": {"title": task.title, "prompt": task.prompt[:INTENT_CHARS_MAX]}}
    return narrowing


def judged(svc: Service, tx: Tx, task: TaskRow, agent: str, outcome: str,
           text: str) -> rq.Judged:
    """Note an outcome that somebody else has found, and take its remedy.

    Raises:
        Unready: the files have to be looked at.
    """
    rounds = 0
    if outcome != recovery.COMMITTED:
        rounds = 1 + max(_rounds(tx, task), _judged_so(tx, task, outcome))
    remedy = recovery.remedy(outcome, rounds, svc.settings.backlog.rounds_max)
    note(tx, task, agent, outcome, remedy, [], text)
    if remedy == "person":
        _give_to_a_person(svc, tx, task, agent, rounds, text or outcome)
    return rq.Judged(task=task.task_id, round=rounds, remedy=remedy,
                     state=tasks.find(tx, task.task_id).state)


def _give_to_a_person(svc: Service, tx: Tx, task: TaskRow, agent: str, rounds: int,
                      text: str) -> None:
    why = f"after {rounds} rounds: {text}"
    lapse.fail_claim(svc, tx, task, tasks.Failure(why[:2000], exhausted=True))


class CandidateRow(Row, frozen=True):
    """A row of `candidates`, without its task."""

    n: int
    agent: str
    at: str
    outcome: str
    remedy: str
    note: str


class CandidateRegionRow(Row, frozen=True):
    """A row of `candidate_regions`, without its task."""

    n: int
    resource: str
    base: str | None
    content: str | None


def candidates(view: View, task: str, *, texts: bool = False,
               now: dict[str, str | None] | None = None) -> list[rq.Candidate]:
    """What was tried for a task, the newest last. `now`: the present content of its regions, as far
    as it was looked at; otherwise the last seen content is used."""
    rows: dict[int, list[CandidateRegionRow]] = {}
    for region in view.each(CandidateRegionRow, "candidate_regions_of", task):
        rows.setdefault(region.n, []).append(region)
    result = []
    for row in view.each(CandidateRow, "candidates_of", task):
        regions = []
        for region in rows.get(row.n, ()):
            kept = region.content if texts else None
            data = view.blob(kept, TOLD_CHARS_MAX) if kept is not None else None
            regions.append(rq.CandidateRegion(
                resource=region.resource, base=region.base, content_hash=region.content,
                stale=_stale(view, region.resource, region.base, now),
                text=None if data is None else data.decode("utf-8", "replace")))
        result.append(rq.Candidate(n=row.n, agent=row.agent, at=row.at, outcome=row.outcome,
                                   remedy=row.remedy, note=row.note, regions=regions))
    return result


def left(view: View, task: str, now: dict[str, str | None]) -> list[rq.Candidate]:
    """What the next agent of the task is told: the last candidates that were not written, with
    their texts."""
    if not view.has("candidate_last", task):
        return []
    found_candidates = [candidate for candidate in candidates(view, task, texts=True, now=now)
                        if candidate.remedy != "none"]
    return found_candidates[-TOLD_MAX:]


def _stale(view: View, name: str, base: str | None,
           now: dict[str, str | None] | None) -> bool | None:
    """Whether a region has changed since a candidate was made from it; None if unknown."""
    if base is None:
        return None
    if now is not None and name in now:
        return now[name] != base
    last = view.first(VersionRow, "version_get", name)
    return None if last is None else last.hash != base


def _rounds(tx: Tx, task: TaskRow) -> int:
    """Attempts of this claim in a row of which nothing was written."""
    return int(tx.value("candidate_rounds", task.task_id, task.claimed_by, task.claimed_at))


def _judged_so(tx: Tx, task: TaskRow, outcome: str) -> int:
    """Attempts of this claim in a row that were written, and that a check has judged so."""
    return int(tx.value(
        "candidate_verdicts", task.task_id, task.claimed_by, task.claimed_at, outcome))


def note(tx: Tx, task: TaskRow, agent: str, outcome: str, remedy: recovery.Remedy,
         regions: list[tuple[str, str | None, str | None]], text: str) -> None:
    """Write an outcome onto a task's blackboard."""
    last = tx.value("candidate_last", task.task_id) or 0
    tx.record(ev.CandidateJudged(
        task=task.task_id, agent=agent, n=last + 1,
        outcome=str(outcome), remedy=remedy, regions=regions, note=text[:2000]))


def _needed(refusal: Refusal) -> list[str]:
    """What the next attempt has to hold, too."""
    facts = refusal.facts
    if "required" in facts:
        return [str(name) for name in facts["required"]]
    return [str(facts["path"])] if "path" in facts else []


def _widened(svc: Service, tx: Tx, actor: Actor, task: TaskRow, agent: str,
             names: Sequence[str]) -> rq.Acquired | Refusal:
    """Add these to the task's plan, and lease them at once if possible. What does not exist, or may
    not be leased, is not planned, because nobody could ever claim it."""
    asked = [resource(name, kind_of(name), fold_case=svc.fold_case) for name in names]
    try:
        got = leases.acquire(svc, tx, actor, rq.Acquire(
            agent=agent, resources=list(names), task=task.task_id, description=task.title[:200],
            reentrant=True))
    except Refusal as no:
        got = no
    if isinstance(got, Refusal) and got.code not in HELD:
        return got
    tx.record(ev.TaskResourcesLearned(
        task=task.task_id, agent=agent,
        resources=[(other_resource.name, other_resource.kind, other_resource.scope, "exclusive")
                   for other_resource in asked]))
    return got


def _describe_narrowing(task: TaskRow, agent: str, refusal: Refusal, rounds: int,
                        names: Sequence[str],
                        got: rq.Acquired | Refusal | None) -> Refusal:
    if got is None:
        return refusal
    text = ", ".join(names[:8])
    if isinstance(got, Refusal) and got.code not in HELD:
        return _with(refusal, f"{text} could not be leased: {got.message}", got.next)
    if isinstance(got, Refusal):
        told = _with(refusal, f"{task.task_id} needs {text}, too: {got.message}",
                     f"`coord task fail {task.task_id} --agent {agent} --blocked "
                     f"{' '.join(names[:8])}`, and stop: it is offered again when all are free.")
        told.facts |= {"conflicts": got.facts.get("conflicts", []), "needs": list(names)}
        return told
    told = _with(refusal, f"{text} {'is' if len(names) == 1 else 'are'} leased to you now.",
                 "Read what you got, make it fit, and commit all in one.")
    leased: list[Any] = msgspec.to_builtins(got.leases)
    told.facts |= {"leases": leased}
    return told


def _with(refusal: Refusal, more: str, step: str) -> Refusal:
    return Refusal(refusal.code, f"{refusal.message} {more}", next=step, **refusal.facts)
