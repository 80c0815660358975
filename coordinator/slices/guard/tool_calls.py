"""Serving an agent's hooks: leases are taken on its behalf before it writes.

There is one function for each moment of an agent's life that its hooks report. It grants by the
same rules as `leases.acquire`, durably. A file outside of the repository passes without a word.
`coordinator.dialects` reads and writes the dialects.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from coordinator.dialects.decode import HookCall
from coordinator.kernel import strategies, tasks
from coordinator.kernel.core import Actor, Service, owner
from coordinator.kernel.holders import notice_delivery, sessions
from coordinator.kernel.leasing import agreements, grant, kept_edits, leases
from coordinator.kernel.leasing.waiting_line import same_again
from coordinator.looking.facts import AnyNeed, Content, Place, Whole
from coordinator.rules.commands import commits, words
from coordinator.slices.guard import (
    broken_callers,
    git_turns,
    optimistic_writes,
    proposed_edits,
    read_versions,
    shell_commands,
    sub_agents,
    write_windows,
)
from coordinator.store import events as ev
from coordinator.store.ledger import Tx
from coordinator.store.rows import LeaseRow
from coordinator.words import purposes
from coordinator.words import requests as rq
from coordinator.words.refusals import HELD, Code, Refusal
from coordinator.words.resource_names import Located

#: A hook that may hold a call is answered this long before its agent stops waiting (seconds).
MARGIN_S = 5.0


@dataclass(slots=True)
class Heeded:
    """The outcome of a hook call. `deny` stops the call; `context` and `again` are for the model.
    """

    holder: str
    deny: str = ""
    context: str = ""
    again: str = ""
    protects: bool = False
    """What others hold is looked at before the command and after it."""
    waiting: Refusal | None = None
    """LOCKED, if the hook stays in the queue for a while (`hooks.wait_s`)."""
    wait_s: float = 0.0
    """For how long."""
    files: frozenset[str] = frozenset()
    """The resources of an edit that may run."""
    outside: list[str] = field(default_factory=list)
    """Files of the call outside of this repository, which may have another coordinator."""
    receipt: list[ev.Event] = field(default_factory=list)
    """What is recorded once the agent has been told all this, and not before."""


class Patience(NamedTuple):
    """How long a call may be held (seconds).

    Attributes:
        lease_s: for what is leased by others.
        turn_s: while another's git changes the working tree.
        window_s: while another writes the same file.
    """

    lease_s: float = 0.0
    turn_s: float = 0.0
    window_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the daemon knows beside a hook call itself.

    Attributes:
        can_add: whether the model reads what is added at this moment.
        patience: how long the call may be held.
        git_asks: whether git itself asks in the sessions of an agent: what a command changes is
            not told from its words.
        git_runs: whether a git process of an agent has the turn.
        broken: sentences on leased files that a command of this agent has changed meanwhile.
        on_the_way: agents whose messages another hook is about to print: those that came since
            wait for the next call, so that all come once and in order.
        kept: its shell commands cannot write what others hold, though a person started it.
        writing: the files of other edits of this agent that are running now, as resources; None:
            none is.
        edits: the files of edits of an agent that were allowed a moment ago and run still.
        goes_on: the call was held, and has got what it waited for.
        is_busy: whether commands of others than an agent run now.
    """

    can_add: bool
    patience: Patience
    git_asks: Callable[[str], bool] = lambda agent: False
    git_runs: Callable[[str], bool] = lambda agent: False
    broken: Sequence[str] = ()
    on_the_way: Collection[str] = ()
    kept: bool = False
    writing: Callable[[str], frozenset[str] | None] = lambda agent: None
    edits: Callable[[str], frozenset[str]] = lambda agent: frozenset()
    goes_on: bool = False
    is_busy: Callable[[str], bool] = lambda agent: False


def serve(svc: Service, tx: Tx, actor: Actor, profile: str, heard: HookCall,
          around: Surroundings) -> Heeded:
    """Serve one hook call."""
    if heard.moment == "other":
        return Heeded("")
    name = sessions.holder(svc, tx, actor, profile, heard)
    few = _costs_little(heard)
    kept_edits.look_at(svc, tx, name, few=few)
    heeded = Heeded(name)
    edited = {write_windows.path(row) for row in write_windows.list_windows(tx, name)}
    noted = write_windows.noted(svc, tx, name) if edited else set()
    others = around.writing(name)
    over = set() if around.goes_on else _over(tx, heard, edited, others)
    parts = [*around.broken, *(write_windows.close(svc, tx, name, over) if over else ())]
    if heard.moment == "before":
        _heed_before(svc, tx, actor, heard, heeded, around, writing=others is not None)
    elif heard.moment == "after":
        _after(svc, tx, heard, heeded, around.git_runs, noted)
    else:
        _heed_session(svc, tx, actor, profile, heard, heeded, around.kept)
    if heard.moment == "end":
        return heeded
    kept_edits.check(svc, tx, name, but=edited | (others or frozenset()), few=few,
                     is_busy=around.is_busy)
    if name not in around.on_the_way and (around.can_add or heeded.deny or heard.moment == "stop"):
        parts += notice_delivery.deliver(svc, tx, name, heeded.receipt)
    _add_sentences(heard.moment, heeded, parts)
    return heeded


def _costs_little(heard: HookCall) -> bool:
    """Whether only few of an agent's edits are looked at, at a call's begin and end. At its end a
    command's own changes are distinguished from a loss, whatever that costs."""
    return heard.moment in ("before", "after") and not (
        heard.moment == "after" and heard.call is not None and heard.call.kind == "shell")


def _heed_before(svc: Service, tx: Tx, actor: Actor, heard: HookCall, heeded: Heeded,
                 around: Surroundings, *, writing: bool) -> None:
    """A call that is about to be made. `writing`: another edit of the agent is in the middle."""
    patience, parent = around.patience, sub_agents.find_parent(tx, heeded.holder)
    _before(_Proposal(
        svc, tx, actor, heard, heeded,
        max(patience.lease_s, patience.turn_s) if tx.present().turns else patience.lease_s,
        around.git_asks, patience.window_s, writing,
        frozenset() if parent is None or around.goes_on else around.edits(parent)))
    if heard.sub and not heeded.deny and _commits(heard):
        sub_agents.pass_leases_up(tx, heeded.holder)  # what commits is the process: its parent's


def _heed_session(svc: Service, tx: Tx, actor: Actor, profile: str, heard: HookCall,
                  heeded: Heeded, kept: bool) -> None:
    """A session begins or ends, or a turn of it, or a sub-agent."""
    name = heeded.holder
    if heard.moment == "session":
        agent = actor.agent or kept
        heeded.context = notice_delivery.welcome(tx, name, "" if agent else profile)
    elif heard.moment == "sub stop" and heard.sub:
        sub_agents.give_leases_back(tx, name)
        owner = sub_agents.find_parent(tx, name)
        if owner is not None:
            kept_edits.hand_back(tx, name, owner)
        sessions.ended(svc, tx, actor, name, why="the sub-agent ended")
    elif heard.moment == "end":
        sessions.ended(svc, tx, actor, name, why="its session ended")
    elif heard.moment == "stop" and svc.settings.hooks.keep == "turn":
        sessions.turn_over(tx, name)


def _add_sentences(moment: str, heeded: Heeded, parts: list[str]) -> None:
    """Tell these, too, where the model reads them at this moment."""
    if moment == "stop":
        heeded.again = "\n".join(parts)
    elif heeded.deny:
        heeded.deny = "\n".join([heeded.deny, *parts])
    else:
        heeded.context = "\n".join(filter(None, (heeded.context, *parts)))


class _Proposal(NamedTuple):
    """A call that an agent is about to make. `writing`: another edit of this agent is in the
    middle; `parents`: the files of edits of its parent that are."""

    svc: Service
    tx: Tx
    actor: Actor
    heard: HookCall
    heeded: Heeded
    wait_s: float
    git_asks: Callable[[str], bool]
    window_wait_s: float
    writing: bool
    parents: frozenset[str]


def _before(proposal: _Proposal) -> None:
    heard, heeded = proposal.heard, proposal.heeded
    call = heard.call
    if call is None:
        return
    if call.kind == "own" and heard.call_id and proposal.actor.agent is None:
        proposal.svc.announce(heard.call_id, heeded.holder)
    if call.kind == "write":
        _before_edit(proposal)
    elif call.kind == "shell":
        _before_command(proposal, call.command)
    elif call.kind == "unknown":
        if proposal.svc.settings.hooks.unknown_tools == "deny":
            heeded.deny = (
                f"coord does not know what the tool {heard.tool[:60]} writes, and this "
                "repository's policy is to stop such tools (hooks.unknown_tools)."
            )
        heeded.protects = True


def _before_edit(proposal: _Proposal) -> None:
    svc, tx, heeded, heard = proposal.svc, proposal.tx, proposal.heeded, proposal.heard
    wait_s, parents = proposal.wait_s, proposal.parents
    asked: proposed_edits.Wanted | Refusal | None = None
    located, refusal = located_in(tx, _places(heard))
    if refusal is None:
        asked = write_windows.wait_for_parent(
            svc, tx, proposal.actor, heeded.holder, located, parents, proposal.window_wait_s
        ) or proposed_edits.open_windows(svc, tx, proposal.actor, heeded.holder, heard, located,
                                         proposal.window_wait_s)
        if isinstance(asked, Refusal):
            refusal, wait_s = asked, proposal.window_wait_s
        else:
            wait_s = 0 if asked.unplaced else wait_s
            refusal = take(proposal, located, wait_s, asked=asked)
            if refusal is not None:
                refusal = broken_callers.explained(refusal, asked.why)
            if not proposal.writing:
                write_windows.drop(tx, heeded.holder, [] if refusal else asked.windows)
    if refusal is None:
        heeded.files = frozenset(located_resource.resource.name for located_resource in located)
        heeded.outside = _outside(tx, heard)
    elif refusal.code in HELD:
        wanted = asked if isinstance(asked, proposed_edits.Wanted) else None
        read_versions.note_refused(tx, heeded.holder, [
            located_resource for located_resource in located if wanted is None
            or located_resource.resource.name not in wanted.regions
        ], parents, parts=wanted is not None)
    _deny(heeded, refusal, wait_s)


def _before_command(proposal: _Proposal, command: str) -> None:
    svc, tx, heeded, heard = proposal.svc, proposal.tx, proposal.heeded, proposal.heard
    refusal = None
    files = shell_commands.checked_out(tx, command, heard.cwd)
    if not proposal.git_asks(owner(tx, heeded.holder)):
        refusal = shell_commands.git_wide(svc, tx, heeded.holder, command, heard.cwd, files)
    if refusal is None:
        located, _ = located_in(tx, shell_commands.places(tx, command, heard.cwd, files),
                                all_or_none=False)
        if located:
            refusal = write_windows.wait_for_parent(
                svc, tx, proposal.actor, heeded.holder, located, proposal.parents,
                proposal.wait_s
            ) or take(proposal, located, proposal.wait_s, by_command=True)
            if refusal is not None and not proposal.writing:
                refused = {located_resource.resource.name for located_resource in located}
                write_windows.drop(tx, heeded.holder, {
                    write_windows.path(row) for row in write_windows.list_windows(tx, heeded.holder)
                } - refused)
    _deny(heeded, refusal, proposal.wait_s)
    heeded.protects = refusal is None


def _over(tx: Tx, heard: HookCall, edited: set[str], others: frozenset[str] | None) -> set[str]:
    """Those of the `edited` files that no running edit names. `others`: files of other running
    edits of this agent."""
    if others is None:
        return edited
    if heard.moment != "after" or heard.call is None or heard.call.kind != "write":
        return set()
    located, _ = located_in(tx, _places(heard))
    return {located_resource.resource.name for located_resource in located} & edited - others


def _commits(heard: HookCall) -> bool:
    return heard.call is not None and heard.call.kind == "shell" and commits(heard.call.command)


def settle(tx: Tx, heeded: Heeded) -> None:
    """Record what follows from the agent having been told."""
    row = tx.agent(heeded.holder)
    if row is not None and row.state != "gone":
        for event in heeded.receipt:
            tx.record(event)


def _deny(heeded: Heeded, refusal: Refusal | None, wait_s: float) -> None:
    if refusal is None:
        return
    heeded.deny = describe_refusal(refusal)
    if wait_s > 0 and refusal.code in HELD:
        heeded.waiting, heeded.wait_s = refusal, wait_s


def _after(svc: Service, tx: Tx, heard: HookCall, heeded: Heeded,
           git_runs: Callable[[str], bool], noted: Collection[str]) -> None:
    """`noted`: files of which it was noted what the agent wrote, as their windows closed."""
    call = heard.call
    if call is None:
        return
    if call.kind in ("write", "shell"):
        optimistic_writes.end_write_leases(svc, tx, heeded.holder)
    if call.kind in ("write", "read"):
        located, _ = located_in(tx, _places(heard))
        written = call.kind == "write"
        read_versions.note(tx, heeded.holder, located, written=written,
                           but=noted if written else (), edited=written)
        heeded.outside = _outside(tx, heard)
    elif call.kind == "shell":
        over = shell_commands.of_the_command(tx, heeded.holder, heard.tool)
        shell_commands.settle_own(svc, tx, heeded.holder, heard)
        kept_edits.note_command(svc, tx, heeded.holder, words(call.command))
        for row in over:
            grant.end(tx, row)
        if not git_runs(heeded.holder):
            git_turns.end(tx, heeded.holder)
        heeded.context = shell_commands.explained(tx, heeded.holder, call.command, heard.output)


def needs(heard: HookCall) -> list[AnyNeed]:
    """What to look at before a hook call is served: the files that the call plainly names."""
    call = heard.call
    if call is None or heard.moment not in ("before", "after"):
        return []
    if call.kind == "shell" and heard.moment == "before":
        return [*shell_commands.git_wide_needs(call.command, heard.cwd),
                *shell_commands.target_needs(call.command, heard.cwd)]
    noted = heard.moment == "after"
    named = call.kind == "write" or (call.kind == "read" and noted)
    if not named:
        return []
    return [*(Whole(path, heard.cwd, True, noted) for path in call.paths),
            *proposed_edits.needs(heard)]


def _places(heard: HookCall) -> list[Place]:
    """The places that a call of a file tool names."""
    return [Place(path, heard.cwd, True) for path in (heard.call.paths if heard.call else ())]


def located_in(
    tx: Tx, places: Sequence[Place], *, all_or_none: bool = True
) -> tuple[list[Located], Refusal | None]:
    """Locate these places, without those outside the repository. A path that can name nothing is
    refused, and so is one that another coordinator guards. Unless it must be all or none, such a
    path is left out, too."""
    matches: dict[tuple[str, str | None], Located] = {}
    tx.looked.require(places)
    for place in places:
        try:
            located = tx.looked.located(place)
        except Refusal as refusal:
            if not all_or_none or (
                    refusal.code is Code.OUTSIDE_REPO and "coordinator" not in refusal.facts):
                continue
            return [], refusal
        matches.setdefault((located.resource.scope, located.worktree), located)
    return list(matches.values()), None


def _outside(tx: Tx, heard: HookCall) -> list[str]:
    """Those of what a call names that `located_in` leaves out."""
    result = []
    for place in _places(heard):
        try:
            tx.looked.located(place)
        except Refusal as refusal:
            if refusal.code is Code.OUTSIDE_REPO:
                result.append(place.text)
    return result


def take(
    proposal: _Proposal, located: Sequence[Located], wait_s: float, *, by_command: bool = False,
    asked: proposed_edits.Wanted | None = None,
) -> Refusal | None:
    """Take the exclusive leases for a write of these files, or of the regions in `asked`. Returns
    the refusal if the write may not happen.

    A lease taken while the agent works on one claimed task belongs to the task and ends with it.
    The leases of a sub-agent's parent are handed down to it.
    """
    if not located:
        return None
    svc, tx, heeded, tool = proposal.svc, proposal.tx, proposal.heeded, proposal.heard.tool
    if asked is None:  # a command: what it names it writes by itself, too
        wanted, agreed, refusal = _take_shared(proposal, located, wait_s)
        if refusal is not None:
            return refusal
    else:
        wanted, agreed = asked.resources, asked.agreed
    wanted = strategies.written(svc, wanted)
    if not wanted and not agreed:
        return None
    brief = strategies.for_the_write(svc, wanted)
    agent, lent = sub_agents.choose_holder(tx, heeded.holder, wanted)
    request = rq.Acquire(
        agent=agent, resources=[located.resource.name for located in wanted], wait_s=wait_s,
        retry=_may_queue(tx, agent, wanted, asked),
        description=f"{tool[:180]} by its hook",
        ttl_s=svc.settings.leases.window_s if brief else None,
        task=tasks.find_only_claim(tx, agent, sub_agents.find_parent(tx, agent)),
    )
    answer = _lease(proposal, request, wanted, lent, asked) if wanted else None
    if isinstance(answer, Refusal):
        return answer
    since = {lease.resource: lease.locked_at for lease in answer.leases} if answer else {}
    unread = read_versions.unread(tx, agent, located, agreed)
    if unread is not None:
        return unread
    write = read_versions.Write(located, since, agreed=agreed, by_command=by_command)
    stale = _check_versions(tx, agent, heeded, write, asked)
    if stale is not None and isinstance(answer, rq.Acquired):
        return optimistic_writes.count_lost_write(svc, tx, agent, located, answer, stale)
    return stale


def _may_queue(tx: Tx, agent: str, wanted: Sequence[Located],
               asked: proposed_edits.Wanted | None) -> bool:
    # An edit that would fail anyway is not queued, unless the agent is queued already.
    return asked is None or not asked.unplaced or same_again(tx, agent, wanted) is not None


def _lease(proposal: _Proposal, request: rq.Acquire, wanted: Sequence[Located],
           lent: Sequence[LeaseRow], asked: proposed_edits.Wanted | None
           ) -> rq.Acquired | Refusal:
    """Acquire what a call is to write; a refusal tells what of it could not be placed."""
    try:
        answer = leases.acquire_located(
            proposal.svc, proposal.tx, proposal.actor, request, wanted, leases.How(
                lent=lent, waits=request.retry, purpose=purposes.of_hook(
                    proposal.heard.tool, everywhere=strategies.is_refused_everywhere(
                        proposal.svc, wanted))))
    except Refusal as refusal:
        return refusal
    if request.retry or asked is None or not isinstance(answer, Refusal):
        return answer
    return proposed_edits.explained(answer, asked.unplaced)


def _take_shared(proposal: _Proposal, located: Sequence[Located], wait_s: float
                 ) -> tuple[list[Located], set[str], Refusal | None]:
    """What is to be leased for a command, and the names of what its agent has by an agreement. For
    the latter the turns to write are taken. The refusal, if another has one."""
    tx, holder = proposal.tx, proposal.heeded.holder
    wanted = [file for file in located if agreements.by_which(tx, holder, file.resource) is None]
    shared = [file for file in located if file not in wanted]
    tx.looked.require([Content(str(file.path)) for file in shared])
    turns = (write_windows.open_one(proposal.svc, tx, proposal.actor, holder, file, wait_s)
             for file in shared)
    return (wanted, {file.resource.name for file in shared},
            next((refusal for refusal in turns if refusal is not None), None))


def _check_versions(tx: Tx, agent: str, heeded: Heeded, write: read_versions.Write,
                    asked: proposed_edits.Wanted | None) -> Refusal | None:
    """VERSION_CHANGED, if what is written was changed since it was read; what else there is to say
    of it is added."""
    notes: list[str] = []
    if asked is not None:
        write = replace(write, regions=asked.regions, whole=asked.whole)
    stale = read_versions.stale(tx, agent, write, heeded.receipt, notes)
    if asked is not None:
        text = broken_callers.describe(asked.why, [file.resource.name for file in write.files])
        notes += [text] if text else []
    heeded.context = "\n".join(notes)
    return stale


def describe_refusal(refusal: Refusal) -> str:
    """A refusal in words for a model: what happened, then the next step where it adds anything."""
    step = refusal.next or ""
    return refusal.message if step in refusal.message else f"{refusal.message} {step}".strip()
