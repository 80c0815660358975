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
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from coordinator.client.asking import check_body, encoded, here, how_asked, listed
from coordinator.client.blocking import Operations
from coordinator.client.connection import REPLY_TIMEOUT_S, Wire
from coordinator.client.held import HeldLeases, LeaseLost, as_first_told
from coordinator.client.holdings import Asked, Holdings
from coordinator.client.locating import locate_root
from coordinator.client.turns import turn_names
from coordinator.files.state import StateDir
from coordinator.words import requests as rq
from coordinator.words.refusals import Refusal
from coordinator.words.shapes import read

__all__ = ["Client", "Held", "LeaseLost"]

R = TypeVar("R")
#: Connections beside the first that are kept for the next question.
IDLE_MAX = 4


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
        self.holdings = Holdings()
        self._wire = Wire(StateDir(self.root), token=given, autostart=autostart,
                          starting=starting)
        #: Who asks while another thread waits for its answer does so on a connection of its own.
        self._first = threading.Lock()
        #: Two threads that ask first are one agent.
        self._naming = threading.RLock()
        self._idle: list[Wire] = []
        self._busy: set[Wire] = set()
        self._closed = 0
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
        self._closed += 1
        while self._idle:
            self._idle.pop().close()
        if self._first.acquire(blocking=False):
            self._wire.close()
            self._first.release()

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
        answer = self._ask(request, key, mark)
        if isinstance(answer, rq.Acquired):
            self.holdings.acquired(answer.leases)
        elif isinstance(answer, rq.Claimed):
            self.holdings.claimed(answer.leases)
        elif isinstance(answer, rq.Released):
            self.holdings.acquired(answer.released)  # what is only read now has another token
        return answer

    def _ask(self, request: rq.Request[R], key: str | None = None, mark: int | None = None) -> R:
        kind = type(request)
        params = encoded(request)
        wait_s, repeatable, key = how_asked(request, key)
        with self._connection() as wire:
            wire.prepares = self._prepares or kind.writes
            raw = wire.ask(
                kind.op, params, REPLY_TIMEOUT_S + wait_s, repeatable=repeatable,
                key=key, mark=mark,
            )
        if isinstance(request, rq.Leave) and request.agent == self.agent:
            self._wire.token = None  # it is nobody's any more: whoever asks next registers
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
        with self._naming:
            if self.agent is None or self._wire.token is None:
                self.register()
            assert self.agent is not None
            return self.agent

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

    @contextlib.contextmanager
    def lease(
        self, *resources: str, ttl: float = 60.0, mode: rq.Mode = "exclusive", wait: float = 0.0,
        description: str = "", stall: float | None = None,
    ) -> Iterator[Held]:
        """Hold `resources` while the body runs, renewed every third of `ttl` (seconds), or of the
        `silence_s` that this client has registered with.

        With `stall`, renewal stops when the body has not called `progress()` for that long: a
        hung body loses its lease. Nested leases of one client on one resource are one lease, which
        is exclusive as long as one of them is; who holds it last releases it.

        Raises:
            Refusal: LOCKED and others, before the body runs.
            LeaseLost: it ended while the body ran, or at the body's end.
        """
        check_body(resources, ttl, wait, stall)
        held = self._begin(resources, ttl, mode, wait, description, stall)
        try:
            yield held
        finally:
            held.end()
        held.check()

    def _begin(self, resources: tuple[str, ...], ttl: float, mode: rq.Mode, wait: float,
               description: str, stall: float | None) -> Held:
        """Acquire, and begin to hold, in the turn of these resources."""
        def ask(wait_s: float) -> rq.Acquired:
            return self._ask(rq.Acquire(
                agent=self.name(), resources=listed(resources), ttl_s=ttl, mode=mode,
                wait_s=wait_s, description=description, retry=False, cwd=here()))

        turns = self.holdings.turns.of_all(turn_names(listed(resources), self.root, here()))
        deadline = time.monotonic() + wait
        with self.holdings.asked_for(turns.names) as asked:
            while wait > 0:
                with turns.waited_for():
                    got = ask(max(0.001, deadline - time.monotonic()))
                    self.holdings.heard(got.leases, asked)
                    try:
                        with turns:
                            now = got if turns.is_sure() else as_first_told(ask(0.0), got)
                            return self._hold(now, ttl, stall, mode, asked)
                    except Refusal:  # another body has given it back since, or a part of it
                        self._hold(got, ttl, None, mode).end()
                        if time.monotonic() > deadline:
                            raise
            with turns:
                return self._hold(ask(0.0), ttl, stall, mode, asked)

    def hold(self, got: rq.Acquired, *, ttl: float = 60.0, stall: float | None = None,
             mode: rq.Mode | None = None) -> Held:
        """Renew in the background what was acquired, every third of `ttl` (seconds), until
        `Held.end` is called: for whoever's body is no `with`. `mode`: what it was asked for in, if
        that may be less than was held already. See `lease`."""
        check_body((), ttl, stall=stall)
        return self._hold(got, ttl, stall, mode)

    def _hold(self, got: rq.Acquired, ttl: float, stall: float | None, mode: rq.Mode | None,
              asked: Asked | None = None) -> Held:
        held = Held(self, got, ttl, stall, mode, asked)
        held._start()
        return held


class Held(HeldLeases):
    """A lease while its body runs, renewed by a thread."""

    def __init__(self, client: Client, got: rq.Acquired, ttl_s: float,
                 stall_s: float | None, mode: rq.Mode | None, asked: Asked | None) -> None:
        super().__init__(client.holdings, got, ttl_s, stall_s, client.silence_s, mode, asked)
        self._client = client
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="coord-renew", daemon=True)

    def _start(self) -> None:
        self._thread.start()

    def _renew(self) -> None:
        while not self._done.wait(self._every_s):
            now = time.monotonic()
            if self._stalls(now):
                return
            try:
                self._client.call(self._renewal(str(self._client.agent)))
                self._confirmed_at = now
            except Refusal as refusal:
                if self._refused(refusal, now):
                    return

    def end(self, *, release: bool = True) -> None:
        """Renew no more and, with `release`, give back what was not held before, once no other
        body of this client holds it. What is not given back, also because the coordinator cannot
        be reached, stays until it lapses. `check` tells whether all was held to the end.
        """
        if self._over or self._process != os.getpid():
            return  # a forked child leaves the body: the lease is its parent's
        self._over = True
        self._done.set()
        self._thread.join()
        ending, refused = self._ending(str(self._client.agent), release), None
        with self._turns, contextlib.suppress(StopIteration):
            while True:
                request = ending.send(refused)
                try:
                    self._client.call(request)
                    refused = None
                except Refusal as no:
                    refused = no
