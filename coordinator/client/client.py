# Made by scripts/blocking_client.py from coordinator/client/async_client.py; do not edit.
"""The Python client: every operation, typed, and a lease as a context manager.

    from coordinator import Client

    with Client(agent="importer") as client:
        with client.lease("key:account:12345", ttl=45):
            …                      # renewed in the background; raises LeaseLost if it was lost

A client is one agent. It starts the coordinator if need be, and connects again after a restart.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec

from coordinator.client import bodies
from coordinator.client.asking import (
    REPLY_TIMEOUT_S,
    check_body,
    check_seconds,
    encoded,
    here,
    how_asked,
    listed,
)
from coordinator.client.concurrency import Connections, Lock, run_body, to_the_end
from coordinator.client.connection import Wire
from coordinator.client.concurrency import Grants
from coordinator.client.held import Held
from coordinator.client.blocking import Operations
from coordinator.client.bodies import GONE, LeaseLost
from coordinator.client.locating import locate_root
from coordinator.files.state import StateDir
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from coordinator.words.shapes import read

__all__ = ["Client", "Held", "LeaseLost"]

R = TypeVar("R")


class Client(Operations):
    """One agent's (or, with `agent=None`, the operator's) view of the coordinator.

    Args:
        root: a path in the repository; default: `COORD_ROOT` or the working directory.
        agent: name of the agent to be; default `COORD_AGENT`. Registered at first use.
        token: its token, when it is registered already; default `COORD_AGENT_TOKEN`.
        autostart: start the coordinator when none is running.
        prepares: make `.coord/` where there is none, also for a question that changes nothing.
        starting: called before a coordinator is started, because that takes a moment.
    """

    def __init__(
        self, root: Path | str | None = None, agent: str | None = None, token: str | None = None,
        *, autostart: bool = True, prepares: bool = True, profile: str = "python",
        starting: Callable[[], None] | None = None,
    ) -> None:
        self.root = locate_root(Path(root) if root is not None else None)
        self.agent = agent or os.environ.get("COORD_AGENT")
        given = token or (os.environ.get("COORD_AGENT_TOKEN") if agent is None else None)
        self._profile = profile
        self._prepares = prepares
        self._connections = Connections(Wire(
            StateDir(self.root), token=given, autostart=autostart, starting=starting))
        #: Two that ask first are one agent.
        self._naming = Lock()
        #: Sub-agents without a body now. Each step on the list is atomic: with a lock, an exception
        #: at any instant could leave it taken for ever.
        self._idle: list[bodies.Branch] = []
        #: The process that owns the agent. A fork of that process is another one.
        self._process = os.getpid()
        #: How often this process had forked when the client registered; None: it did not register.
        self._forks: int | None = None
        self._grants = Grants()
        self.silence_s: float | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.agent or 'nobody yet'} at {self.root}>"

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """The agent that this client registered leaves. An exception leaves its work unfinished.
        An agent that a forked process shares stays."""
        try:
            if self._forks == bodies.forks.count and self._process == os.getpid():
                to_the_end(self._leave, kind is None)
        finally:
            self.close()

    def _leave(self, clean: bool) -> None:
        starts, self._wire.autostart = self._wire.autostart, False
        if self.agent is not None and self._wire.token is not None:
            with contextlib.suppress(Refusal):  # it is silent soon
                self.call(rq.Leave(
                    agent=self.agent, clean=clean, reason="its program ended its client"))
        self._wire.autostart = starts

    def close(self) -> None:
        """Hang up. Questions that wait at that moment still get their answers, and `follow`
        continues. Leases stay until they are released, or expire."""
        starts, self._wire.autostart = self._wire.autostart, False
        idle, self._idle = self._idle, []
        for branch in idle if self._process == os.getpid() else ():
            with contextlib.suppress(Refusal):  # without a coordinator it is silent soon
                self._ask(rq.Leave(agent=branch.agent, reason="its client was closed"))
        self._wire.autostart = starts
        self._connections.close()

    def hang_up(self, *, for_good: bool = False) -> None:
        """From elsewhere, or a signal handler: end the waiting questions now, with DAEMON_DOWN, and
        also `follow`. The coordinator sees that their listener is gone. Later questions are asked
        as always, and leases are renewed and given back as always. `for_good`: for a client that is
        thrown away; later questions are refused, so leases stay until they expire."""
        self._connections.hang_up(for_good=for_good)

    @property
    def hang_ups(self) -> int:
        """How often `hang_up` was called."""
        return self._wire.hang_ups.count

    def starts_nothing(self) -> None:
        """Start no coordinator from now on; raise DAEMON_DOWN instead."""
        self._wire.autostart = False

    @property
    def token(self) -> str | None:
        """The agent's token, once it is registered."""
        return self._wire.token

    @property
    def _wire(self) -> Wire:
        return self._connections.wire

    def call(self, request: rq.Request[R], *, key: str | None = None,
                   mark: int | None = None) -> R:
        """Ask anything that the coordinator can be asked.

        Args:
            key: an idempotency key: the same question under it, within a day, gets the same answer
                and takes effect once. Without one, a request that changes something gets a key of
                its own, so that it can be sent again when the connection breaks.
            mark: `hang_ups` as it was before: after a later hang-up the question is not sent.

        Raises:
            Refusal: with its code and facts.

        A caller that is cut off while it acquires, claims a task, or waits for a step or a change,
        leaves the queue, and keeps nothing of what it was granted in that moment. A step or change
        that was given then is tried again, as after a failure.
        """
        if (wait_s := getattr(request, "wait_s", None)) is not None:
            check_seconds("wait_s", wait_s)  # it is reckoned with before it is asked
        if isinstance(request, rq.Acquire):
            check_body(request.resources, 0)
        answer = self._ask_as_holder(request, key, mark)
        if isinstance(request, rq.Leave) and request.agent == self.agent:
            self._wire.token = None  # the token is invalid: the next question registers
            self._idle = []  # and these have left with it
        return answer

    def _ask_as_holder(self, request: rq.Request[R], key: str | None, mark: int | None) -> R:
        """Ask as the holder around this code, if the request is for it."""
        holder = bodies.as_holder(self, request, self.agent)
        if holder is not None:
            try:
                return self._grants.ask(
                    self, msgspec.structs.replace(request, agent=holder), key, mark)
            except Refusal as refusal:
                if not bodies.is_of(refusal, self.agent):
                    raise
        return self._grants.ask(self, request, key, mark)

    def _ask(self, request: rq.Request[R], key: str | None = None, mark: int | None = None,
                   timeout_s: float = REPLY_TIMEOUT_S) -> R:
        """Ask over whichever connection is free, and read the answer."""
        with self._connections.borrow() as wire:
            return self._ask_over(wire, request, key, mark, timeout_s)

    def _ask_over(self, wire: Wire, request: rq.Request[R], key: str | None,
                        mark: int | None = None, timeout_s: float = REPLY_TIMEOUT_S) -> R:
        kind = type(request)
        params = encoded(request)
        wait_s, repeatable, key = how_asked(request, key)
        raw = wire.ask(
            kind.op, params, timeout_s + wait_s, repeatable=repeatable, key=key, mark=mark,
            prepares=self._prepares or kind.writes)
        return read(raw, request.reply_shape())

    def register(
        self, *, unique: bool = True, silence_s: float | None = None, description: str = "",
        parent: str | None = None, launch: str = "",
    ) -> str:
        """Become a registered agent; its name: with a number, if a live session has it already.
        Later requests carry the agent's own token.

        Raises:
            Refusal: NAME_TAKEN, with `unique=False`.
        """
        with self._naming:
            return self._register(rq.Register(
                agent="", profile=self._profile, unique=unique, silence_s=silence_s,
                description=description, parent=parent, launch=launch))

    def _register(self, request: rq.Register) -> str:
        request.agent = self.agent or f"{self._profile}-{os.getpid()}-{os.urandom(2).hex()}"
        registered = self.call(request)
        for warning in registered.warnings:
            import logging  # it takes ms to load, and is seldom needed

            logging.getLogger("coord.client").warning("%s", warning)
        self.agent, self._wire.token = registered.agent, registered.token
        self.silence_s, self._forks = request.silence_s, bodies.forks.count
        return registered.agent

    def name(self) -> str:
        """The name that all its requests bear; it is registered if it was not."""
        if self._process != os.getpid():
            self._be_another()
        if self.agent is not None and self._wire.token is not None:
            return self.agent  # without a lock, which an exception may have left taken
        with self._naming:
            if self.agent is not None and self._wire.token is not None:
                return self.agent
            return self._register(rq.Register(
                agent="", profile=self._profile, unique=True))

    def _be_another(self) -> None:
        """Register again after a fork: as a sub-agent of the parent's agent, or as an agent like it
        if the parent has left."""
        self._process, self._naming, self._idle = os.getpid(), Lock(), []
        self._connections.start_anew()
        parent = self.agent
        if parent is None or self.token is None:
            return
        try:
            registered = self._ask(rq.Register(
                agent=f"{parent}.1", parent=parent, profile=self._profile, unique=True,
                silence_s=self.silence_s, description=f"a process of {parent}"))
        except Refusal as refusal:
            self._wire.token = None
            if refusal.code not in GONE and refusal.code is not Code.UNKNOWN_AGENT:
                raise
            return
        self.agent, self._wire.token = registered.agent, registered.token
        self._forks = bodies.forks.count

    def commit_region(
        self, resource: str, text: str, *, content_hash: str | None = None,
        lease_token: str | None = None,
    ) -> rq.RegionsCommitted:
        """Write the new text of a leased region (`path::Qualified.name`). Several at once:
        `commit_regions`.

        Raises:
            Refusal: REGION_CHANGED with the fresh text, PARSE_INVALID, OUT_OF_SCOPE_EDIT,
                NOT_HOLDER, UNKNOWN_LEASE, STALE_TOKEN; LOCKED: another writes the file just now.
        """
        return self.commit_regions([rq.RegionText(
            resource=resource, text=text, content_hash=content_hash, lease_token=lease_token)])

    def follow(self, after: int | None = None) -> Iterator[rq.EventRow]:
        """Iterate over the events from now on (or after the event of that number), as they happen.
        They have a connection of their own, until the iterator is closed.

        Raises:
            Refusal: DAEMON_DOWN: the coordinator stopped, or the client has hung up.
        """
        wire = self._connections.open_another()
        try:
            for raw in wire.events(after):
                yield read(raw, rq.EventRow)
        finally:
            to_the_end(self._connections.end, wire)

    def lease(
        self, *resources: str, ttl: float = 60.0, mode: rq.Mode = "exclusive", wait: float = 0.0,
        description: str = "", stall: float | None = None, reentrant: bool = False,
    ) -> contextlib.AbstractContextManager[Held]:
        """Hold `resources` while the body runs, renewed every third of `ttl` (seconds), or of the
        `silence_s` that this client has registered with.

        Each body is a holder of its own, a sub-agent of this client's agent: two threads, tasks or
        processes never have a resource at once, whichever client or token they share. What the body
        writes through this client (values, regions, proposals) is written as that holder. With
        `reentrant`, a body within a body of the same thread or task is that holder, and continues
        with what it has; and any other is this client's agent itself, with what that has acquired
        or claimed. A holder that had something before the body has it after it.

        With `stall`, renewal stops when the body has not called `progress()` for that long: a hung
        body loses its lease. A body that is cut off has given back what it held first.

        Raises:
            Refusal: LOCKED and others, before the body runs.
            LeaseLost: it ended while the body ran, or at the body's end.
        """
        check_body(resources, ttl, wait, stall)
        request = rq.Acquire(
            agent="", resources=listed(resources), ttl_s=ttl, mode=mode, wait_s=wait,
            description=description, retry=False, cwd=here(), reentrant=reentrant)
        return run_body(partial(self._run_body, request, ttl, stall))

    def _run_body(self, request: rq.Acquire, ttl: float, stall: float | None,
                        runs: Callable[[], bool]) -> Iterator[Held]:
        around = bodies.around(self)
        branch = around or self._choose_branch(request)
        before, branch.spent = branch.spent, True  # until its leases are known
        try:
            request.agent = branch.agent
            try:
                acquired = self._grants.ask(self, request)
            except Refusal as refusal:
                branch.spent = before or not bodies.is_plain(refusal)
                raise
            held = Held(self, acquired, ttl, stall, branch, runs)
            with bodies.entered(self, branch):
                try:
                    yield held
                finally:
                    to_the_end(held.end)
                    branch.spent = before or held.lost
            held._check_known()
        finally:
            if around is None:
                to_the_end(self._part, branch)

    def _choose_branch(self, request: rq.Acquire) -> bodies.Branch:
        """The holder for an outermost body: this client's agent itself, or a holder used by this
        body alone.

        Raises:
            Refusal: this client's agent cannot register one.
        """
        parent = self.name()
        if request.reentrant:
            return bodies.Branch(parent, private=False)
        with contextlib.suppress(IndexError):
            return self._idle.pop()
        registered = self._ask(bodies.registration(parent, self._profile))
        return bodies.Branch(registered.agent)

    def _part(self, branch: bodies.Branch) -> None:
        """Its body is over."""
        if self._process != os.getpid() or not branch.private:
            return  # a forked child leaves the body: it is its parent's
        if not branch.spent:
            self._idle.append(branch)
            return
        with contextlib.suppress(Refusal):  # the coordinator is out of reach: its leases expire
            self._ask(rq.Leave(agent=branch.agent, reason="its body has ended"))

    def hold(self, got: rq.Acquired, *, ttl: float = 60.0,
             stall: float | None = None) -> Held:
        """Renew in the background what this client's agent has acquired, every third of `ttl`
        (seconds), until `Held.end` is called, which gives back what that acquisition got: for
        a body that is no `with`. It ends, too, when the last reference to the `Held` is gone.
        """
        check_body((), ttl, stall=stall)
        return Held(self, got, ttl, stall)
