"""Optimistic writes: a proposal is applied if everything that it is based on is unchanged.

A proposal of keys takes one transaction. A proposal of files takes two. A worker reads the files
again, compares, and checks the result. If nobody's right to write them has ended since, the agent
leases them for the moment of the write, and the journal notes the whole (`kernel.writing`). A
worker writes each by compare-and-exchange, and the end is noted. If somebody else holds or has
replaced a file, the proposal is refused with the present content, and nothing of it is written.
"""

from __future__ import annotations

import contextlib
import secrets
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from coordinator.files.content import digest, is_executable, unified
from coordinator.kernel import blocked_steps, lost_writes, repository_files
from coordinator.kernel.blocked_steps import STEPS
from coordinator.kernel.core import Actor, Service
from coordinator.kernel.holders import agents, notices
from coordinator.kernel.leasing import free_windows, grant, redirect
from coordinator.kernel.leasing.blockers import find_blockers
from coordinator.kernel.leasing.changed_parts import DIFF_CHARS_MAX
from coordinator.kernel.leasing.located import locate
from coordinator.kernel.leasing.regions import check_known
from coordinator.kernel.use_cases import Look, OnDisk, Pause, Steps, Worker, Write
from coordinator.kernel.writing import carrying_out
from coordinator.kernel.writing.commits import AGAIN_S, TRIES, Plan, begin, open_windows
from coordinator.kernel.writing.journal import Journal
from coordinator.looking.facts import AnyNeed, Looked, Whole
from coordinator.looking.spliced import ABSENT, NewText, content_name, spliced
from coordinator.regions.languages import has_meaning, language_of
from coordinator.rules import patches
from coordinator.rules.globs import overlaps
from coordinator.rules.leases import as_resource
from coordinator.store import events as ev
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import LeaseRow, VersionRow
from coordinator.words import file_names, purposes
from coordinator.words import requests as rq
from coordinator.words.refusals import HELD, Code, Refusal
from coordinator.words.resource_names import Located, kind_of, path_of, path_scope, region_of

#: Resources of one proposal.
CHANGES_MAX = 200
#: For how long its files are leased to the agent that proposes (ms): a write takes a moment.
MOMENT_MS = 60_000
#: Attempts of a proposal that is kept while others hold what it changes.
ATTEMPTS_MAX = 12


@dataclass(frozen=True, slots=True)
class Planned:
    """What would be written, or why it would not be, and where."""

    located: list[Located]
    plan: Plan | Refusal


@dataclass(frozen=True, slots=True)
class Begun:
    """A proposal that is noted in the journal, and whose files are leased for the moment."""

    journal: Journal
    plan: Plan
    located: list[Located]


def propose(svc: Service, request: rq.Propose) -> Steps:
    """See `requests.Propose`."""
    _check_form(request)
    if {kind_of(change.resource) for change in request.changes} == {"key"}:
        return (yield Write(partial(_propose_values, svc, request), last=True))
    needs: list[AnyNeed] = [Whole(change.resource, request.cwd) for change in request.changes]
    begun: Any = None
    for _ in range(TRIES):
        looked = yield Look(needs)
        if isinstance(looked, Refusal):
            return looked
        planned = yield OnDisk(partial(_plan_by, svc, request, looked))
        begun = yield Write(partial(_begin, svc, request, planned), looked)
        if not free_windows.is_busy(begun):
            break
        yield Pause(AGAIN_S)
    if isinstance(begun, Refusal) and begun.code in HELD and request.retry:
        return (yield Write(partial(_put_off, svc, request, begun)))
    if not isinstance(begun, Begun):
        return begun  # refused, or nothing had to be written
    return (yield from carrying_out.finish(svc, begun.journal, after_crash=False,
                                           last=partial(_applied, svc, begun)))


def _propose_values(svc: Service, request: rq.Propose, tx: Tx, actor: Actor) -> Any:
    return next(answer for part in svc.slices
                if (answer := part.propose_values(svc, request, tx, actor)) is not None)


# ------------------------------------------------------------ before


def _check_form(request: rq.Propose) -> None:
    """Check what can be checked of a proposal before anything is looked at.

    Raises:
        Refusal: INVALID, LIMIT.
    """
    given = request.changes
    if not 0 < len(given) <= CHANGES_MAX:
        raise Refusal(Code.LIMIT if given else Code.INVALID, "A proposal has 1 to "
                      f"{CHANGES_MAX} changes, not {len(given)}. Nothing was written.")
    for change in given:
        if (change.content is not None) + (change.patch is not None) + change.delete != 1:
            raise Refusal(
                Code.INVALID,
                f"{change.resource[:200]}: give one of `content`, `patch` and `delete`. "
                "Nothing was written.", next="Repeat it with one of them.",
                resource=change.resource,
            )
        if change.delete and change.version is None:  # which says that there is nothing yet
            raise Refusal(
                Code.INVALID,
                f"{change.resource[:200]}: what is to be deleted has a version; none is "
                "said. Nothing was written.", resource=change.resource,
                next="Read it, and repeat with the `version` that you have read.",
            )
    kinds = {kind_of(proposed_change.resource) for proposed_change in given}
    if kinds & {"dir", "glob"}:
        raise Refusal(
            Code.INVALID, "A proposal changes files, regions or keys, not directories or globs. "
            "Nothing was written.", next="Name each file.",
        )
    if "key" in kinds and len(kinds) > 1:
        raise Refusal(
            Code.INVALID, "A proposal changes either keys or files: no crash could leave half of "
            "it then. Nothing was written.", next="Make two proposals.",
        )


def _check_whole_or_parts(located: Sequence[Located], given: Sequence[rq.ProposedChange]) -> None:
    """Raises:
    Refusal: INVALID: a file and a region of it, one resource twice, or a directory.
    """
    seen: dict[str, str] = {}
    for located_resource in located:
        path = path_of(located_resource.resource.name, located_resource.resource.kind)
        if located_resource.resource.kind == "dir":
            raise Refusal(Code.INVALID, f"{file_names.shown(path)} is a directory. Nothing was "
                          "written.", next="Name each file.",
                          resource=located_resource.resource.name)
        if seen.setdefault(path, located_resource.resource.kind) != located_resource.resource.kind:
            raise Refusal(
                Code.INVALID, f"{file_names.shown(path)} is to be changed as a whole and in parts. "
                "Nothing was written.", next="Propose the whole file, or its regions.",
            )
    if len(located) != len(given):
        raise Refusal(Code.INVALID, "Two of these changes are of one resource. Nothing was "
                      "written.", next="Put them into one change.")


# ------------------------------------------------------------ the files, in a worker


def _plan_by(svc: Service, request: rq.Propose, looked: Looked,
             worker: Worker) -> Planned | Refusal:
    """For a worker: a refusal of what is proposed is a value, for it may have to be counted."""
    worker.view.looked = looked
    located = locate(svc, worker.view, [change.resource for change in request.changes], request.cwd)
    _check_whole_or_parts(located, request.changes)
    try:
        return Planned(located, _plan(svc, worker.view, request, located))
    except Refusal as no:
        return Planned(located, no)


def _make(svc: Service, view: View, request: rq.Propose, path: str, now: repository_files.Bytes,
          changes: list[tuple[Located, rq.ProposedChange]], plan: Plan) -> bytes | None:
    """The new content of a file; None if it is to be removed. Warnings, and what is known of its
    regions, are added to the plan."""
    shown = file_names.shown(path)
    if now.hash is not None and not now.hash.startswith("sha256:"):
        raise Refusal(
            Code.INVALID, f"{shown} is no plain file that can be written so (a link, or not "
            "readable). Nothing was written.", next="Lease it and write it yourself.",
            resource=path,
        )
    if now.hash is not None and now.data is None:
        raise Refusal(
            Code.LIMIT, f"{shown} has {now.size:,} bytes; larger files than "
            f"{svc.settings.review.file_bytes_max:,} are not written so. Nothing was written.",
            next="Lease it and write it yourself.", resource=path,
        )
    data = now.data if now.hash is not None else None
    made: bytes | None
    if changes[0][0].resource.kind == "region":
        made = _regions(svc, path, shown, data, changes, plan)
    else:
        made = _whole(svc, view, path, shown, data, now.hash, changes[0][1])
    if data is not None and made is not None:
        _check_readable(svc, path, shown, data, made)
        plan.warnings += _breaks(svc, view, request.agent, path, data, made)
    return made


def _plan(svc: Service, view: View, request: rq.Propose, places: Sequence[Located]) -> Plan:
    """Read the files anew, compare, and make what is to be there.

    Raises:
        Refusal: what does not stand or does not fit; nothing was changed.
    """
    plan = Plan([], [], {})
    files: dict[str, list[tuple[Located, rq.ProposedChange]]] = {}
    for located, change in zip(places, request.changes, strict=True):
        files.setdefault(path_of(located.resource.name, located.resource.kind), []).append(
            (located, change))
    for n, (path, changes) in enumerate(files.items()):
        worktree = changes[0][0].worktree
        now = repository_files.look(svc, worktree, path, keep=True, strict=True)
        made = _make(svc, view, request, path, now, changes, plan)
        new = None if made is None else digest(
            made, executable=now.hash is not None and is_executable(now.hash))
        for located, _ in changes:
            if located.resource.kind != "region":
                plan.hashes[located.resource.name] = new
        if new == now.hash:
            continue
        plan.warnings += _unleased(svc, view, request.agent, worktree, changes)
        if now.hash is None:
            repository_files.check_place(svc, worktree, path)
        plan.keeps += [now] if now.hash is not None else []
        if new is not None and made is not None:
            plan.keeps.append(repository_files.stow(svc, new, made))
        plan.steps.append(ev.VerdictStep(
            path=path, scope=path_scope(path, svc.fold_case), worktree=worktree, old=now.hash,
            old_mode=now.mode, new=new, new_mode=now.mode if now.hash is not None else 0o644,
            in_place=now.links > 1, aside=f".coord-commit-{n}-{secrets.token_hex(4)}.tmp",
        ))
    return plan


def _unleased(svc: Service, view: View, agent: str, worktree: str | None,
              changes: Sequence[tuple[Located, rq.ProposedChange]]) -> list[str]:
    """What would keep work in a launch's worktree from landing: only leased files land."""
    if not svc.is_launched_worktree(worktree):
        return []
    mine = [as_resource(row.file_path, row.kind, row.scope) for row in (
        view.each(LeaseRow, "leases_of_holder", agent)) if row.mode == "exclusive"]
    return [f"{located.resource.name} lands only where you have leased it: "
            f"`coord lock {shlex.quote(located.resource.name)} --agent {agent}`"
            for located, _ in changes
            if not any(overlaps(held, located.resource) for held in mine)]


def _regions(svc: Service, path: str, shown: str, data: bytes | None,
             changes: Sequence[tuple[Located, rq.ProposedChange]], plan: Plan) -> bytes:
    if data is None:
        raise Refusal(Code.REGION_CHANGED, f"{shown} is not there (any more). Nothing was written.",
                      next="Look at it, then propose the whole file.",
                      resource=changes[0][0].resource.name)
    texts = []
    for located, change in changes:
        if change.patch is not None:
            raise Refusal(Code.INVALID, f"{located.resource.name}: a region is proposed by its "
                          "whole text (`content`). Nothing was written.",
                          resource=located.resource.name)
        texts.append(NewText(region_of(located.resource.name), change.content or "",
                             content_name(change.version, "version") or ABSENT,
                             new=change.version is None))
    made, parts = spliced(svc.regions, path, shown, data, texts, proposed=True)
    for located, _ in changes:
        _, part = parts[region_of(located.resource.name)]
        plan.hashes[located.resource.name] = digest(part) if part else None
    return made


def _whole(svc: Service, view: View, path: str, shown: str, data: bytes | None, now: str | None,
           change: rq.ProposedChange) -> bytes | None:
    """The new content of a whole file; None if it is removed."""
    text = content_name(change.version or None, "version")
    if text != now and not _alike(text, now):
        raise _changed(view, path, shown, text, now, data)
    if change.delete:
        return None
    if change.content is not None:
        return change.content.encode()
    assert change.patch is not None
    try:
        return patches.applied((data or b"").decode(), change.patch).encode()
    except UnicodeDecodeError:
        raise Refusal(Code.INVALID, f"{shown} is not UTF-8, so no patch can be applied to it. "
                      "Nothing was written.", next="Propose its whole content.", resource=path,
                      ) from None
    except patches.DoesNotApply as no:
        raise Refusal(
            Code.INVALID, f"The patch of {shown} does not apply: {no}. Nothing was written.",
            next="Make it anew from the content of the version that you name.", resource=path,
        ) from None


def _alike(text: str | None, now: str | None) -> bool:
    """Whether a version, or its first digits, names this content, whoever may execute it."""
    return text is not None and now is not None and now.startswith(text)


def _changed(view: View, path: str, shown: str, text: str | None, now: str | None,
             data: bytes | None) -> Refusal:
    """VERSION_CHANGED, with the difference."""
    last = view.first(VersionRow, "version_get", path)
    by = f" by {last.agent}" if last is not None and last.agent and last.hash == now else ""
    before = view.blob(text)
    diff = ""
    if text is None or before is not None:
        diff = unified(path, before, data)
        diff = diff if len(diff) <= DIFF_CHARS_MAX else ""
    what = "is not there any more" if now is None else (
        "is there already" if text is None else f"was changed{by} since that version")
    return Refusal(
        Code.VERSION_CHANGED, "Your environment changed while you were thinking. Re-evaluate your "
        f"change against the current state. {shown} {what}"
        + (f":\n{diff.rstrip()}\n" if diff else ". ") + "Nothing was written.",
        next="Read it again, and propose the change anew." if not diff else
        "Propose it anew, on the content as it is now.", resource=path, version=now, diff=diff,
    )


def _check_readable(svc: Service, path: str, shown: str, data: bytes, made: bytes) -> None:
    """Raises:
    Refusal: PARSE_INVALID: it could be read before, and could not any more.
    """
    if language_of(path, data[:200]) is None or data == made:
        return
    _, broken = svc.regions.changed(path, data, made)
    if broken:
        raise Refusal(
            Code.PARSE_INVALID, f"{shown} could not be read as "
            f"{svc.regions.outline(path, data).language} with this in it. Nothing was written.",
            next="Correct the text, and propose it again.", resource=path, path=path,
        )


def _breaks(svc: Service, view: View, agent: str, path: str, before: bytes,
            after: bytes) -> list[str]:
    """The agents whose code it breaks elsewhere. They are told, and nothing is refused, because
    nobody holds anything here."""
    if svc.impact is None or svc.settings.leases.meaning == "off" or not has_meaning(path):
        return []
    judgement = svc.impact.judge(path, before, after, set(), 2.0)
    refusal = svc.impact.refuse(judgement, set()) if not isinstance(judgement, str) else None
    if refusal is None or refusal.code is not Code.REQUIRE_ADDITIONAL_LOCKS:
        return []
    return [f"It may break what uses it: {', '.join(refusal.facts['required'][:8])}."]


# ------------------------------------------------------------ after


def _check_regions(svc: Service, tx: Tx, request: rq.Propose, located: Sequence[Located]) -> None:
    """Whether the regions are there; those that are proposed without a version are new."""
    for is_new in (False, True):
        places = [place for place, change in zip(located, request.changes, strict=False)
                  if (change.version is None) == is_new]
        check_known(svc, tx, places, request.agent, request.cwd, new=is_new, proposed=True)


def _begin(svc: Service, request: rq.Propose, planned: Planned | Refusal, tx: Tx,
           actor: Actor) -> Any:
    """Lease what is to be written for the moment of the write, and note the whole in the journal.
    What somebody else holds is refused before a changed content.

    Raises:
        Refusal: LOCKED and the like; one of `free_windows.is_busy`: the plan is to be made anew.
        Unready: more has to be looked at.
    """
    if isinstance(planned, Refusal):
        raise planned
    located = locate(svc, tx, [change.resource for change in request.changes], request.cwd)
    _check_regions(svc, tx, request, located)
    asking = agents.may_act(tx, actor, request.agent)
    wanted = [(located_resource, "exclusive") for located_resource in located]
    blockers = find_blockers(svc, tx, request.agent, wanted)
    if blockers.blocked:
        other = redirect.offer(svc, tx, request.agent)
        agents.noted(tx, request.agent, asking)
        return redirect.locked(svc, tx, redirect.Unserved(request.agent, located), blockers, other)
    if blockers.closed:
        raise grant.quarantined(blockers)
    resources = [place.resource for place in located]
    plan, paths = planned.plan, {path_of(resource.name, resource.kind): None
                                 for resource in resources}
    windows = free_windows.check(svc, tx, paths)
    if planned.located != located or any(tx.ended_since(resource.kind, resource.scope)
                                         for resource in (*resources, *windows)):
        raise _written_meanwhile(located[0])
    if isinstance(plan, Refusal):
        if plan.code not in lost_writes.LOST:
            raise plan
        agents.noted(tx, request.agent, asking)
        return lost_writes.note(svc, tx, request.agent, located, plan)
    if not plan.steps:
        agents.noted(tx, request.agent, asking)
        lost_writes.note_written(svc, tx, request.agent, resources)
        return _make_reply(f"C-{tx.number('commit')}", plan, [])
    grant.check_looked(svc, tx, wanted, blockers)
    agents.noted(tx, request.agent, asking)
    name = open_windows(svc, tx, request.agent, paths, "writes what was proposed")
    grant.grant(svc, tx, request.agent, wanted, blockers, grant.Terms(
        MOMENT_MS, None, f"writes {name}", purposes.of_commit(name)))
    begun = begin(tx, name, request.agent, plan)
    assert begun is not None  # it has steps
    return Begun(begun, plan, located)


def _written_meanwhile(located: Located) -> Refusal:
    """Somebody's right to write one of these ended after the plan was made: it is made anew."""
    return Refusal(
        Code.VERSION_CHANGED,
        f"{file_names.shown(located.resource.name)} is written again and again. "
        "Nothing was written.", next="Read it again, and propose the change anew.",
        resource=located.resource.name, window=True,
    )


def _applied(svc: Service, begun: Begun, tx: Tx, warnings: Any) -> rq.ProposalApplied | Refusal:
    """All is written, or taken back: the answer."""
    if isinstance(warnings, Refusal):
        return warnings
    agent = begun.journal.verdict.by
    lost_writes.note_written(svc, tx, agent, [located.resource for located in begun.located])
    return _make_reply(begun.journal.review, begun.plan, warnings)


def _make_reply(name: str, plan: Plan, warnings: list[str]) -> rq.ProposalApplied:
    return rq.ProposalApplied(proposal=name, warnings=[*plan.warnings, *warnings], changes=[
        rq.Proposed(resource=name, version=now) for name, now in plan.hashes.items()])


def _put_off(svc: Service, request: rq.Propose, refusal: Refusal, tx: Tx, actor: Actor) -> Refusal:
    """Others hold it: the proposal is kept, and tried again when that may be over."""
    names = [change.resource for change in request.changes]
    agents.may_act(tx, actor, request.agent)
    content = msgspec.json.encode(request)
    # A repeated proposal, from an asker that did not hear that it is kept, is not kept twice.
    new = blocked_steps.NewStep(
        "propose", ", ".join(names)[:200], content, request.agent, names,
        attempts_max=ATTEMPTS_MAX, why=refusal.message,
        rest_ms=round(1000 * float(refusal.facts.get("retry_after_s", 1.0))))
    row = (blocked_steps.find_alike(svc, tx, new.kind, content, new.agent)
           or blocked_steps.put(svc, tx, new))
    return Refusal(
        refusal.code, f"{refusal.message} Your proposal is kept ({row.step_id}), and tried again "
        "when that may be over; you are told what became of it.", next="Do other work meanwhile.",
        **{**refusal.facts, "step": row.step_id},
    )


def tried_again(svc: Service, tx: Tx, step: str, answer: Any) -> None:
    """A proposal that was kept has been tried again, and this came of it."""
    with contextlib.suppress(Refusal):
        row = STEPS.find(tx, step)
        names = row.name
        if not isinstance(answer, Refusal):
            STEPS.move(tx, row, "finish")
            if row.agent is not None:
                notices.post(tx, row.agent, "step", f"What you proposed of {names} ({step}) is "
                             "written now.", step=step)
        elif answer.code in HELD:
            STEPS.fail(svc, tx, row, answer.message)
        else:
            STEPS.give_up(tx, row, answer.message)
