"""The Python client: every operation, typed, and a lease as a context manager.

    from coordinator import Client

    with Client(agent="importer") as client:
        with client.lease("key:account:12345", ttl=45):
            …                      # renewed in the background; raises LeaseLost if it was lost

A client is one agent. It starts the coordinator if need be, and connects again after a restart.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from coordinator.client import bodies
from coordinator.client.asking import check_body, encoded, here, how_asked, listed
from coordinator.client.blocking import Operations
from coordinator.client.connection import Wire
from coordinator.client.held import GONE, HeldLeases, LeaseLost
from coordinator.client.locating import locate_root
from coordinator.client.wire_format import REPLY_TIMEOUT_S
from coordinator.files.state import StateDir
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from coordinator.words.shapes import read

__all__ = ["Client", "Held", "LeaseLost"]

R = TypeVar("R")
#: Connections beside the first that are kept for the next question.
IDLE_MAX = 4
#: So long (seconds) the coordinator has to tell whether something is held still.
CHECK_S = 2.0


class Client(Operations):
    """One agent's (or, with `agent=None`, the operator's) view of the coordinator.

    Args:
        root: a path in the repository; default: `COORD_ROOT` or the working directory.
        agent: name of the agent to be; default `COORD_AGENT`. Registered at first use.
        token: its token, when it is registered already; default `COORD_AGENT_TOKEN`.
        autostart: start the coordinator when none is running.
        prepares: make `.coord/` where there is none, also for a question that changes nothing.
        starting: called before a coordinator is started, for that takes a moment.
    """

    def __init__(
        self,
        root: Path | str | None = None,
        agent: str | None = None,
        token: str | None = None,
        *,
        autostart: bool = True,
        prepares: bool = True,
        profile: str = "python",
        starting: Callable[[], None] | None = None,
    ) -> None:
        self.root = locate_root(Path(root) if root is not None else None)
        self.agent = agent or os.environ.get("COORD_AGENT")
        given = token or (os.environ.get("COORD_AGENT_TOKEN") if agent is None else None)
        self._profile = profile
        self._prepares = prepares
        self._wire = Wire(StateDir(self.root), token=given, autostart=autostart,
                          starting=starting)
        #: Who asks while another thread waits for its answer does so on a connection of its own.
        self._first = threading.Lock()
        #: Two threads that ask first are one agent.
        self._naming = threading.RLock()
        self._idle: list[Wire] = []
        self._busy: set[Wire] = set()
        self._closed = 0
        self._branches = bodies.Branches()
        #: Whose agent this is: a fork of that process is another one.
        self._process = os.getpid()
        self.silence_s: float | None = None

    def __repr__(self) -> str:
        return f"<Client {self.agent or 'nobody yet'} at {self.root}>"

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hang up; what other threads wait for they still get. Leases stay until they are
        released, or lapse."""
        self._leave_idle()
        self._closed += 1
        while self._idle:
            self._idle.pop().close()
        if self._first.acquire(blocking=False):
            self._wire.close()
            self._first.release()

    def _leave_idle(self) -> None:
        """Sub-agents that no body has leave; where nobody serves any more, they are silent soon."""
        starts, self._wire.autostart = self._wire.autostart, False
        for branch in self._branches.drain() if self._process == os.getpid() else ():
            with contextlib.suppress(Refusal):
                self._ask(rq.Leave(agent=branch.agent, reason="its client was closed"))
        self._wire.autostart = starts

    def hang_up(self, *, for_good: bool = False) -> None:
        """From another thread, or a signal handler: the questions that wait for their answers end
        now, DAEMON_DOWN, and so does `follow`; the coordinator sees that nobody listens any more.
        What is asked later is asked as always, and leases are renewed and given back as always.
        `for_good`: nothing is asked any more, so that leases stay until they lapse: of a client
        that is thrown away."""
        self._wire.hang_ups.for_good |= for_good
        self._wire.hang_ups.count += 1
        for wire in (self._wire, *tuple(self._busy)):
            wire.hang_up()

    @property
    def hang_ups(self) -> int:
        """How often `hang_up` was called."""
        return self._wire.hang_ups.count

    def starts_nothing(self) -> None:
        """From now on no coordinator is started where none runs: DAEMON_DOWN in place of that."""
        self._wire.autostart = False

    @property
    def token(self) -> str | None:
        """The agent's token, once it is registered."""
        return self._wire.token

    def call(self, request: rq.Request[R], *, key: str | None = None,
             mark: int | None = None) -> R:
        """Ask anything that the coordinator can be asked.

        Args:
            key: an idempotency key: whoever asks the same again under it, within a day, gets the
                same answer, and it takes effect once. Without one, a request that changes something
                gets a key of its own, so that it can be sent again when the connection breaks.
            mark: `hang_ups` as it was before: it is not asked where the client has hung up since.

        Raises:
            Refusal: with its code and facts.
        """
        holder = bodies.as_holder(self, request, self.agent)
        if holder is not None:
            try:
                return self._ask(msgspec.structs.replace(request, agent=holder), key, mark)
            except Refusal as refusal:
                if not bodies.is_of(refusal, self.agent):
                    raise
        return self._ask(request, key, mark)

    def _ask(self, request: rq.Request[R], key: str | None = None, mark: int | None = None,
             timeout_s: float = REPLY_TIMEOUT_S) -> R:
        kind = type(request)
        params = encoded(request)
        wait_s, repeatable, key = how_asked(request, key)
        with self._connection() as wire:
            raw = wire.ask(
                kind.op, params, timeout_s + wait_s, repeatable=repeatable,
                key=key, mark=mark, prepares=self._prepares or kind.writes,
            )
        if isinstance(request, rq.Leave) and request.agent == self.agent:
            self._wire.token = None  # it is nobody's any more: whoever asks next registers
            self._branches.drain()  # and these have left with it
        return read(raw, request.reply_shape())

    @contextlib.contextmanager
    def _connection(self) -> Iterator[Wire]:
        """A connection that no other thread uses meanwhile: the first one, if it is free."""
        closed = self._closed
        if self._first.acquire(blocking=False):
            try:
                yield self._wire
            finally:
                if closed != self._closed:
                    self._wire.close()
                self._first.release()
            return
        try:
            wire = self._idle.pop()
            wire.token, wire.autostart = self._wire.token, self._wire.autostart
        except IndexError:
            wire = self._wire.another()
        self._busy.add(wire)
        try:
            yield wire
        finally:
            self._busy.discard(wire)
            if closed == self._closed and len(self._idle) < IDLE_MAX:
                self._idle.append(wire)
            else:
                wire.close()

    def register(self, *, unique: bool = True, silence_s: float | None = None,
                 description: str = "", parent: str | None = None, launch: str = "") -> str:
        """Become a registered agent; its name: with a number, if a live session has it already.
        Later requests carry the agent's own token.

        Raises:
            Refusal: NAME_TAKEN, with `unique=False`.
        """
        with self._naming:
            wanted = self.agent or f"{self._profile}-{os.getpid()}-{os.urandom(2).hex()}"
            known = self.call(
                rq.Register(agent=wanted, profile=self._profile, unique=unique,
                            silence_s=silence_s, description=description, parent=parent,
                            launch=launch)
            )
            self.agent, self._wire.token = known.agent, known.token
            self.silence_s = silence_s
        return known.agent

    def name(self) -> str:
        """The name that all its requests bear; it is registered if it was not."""
        if self._process != os.getpid():
            self._be_another()
        if self.agent is not None and self._wire.token is not None:
            return self.agent  # without a lock, which an exception may have left taken
        with self._naming:
            if self.agent is None or self._wire.token is None:
                self.register()
            assert self.agent is not None
            return self.agent

    def _be_another(self) -> None:
        """This process was forked from the one whose agent this is: it is a sub-agent of that one
        from now on, or an agent like it where that one has left."""
        for wire in (self._wire, *self._idle, *self._busy):
            wire.close()
        self._process, self._naming = os.getpid(), threading.RLock()
        self._branches, self._idle, self._busy = bodies.Branches(), [], set()
        self._wire, self._first = self._wire.another(), threading.Lock()
        parent, token = self.agent, self.token
        if parent is None or token is None:
            return
        try:
            known = self._ask(rq.Register(
                agent=f"{parent}.1", parent=parent, profile=self._profile, unique=True,
                silence_s=self.silence_s, description=f"a process of {parent}"))
        except Refusal as refusal:
            self._wire.token = None
            if refusal.code not in GONE and refusal.code is not Code.UNKNOWN_AGENT:
                raise
            return
        self.agent, self._wire.token = known.agent, known.token

    def commit_region(self, resource: str, text: str, *, content_hash: str | None = None,
                      lease_token: str | None = None) -> rq.RegionsCommitted:
        """Write the new text of a leased region (`path::Qualified.name`). Several at once:
        `commit_regions`.

        Raises:
            Refusal: REGION_CHANGED with the fresh text, PARSE_INVALID, OUT_OF_SCOPE_EDIT,
                NOT_HOLDER, UNKNOWN_LEASE, STALE_TOKEN; LOCKED: another writes the file just now.
        """
        return self.call(rq.CommitRegion(agent=self.name(), cwd=here(), regions=[
            rq.RegionText(resource=resource, text=text, content_hash=content_hash,
                          lease_token=lease_token)]))

    def follow(self, after: int | None = None) -> Iterator[rq.EventRow]:
        """What happens from now on (or after the event of that number), as it happens, on a
        connection of its own; until the iterator is closed.

        Raises:
            Refusal: DAEMON_DOWN: the coordinator stopped, or another thread has called `hang_up`.
        """
        wire = self._wire.another()
        self._busy.add(wire)
        try:
            for raw in wire.events(after):
                yield read(raw, rq.EventRow)
        finally:
            self._busy.discard(wire)
            wire.close()

    def lease(
        self, *resources: str, ttl: float = 60.0, mode: rq.Mode = "exclusive", wait: float = 0.0,
        description: str = "", stall: float | None = None, reentrant: bool = False,
    ) -> contextlib.AbstractContextManager[Held]:
        """Hold `resources` while the body runs, renewed every third of `ttl` (seconds), or of the
        `silence_s` that this client has registered with.

        Each body is a holder of its own, a sub-agent of this client's agent: two threads, tasks or
        processes never have a resource at once, whichever client or token they share. What the body
        writes through this client (values, regions, proposals) is written as that holder. With
        `reentrant`, a body within a body of the same thread is that holder, and goes on with what
        it has; and any other is this client's agent itself, with what that has acquired or claimed.
        Whoever has something before the body has it after it.

        With `stall`, renewal stops when the body has not called `progress()` for that long: a
        hung body loses its lease.

        Raises:
            Refusal: LOCKED and others, before the body runs.
            LeaseLost: it ended while the body ran, or at the body's end.
        """
        check_body(resources, ttl, wait, stall)
        request = rq.Acquire(
            agent="", resources=listed(resources), ttl_s=ttl, mode=mode, wait_s=wait,
            description=description, retry=False, cwd=here(), reentrant=reentrant)
        runs = _Running()
        body = self._body(request, ttl, stall, runs)
        runs.follow(body.gen)
        return _Entered(body)

    @contextlib.contextmanager
    def _body(self, request: rq.Acquire, ttl: float, stall: float | None,
              runs: Callable[[], bool]) -> Iterator[Held]:
        around = bodies.around(self)
        branch = around or (bodies.Branch(self.name(), private=False) if request.reentrant
                            else self._take())
        before, branch.spent = branch.spent, True  # until it is known what it holds
        try:
            try:
                held = self._begun(branch, request, ttl, stall, runs)
            except Refusal as refusal:
                branch.spent = before or not bodies.is_plain(refusal)
                raise
            with bodies.entered(self, branch):
                try:
                    yield held
                finally:
                    held.end()
                    branch.spent = before or held.lost
            held._check_known()
        finally:
            if around is None:
                self._part(branch)

    def _begun(self, branch: bodies.Branch, request: rq.Acquire, ttl: float, stall: float | None,
               runs: Callable[[], bool]) -> Held:
        request.agent = branch.agent
        held = Held(self, self._ask(request), ttl, stall, branch)
        held.runs = runs
        held._start()
        return held

    def _take(self) -> bodies.Branch:
        """A holder that nobody else is.

        Raises:
            Refusal: this client's agent cannot register one.
        """
        parent = self.name()
        idle = self._branches.take()
        if idle is not None:
            return idle
        return bodies.Branch(bodies.registered(lambda silence_s: self._ask(
            bodies.registration(parent, self._profile, silence_s))).agent)

    def _part(self, branch: bodies.Branch) -> None:
        """Its body is over."""
        if self._process != os.getpid() or not branch.private:
            return  # a forked child leaves the body: it is its parent's
        if not branch.spent:
            self._branches.give_back(branch)
            return
        with contextlib.suppress(Refusal):  # it cannot be reached: what is held lapses
            self._ask(rq.Leave(agent=branch.agent, reason="its body has ended"))

    def hold(self, got: rq.Acquired, *, ttl: float = 60.0, stall: float | None = None) -> Held:
        """Renew in the background what this client's agent has acquired, every third of `ttl`
        (seconds), until `Held.end` is called, which gives back what that acquisition got: for
        whoever's body is no `with`. It ends with the `Held`, too, when nobody has that any more."""
        check_body((), ttl, stall=stall)
        held = Held(self, got, ttl, stall)
        held._start()
        return held


class _Entered(contextlib.AbstractContextManager["Held"]):
    """A body that is ended at once where an exception comes while it is entered or left: whoever
    keeps that exception keeps what it came through."""

    def __init__(self, body: Any) -> None:
        self._body = body

    def __enter__(self) -> Held:
        try:
            held: Held = self._body.__enter__()
            return held
        except BaseException:
            self._body.gen.close()
            raise

    def __exit__(self, *raised: Any) -> Any:
        try:
            return self._body.__exit__(*raised)
        except BaseException:
            self._body.gen.close()  # (nothing, where its end was reached)
            raise


class _Running:
    """Whether a body runs still: what tells whoever renews its lease, when an exception came so
    that nobody ends it."""

    def __init__(self) -> None:
        self._body: Callable[[], Any] = lambda: self

    def follow(self, body: Any) -> None:
        """Tell of this generator from now on."""
        self._body = weakref.ref(body)

    def __call__(self) -> bool:
        body = self._body()
        return body is self or (body is not None and body.gi_frame is not None)


class Held(HeldLeases):
    """A lease while its body runs, renewed by a thread. The thread knows it weakly, so that it ends
    when an exception at any instant has left the lease to nobody."""

    def __init__(self, client: Client, got: rq.Acquired, ttl_s: float, stall_s: float | None,
                 branch: bodies.Branch | None = None) -> None:
        agent = branch.agent if branch is not None else str(client.agent)
        super().__init__(agent, got, ttl_s, stall_s, client.silence_s, branch)
        self._client = client
        self._done, self._ended = threading.Event(), threading.Event()

    def _start(self) -> None:
        # In one step: `Thread.start` is several, and an exception among them leaves half a thread.
        _thread.start_new_thread(_renew, (weakref.ref(self), self._done, self._ended,
                                          self._every_s))

    def _renewed(self) -> bool:
        """Renew it; whether that goes on."""
        now = time.monotonic()
        if self._over or not self.runs() or self._stalls(now):
            return False
        try:
            self._client.call(self._renewal())
            self._confirmed_at = now
        except Refusal as refusal:
            return not self._refused(refusal, now)
        return True

    def check(self) -> None:
        """Ask the coordinator whether it is held still; where that does not answer soon, its last
        renewal tells.

        Raises:
            LeaseLost: the lease has ended, or its renewal was not confirmed in time.
        """
        if self._may_ask():
            with contextlib.suppress(Refusal):
                self._compare(self._client._ask(rq.Locks(agent=self.agent), timeout_s=CHECK_S))
        self._check_known()

    def end(self, *, release: bool = True) -> None:
        """Renew no more and, with `release`, give back what its holder did not have before. What is
        not given back, also because the coordinator cannot be reached, stays until it lapses.
        `check` tells whether all was held to the end.
        """
        if self._over or self._process != os.getpid():
            return  # a forked child leaves the body: the lease is its parent's
        self._over = True
        self._done.set()
        self._ended.wait()
        ending = self._ending(release)
        answer: Any = None
        with contextlib.suppress(StopIteration):
            while True:
                request = ending.send(answer)
                try:
                    answer = self._client.call(request)
                except Refusal as no:
                    answer = no


def _renew(held: Callable[[], Held | None], done: threading.Event, ended: threading.Event,
           every_s: float) -> None:
    try:
        while not done.wait(every_s):
            here = held()
            if here is None or not here._renewed():
                return
            del here
    finally:
        ended.set()
