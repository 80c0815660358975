"""The daemon's side of an agent's hook: read it, let the service decide, answer in its dialect.

The module keeps only observations, such as the running calls. Who holds what it asks the database,
at each call.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from coordinator.daemon import file_stamps, hook_protocol
from coordinator.daemon.callers_trees import CallersTrees, OtherRepositories
from coordinator.daemon.command_comparison import CommandComparison
from coordinator.daemon.command_lines import CoordCommand
from coordinator.daemon.git_questions import GitQuestions
from coordinator.daemon.request_router import RequestRouter
from coordinator.daemon.running_calls import WORDS_MAX, RunningCalls
from coordinator.daemon.session_processes import SessionProcesses, has_prefix
from coordinator.daemon.session_records import UnjoinedCommands
from coordinator.daemon.twin_questions import TwinQuestions
from coordinator.dialects.decode import HookCall, decode
from coordinator.dialects.encode import HookAnswer, can_add, encode
from coordinator.dialects.table import HookTable
from coordinator.files import trusted
from coordinator.kernel.core import owner
from coordinator.kernel.operations import who
from coordinator.profiles import OWN, Profile, load
from coordinator.rules import commands
from coordinator.slices.guard import shell_commands, tool_calls
from coordinator.slices.guard.attribution import Running
from coordinator.store.events import NoticesDelivered
from coordinator.store.ledger import Tx
from coordinator.words.clock import from_iso
from coordinator.words.refusals import Code, Refusal

log = logging.getLogger("coord.hooks")
Told = Callable[[hook_protocol.Answer], None]
#: How long (seconds) an edit is held while another agent writes the file, which takes milliseconds.
WINDOW_WAIT_S = 20.0
_NO_PATIENCE = tool_calls.Patience()


class _Receipt:
    """Records the delivery of messages once a hook has printed its answer. Until then another hook
    of the same agent prints no messages."""

    def __init__(self, router: RequestRouter, on_the_way: set[str]) -> None:
        self._router = router
        self._on_the_way = on_the_way
        self._heeded: tool_calls.Heeded | None = None
        self._has_messages = False

    @property
    def due(self) -> bool:
        """Whether there is anything to record."""
        return self._heeded is not None

    def take(self, heeded: tool_calls.Heeded) -> None:
        """Keep what is to be recorded for this answer."""
        if not heeded.receipt:
            return
        self._heeded = heeded
        self._has_messages = any(isinstance(event, NoticesDelivered) for event in heeded.receipt)
        if self._has_messages:
            self._on_the_way.add(heeded.holder)

    def told(self) -> None:
        heeded = self._heeded
        assert heeded is not None, "only a receipt that is due is passed on"
        self._router.writer.submit(
            lambda tx: tool_calls.settle(tx, heeded), lambda value: self.lost()
        )

    def lost(self) -> None:
        if self._heeded is not None and self._has_messages:
            self._on_the_way.discard(self._heeded.holder)
        self._heeded = None


class _Hook(NamedTuple):
    """One hook as it came: see `AgentHooks.hook`. `again`: it was held, and is served once more."""

    name: str
    token: str | None
    payload: bytes
    answer: Told
    confirms: bool
    caller: int
    gone: Callable[[], bool]
    again: bool = False


class AgentHooks:
    """Serves the hooks of all agents. Used in the loop's thread only."""

    def __init__(self, router: RequestRouter, own: CoordCommand,
                 processes: SessionProcesses, git_asks: Callable[[str], bool],
                 rests: Callable[[str, bool], None], unjoined: UnjoinedCommands,
                 unguarded: Callable[[], dict[str, str]]) -> None:
        self._router = router
        self._unjoined = unjoined
        self._unguarded = unguarded
        self._rests = rests
        self._git_asks = git_asks
        self._processes = processes
        self._own = own
        #: The calls of agents that run, or have just ended.
        self.calls = RunningCalls()
        #: Whether a git process of an agent has the turn.
        self.git_runs: Callable[[str], bool] = lambda agent: False
        #: Notes, by profile and agent, who has asked before a call.
        self.note_asking: Callable[[str, str], None] = lambda profile, agent: None
        #: Agents whose commands cannot write what others hold.
        self.confined: Callable[[], list[str]] = list
        self.comparison = CommandComparison(router, self.calls)
        self.git = GitQuestions(router)
        self._trees = CallersTrees(router)
        self._others = OtherRepositories(router.service.tree.root)
        self._twins = TwinQuestions(self._now_ms)
        self._unknown: set[tuple[str, str]] = set()
        self._profiles: dict[str, tuple[list[file_stamps.Stamp | None], Profile]] = {}
        #: Profile -> when a hook of it was last heard (UTC).
        self.heard: dict[str, str] = {}
        #: Sessions (profile, id) that keep their hooks, whatever their settings say now.
        self.keeping: set[tuple[str, str]] = set()
        #: Edits that were allowed and are not yet noted as running: agent, files, time (Unix ms).
        self._allowed: dict[_Receipt, tuple[str, frozenset[str], int]] = {}
        #: Agents whose messages a hook is about to print.
        self._on_the_way: set[str] = set()

    def hook(self, name: str, token: str | None, payload: bytes, answer: Told, *,
             confirms: bool = False, caller: int = 0,
             gone: Callable[[], bool] = lambda: False) -> None:
        """Serve one hook, and call `answer` once, after a grant is on disk. `name`: the profile,
        with `:event` if the payload does not tell the event, and `+plugin` for a plugin's hook.
        `confirms`: the hook confirms that it has printed the answer; only then the delivery is
        recorded. `caller`: its process; 0 if it is not known, `UNSEEN` if it cannot be seen from
        here. `gone()`: whether it has hung up. Then it waits no more, so nothing is granted to it.
        """
        name, first = self._twins.ask(name, token, payload, answer)
        if first is not None:
            self._serve(_Hook(name, token, payload, first, confirms, caller, gone))

    def _serve(self, hook: _Hook) -> None:
        try:
            self._router.check_open()
            profile, _, event = hook.name.partition(":")
            table = self._table(profile)
            self.heard[profile] = self._router.now()
            heard = decode(table, hook.payload, event)
            if hook.token is None and hook.caller > 0:
                heard = self._tell_sessions_apart(profile, heard, hook.caller)
        except Refusal as refusal:
            hook.answer(hook_protocol.refused(refusal))
            return
        self._trees.seen_from_here(
            heard, hook.caller, lambda heard: self._decide(hook, profile, table, heard))

    def _decide(self, hook: _Hook, profile: str, table: HookTable, heard: HookCall) -> None:
        if heard.moment == "settings":
            self._keep_guard(profile, heard.session, hook.answer)
        elif heard.stopped is not None:
            verdict = HookAnswer(deny=tool_calls.describe_refusal(heard.stopped))
            hook.answer(hook_protocol.Answer(0, encode(table, heard, verdict)))
        else:
            self._note_unknown(profile, heard)
            self._serve_call(hook, profile, table, heard)

    def _serve_call(self, hook: _Hook, profile: str, table: HookTable, heard: HookCall) -> None:
        """Decide on one call in a transaction, and answer its hook."""
        token, answer, caller = hook.token, hook.answer, max(hook.caller, 0)
        patience = _NO_PATIENCE if hook.again else self._patience(table, heard)
        receipt, heard_ms = _Receipt(self._router, self._on_the_way), self._now_ms()

        broken: list[str] = []
        kept, asks = self._look_at_prefix(heard, token, caller)

        def job(tx: Tx) -> Any:
            service = self._router.service
            receipt.lost()  # an earlier try of this job was rolled back
            actor = who(tx, token)
            heeded = tool_calls.serve(service, tx, actor, profile, heard, tool_calls.Surroundings(
                can_add=can_add(table, heard), patience=patience,
                git_asks=lambda agent: asks and self._git_asks(agent),
                git_runs=self.git_runs, broken=broken,
                on_the_way=self._on_the_way, kept=kept,
                writing=lambda agent: self._writes(agent, heard), edits=self._edits_now,
                goes_on=hook.again, is_busy=self._is_busy,
            ))
            self._allowed[receipt] = heeded.holder, heeded.files, self._now_ms()
            if heeded.waiting is None:  # otherwise the hook gets no answer yet
                if hook.confirms:
                    receipt.take(heeded)
                else:
                    tool_calls.settle(tx, heeded)
            return heeded

        def continue_with(value: Any) -> None:
            if isinstance(value, tool_calls.Heeded):
                self._note_agent(profile, hook, heard, value)
            if isinstance(value, Refusal):
                receipt.lost()
                value = _heed_refusal(profile, heard, value)
            waits = value.waiting.facts.get("acquisition_id") if value.waiting else None
            if waits is not None:
                self._allowed.pop(receipt, None)
                self._router.held.hold(waits, value.wait_s, lambda late: self._end_wait(
                    late, table, heard, answer,
                    lambda: self._serve(hook._replace(caller=caller, again=True))),
                    gone=hook.gone)
                return

            def print_answer(held: list[shell_commands.Held], others: tuple[str, ...]) -> None:
                verdict = self._verdict(
                    heard, self._name_commands(profile, heard, value, token), held, heard_ms)
                self._allowed.pop(receipt, None)
                answer(hook_protocol.Answer(0, encode(table, heard, verdict), elsewhere=others,
                                            receipt=receipt if receipt.due else None))

            self._find_other_repositories(
                profile, table, heard, value, lambda others: self._protect(
                    heard, value, lambda held: print_answer(held, others)))

        def submit_job(compared: dict[str, list[str]]) -> None:
            broken[:] = chain.from_iterable(compared.values())
            self._router.engine.submit(job, tool_calls.needs(heard), continue_with)

        self.comparison.look_again(heard, submit_job)

    def _look_at_prefix(self, heard: HookCall, token: str | None, caller: int) -> tuple[bool, bool]:
        """Whether commands of a session that begins will join it, and whether this command runs
        where git may ask."""
        is_command = heard.call is not None and heard.call.kind == "shell"
        is_asked = heard.moment == "session" or (heard.moment == "before" and is_command)
        if token is not None:
            return False, is_command
        joins = is_asked and has_prefix(caller)
        kept = joins and heard.moment == "session" and self._router.service.settings.hooks.confine
        return kept, joins and is_command

    def _note_agent(self, profile: str, hook: _Hook, heard: HookCall,
                    heeded: tool_calls.Heeded) -> None:
        """Note what a hook call tells of its agent's turn, process and command."""
        self._note_rest(heard, heeded)
        if hook.token is None and hook.caller > 0:
            self._note_process(profile, heard, heeded)
            self._note_command(heard, heeded, hook.caller)

    def _keep_guard(self, profile: str, session: str, answer: Told) -> None:
        """Refuse changed settings of an agent if they take coord's hooks out."""
        def answer_settings(unguarded: Any) -> None:
            if isinstance(unguarded, Refusal):
                answer(hook_protocol.refused(unguarded))
            elif profile in unguarded:
                self.keeping.add((profile, session))
                answer(hook_protocol.Answer(
                    2, "", f"coord: {unguarded[profile]}. This session keeps the settings that it "
                    f"has. `coord init --remove --agent {profile}` takes coord out of them.\n"))
            else:
                self.keeping.discard((profile, session))
                answer(hook_protocol.Answer(0, ""))

        self._router.engine.task(self._router.engine.do(self._unguarded), answer_settings)

    def _find_other_repositories(
            self, profile: str, table: HookTable, heard: HookCall, heeded: tool_calls.Heeded,
            then: Callable[[tuple[str, ...]], None]) -> None:
        """Pass on the roots of other repositories whose coordinators the hook has to ask, too."""
        session = (profile, heard.parent or heard.session)
        if table.dialect == "plain" or heeded.deny:  # plugins ask by themselves, and one alone
            then(())
        elif heard.moment in ("end", "sub stop"):
            then(tuple(self._others.over(session) if heard.moment == "end"
                       else self._others.met(session)))
        elif not heeded.outside:
            then(())
        else:
            def pass_on(result: Any) -> None:
                roots = result if isinstance(result, list) else []
                self._others.meet(session, roots)
                then(tuple(roots))

            self._router.engine.task(self._router.engine.do(
                lambda: self._others.roots(heeded.outside, heard.cwd)), pass_on)

    def _protect(self, heard: HookCall, heeded: tool_calls.Heeded,
                 then: Callable[[list[shell_commands.Held]], None]) -> None:
        """Pass on the state of what others hold, before a command runs. If that takes more than a
        few looks, a thread looks."""
        if not heeded.protects or heeded.deny:
            then([])
            return
        service = self._router.service
        rows = self._router.look(lambda view: shell_commands.held_by_others(view, heeded.holder))
        if isinstance(rows, Refusal) or not rows:
            then([])
        elif file_stamps.is_quick(rows):
            then(file_stamps.held(service, rows))
        else:
            self._router.engine.task(
                self._router.engine.do(lambda: file_stamps.held(service, rows)),
                lambda held: then(held if isinstance(held, list) else []),
            )

    def _end_wait(self, result: Any, table: HookTable, heard: HookCall, answer: Told,
                  serve_again: Callable[[], None]) -> None:
        """End the wait of a held call. If it was granted, it is served as if it came now."""
        if isinstance(result, Refusal):
            verdict = HookAnswer(deny=tool_calls.describe_refusal(result))
            answer(hook_protocol.Answer(0, encode(table, heard, verdict)))
        else:
            serve_again()

    def _tell_sessions_apart(self, profile: str, heard: HookCall, caller: int) -> HookCall:
        """Give the call its session's id. Two processes that continue one session are two."""
        if heard.moment == "other":
            return heard
        alone = self._table(profile).one_session
        if heard.parent:
            return replace(heard, parent=self._processes.session(
                profile, heard.parent, caller, alone=alone))
        return replace(heard, session=self._processes.session(
            profile, heard.session, caller, alone=alone))

    def _note_process(self, profile: str, heard: HookCall, heeded: tool_calls.Heeded) -> None:
        session, holder = heard.parent or heard.session, heeded.holder
        if heard.moment == "end":
            self._processes.over(profile, session)
            self.keeping.discard((profile, session))
        elif holder:
            session_agent = self._owner(holder)
            self._processes.belongs(profile, session, session_agent, rests=heard.moment == "stop")
            if heard.moment == "before":
                self.note_asking(profile, session_agent)

    def _note_rest(self, heard: HookCall, heeded: tool_calls.Heeded) -> None:
        """Note whether the turn of this agent is over."""
        if heeded.holder:
            self._rests(self._owner(heeded.holder), heard.moment == "stop" and not heeded.again)

    def _owner(self, agent: str) -> str:
        """The session that an agent works in."""
        return str(self._router.look(lambda view: owner(view, agent)))

    def _note_command(self, heard: HookCall, heeded: tool_calls.Heeded, caller: int) -> None:
        """Note when a command runs, to learn whether it joins the session of its agent."""
        if heard.moment == "end":
            self._unjoined.gone(heeded.holder)
        elif heard.call is not None and heard.call.kind == "shell" and not heard.sub:
            if heard.moment == "before" and not heeded.deny:
                self._unjoined.began(heeded.holder, heard.call_id, caller)
            elif heard.moment == "after":
                self._unjoined.ended(heard.call_id)

    def _table(self, name: str) -> HookTable:
        root = self._router.service.tree.root
        stamps, profile = self._profiles.get(name, (None, None))
        if profile is None or stamps != _read_stamps(root, profile):
            profile = load(name, root)
            self._profiles[name] = _read_stamps(root, profile), profile
        if profile.hooks is None:
            raise Refusal(
                Code.INVALID, f"The profile {name} says nothing of hooks, so this call is stopped.",
                next=f"Add a [hooks] section to agents/{name}.toml.",
            )
        return profile.hooks

    def _writes(self, agent: str, heard: HookCall) -> frozenset[str] | None:
        """The files of other running edits of this agent; None if no other edit runs."""
        if heard.moment not in ("before", "after"):
            return None
        return self.calls.writes(agent, heard.call_id if heard.moment == "after" else None)

    def _is_busy(self, agent: str) -> bool:
        """Whether commands of others than this agent run now."""
        return any(call.is_command and call.holder != agent
                   for call, _, _ in self.calls.running())

    def _edits_now(self, agent: str) -> frozenset[str]:
        """The files of this agent's edits that were allowed a moment ago, and still run."""
        since = self._now_ms() - int(1000 * self._router.service.settings.leases.window_s)
        files = [self.calls.writes(agent, None, since) or frozenset(),
                 *(files for holder, files, at_ms in list(self._allowed.values())
                   if holder == agent and at_ms >= since)]
        return frozenset().union(*files)

    def _patience(self, table: HookTable, heard: HookCall) -> tool_calls.Patience:
        """How long a call may be held."""
        if heard.moment != "before":
            return _NO_PATIENCE
        hooks, most = self._router.service.settings.hooks, table.timeout_s - tool_calls.MARGIN_S
        return tool_calls.Patience(*(
            max(0.0, min(wait_s, most))
            for wait_s in (hooks.wait_s, hooks.git_wait_s, WINDOW_WAIT_S)))

    def _note_unknown(self, profile: str, heard: HookCall) -> None:
        unknown = heard.moment == "other" or (
            heard.call is not None and heard.call.kind == "unknown"
        )
        key = (profile, heard.tool or heard.event)
        if unknown and key not in self._unknown and len(self._unknown) < 1000:
            self._unknown.add(key)
            log.warning("%s: %s %.80r is not known to its profile", profile,
                        "event" if heard.moment == "other" else "tool", key[1])

    # ------------------------------------------------------------ commands

    def _name_commands(self, profile: str, heard: HookCall, heeded: tool_calls.Heeded,
                       token: str | None) -> tool_calls.Heeded:
        """Write the commands in the texts as the agent can type them in its shell. An agent that
        coord started has `coord` on PATH."""
        if token is None:
            path = self._processes.path_of(profile, heard.parent or heard.session)
            heeded.deny = self._own.named(heeded.deny, path)
            heeded.context = self._own.named(heeded.context, path)
            heeded.again = self._own.named(heeded.again, path)
        return heeded

    def _verdict(self, heard: HookCall, heeded: tool_calls.Heeded,
                 protect: list[shell_commands.Held], heard_ms: int) -> HookAnswer:
        self._note_call(heard, heeded, heard_ms)
        call = heard.call
        if heeded.deny or heard.moment != "before" or call is None:
            return HookAnswer(heeded.deny, "", heeded.context, heeded.again)
        if call.kind == "own" and call.parameter:
            return HookAnswer("", heard.session, heeded.context)
        if protect:
            self.comparison.begin(heard, heeded.holder, protect, self._now_ms())
        return HookAnswer("", "", heeded.context)

    def _note_call(self, heard: HookCall, heeded: tool_calls.Heeded, heard_ms: int) -> None:
        """Note that a call begins or has ended. `heard_ms`: when the hook came. A call that it
        reports as ended had ended by then, although its writes were recorded later."""
        now, call = self._now_ms(), heard.call
        self.calls.heard(heeded.holder, now)
        if heard.moment in ("stop", "end", "sub stop", "prompt"):
            self.calls.over(heeded.holder, heard_ms)
        elif call is not None and call.kind in ("write", "shell", "unknown"):
            if heard.moment == "after":
                self.calls.ended(heeded.holder, heard.call_id, heard_ms)
            elif heard.moment == "before" and not heeded.deny:
                words = commands.words(call.command)[:WORDS_MAX] if call.kind == "shell" else ()
                self.calls.began(
                    Running(heeded.holder, call.kind != "write", frozenset(words), heeded.files,
                            self._is_confined(heeded.holder)),
                    heard.call_id, now)

    def _is_confined(self, holder: str) -> bool:
        """Whether commands of this agent, or of its session, are confined."""
        confined = self.confined()
        return bool(confined) and (holder in confined or self._owner(holder) in confined)

    def _now_ms(self) -> int:
        return from_iso(self._router.now())


def _heed_refusal(profile: str, heard: HookCall, refusal: Refusal) -> tool_calls.Heeded:
    """What a hook is answered whose call could not be served. Only before a tool it is stopped."""
    if heard.moment == "before":
        return tool_calls.Heeded("", deny=tool_calls.describe_refusal(refusal))
    log.error("%s at %s: %s", profile, heard.event, refusal.message)
    return tool_calls.Heeded("")


def _read_stamps(root: Path, profile: Profile) -> list[file_stamps.Stamp | None]:
    """The stamps that change when another profile of this name takes effect: of its file, of the
    repository's own file, and of the note that this one is trusted."""
    own = f"{OWN}/{profile.name}.toml"
    return [file_stamps.stamp(path) for path in (
        profile.source, str(root / own), str(trusted.note_path(root, own)))]
