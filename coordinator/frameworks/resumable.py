"""A step that one process begins and another may continue: its agent, and its leases.

A framework that resumes from a checkpoint runs the same step again, perhaps after a crash, perhaps
in another process. The step is then the same agent with the same leases, and it must not run twice
at once. So the tokens of the agent and its leases are kept in `.coord/steps/` under the step's key,
readable by this user only. The runner of the step holds the lock of that file (flock), which the
kernel releases when the process dies. The module knows no framework.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from coordinator.client.client import Client, Held
from coordinator.client.locating import locate_root
from coordinator.files import ownership
from coordinator.files.state import StateDir
from coordinator.words import requests as rq
from coordinator.words.pickled import Pickled
from coordinator.words.refusals import Code, Refusal

#: The silence (seconds) by which a step's agent outlives its process.
SILENCE_S = 86_400.0
#: How often to try a step's lock while another process has it (seconds).
TRY_EVERY_S = 0.02
#: A renewal that is refused so means: the lease has ended.
_ENDED = (Code.STALE_TOKEN, Code.UNKNOWN_LEASE, Code.NOT_HOLDER)
#: And so: the agent itself has.
_NOBODY = (Code.UNAUTHORIZED, Code.UNKNOWN_AGENT)
#: Steps that were ended under one record and are remembered.
DONE_MAX = 100


class Stale(Pickled, RuntimeError):
    """The step continues where it was stopped, but its knowledge may be out of date: its lease had
    ended meanwhile, and others may have written. It was not run. Run it once more, after reading
    afresh; then this is not raised again. It is a `RuntimeError` because LangGraph's own retry
    policy does not retry those by itself.

    Attributes:
        resources: those that were lost and taken again.
        fencing_tokens: what they are held under now.
        code: of the refusal that this is like, VERSION_CHANGED.
    """

    code = Code.VERSION_CHANGED

    def __init__(self, resources: Sequence[str], fencing_tokens: dict[str, int],
                 why: str = "") -> None:
        names = ", ".join(resources)
        super().__init__(
            why or f"The lease on {names} ended while this step was not running, and others may "
            "have written there. The step was not run. Next: read it afresh, then run it again.")
        self.resources = list(resources)
        self.fencing_tokens = fencing_tokens


class ResumableStep:
    """One step's right to run, and its leases. Use: `open`, `begin`, the work, `end`.

    Args:
        root: a path in the repository; default: as for `Client`.
        key: what the step is; the same for each run of it, in whatever process.
        label: a name for its agent, for people.
    """

    def __init__(self, root: Path | str | None, key: str, label: str) -> None:
        self._root = locate_root(Path(root) if root is not None else None)
        self._label = _name(label)
        self._state = StateDir(self._root)
        name = hashlib.sha256(key.encode()).hexdigest()[:40]
        self._folder = self._state.steps
        self._lock, self._file = self._folder / f"{name}.lock", self._folder / f"{name}.json"
        self._descriptor = -1
        self._record: dict[str, Any] = {}
        self._client: Client | None = None
        self.held: Held | None = None

    @property
    def is_known(self) -> bool:
        """Whether an earlier run of it has not come to its end."""
        return bool(self._record)

    @property
    def agent(self) -> str:
        """Its agent's name; empty before `begin`."""
        return str(self._record.get("agent", ""))

    @property
    def fencing_tokens(self) -> dict[str, int]:
        """What it holds (or held, when it was stopped), each under its fencing token."""
        return {name: int(item["fencing_token"])
                for name, item in self._record.get("leases", {}).items()}

    def open(self, wait: float = 0.0) -> None:
        """Become the one that runs it. `wait` in seconds.

        Raises:
            Refusal: NAME_TAKEN: another run of it is under way; STORAGE.
        """
        self._state.create(asked=False)
        ownership.make_folder(self._folder)
        until = time.monotonic() + wait
        while not self._locked():
            if time.monotonic() >= until:
                raise Refusal(
                    Code.NAME_TAKEN, f"{self._label} is running already, in this process or in "
                    "another: one graph with one thread id runs a step at a time. Nothing was run.",
                    next="Wait until that run has ended, or use another thread id.",
                    agent=self._label)
            time.sleep(TRY_EVERY_S)
        raw = ownership.read(self._file)
        with contextlib.suppress(ValueError):
            self._record = json.loads(raw) if raw else {}

    def begin(
        self, resources: Sequence[str], *, ttl: float, wait: float = 0.0, description: str = "",
        known: dict[str, int] | None = None, run: str = "",
    ) -> Held:
        """Hold `resources` (all, or none). What an earlier run held is renewed with its token, and
        taken again if it has expired. `ttl` and `wait` in seconds.

        Args:
            known: the fencing tokens that the checkpoint knows; another means that the resource was
                taken again since.
            run: the name of this run of the step; if it was completed already, so that it would
                run twice, that is reported, once.

        Raises:
            Refusal: LOCKED and others: nothing new is held.
            Stale: all is held, but was not all the time.
        """
        client = self._as_agent()
        before = dict(self._record.get("leases", {}))
        ended = [name for name, lease in before.items()
                 if not self._renewed(client, name, lease, ttl)]
        try:
            got = client.acquire(*resources, ttl=ttl, wait=wait, description=description,
                                 retry=False, reentrant=True)
        except Refusal as refusal:
            if refusal.code not in _NOBODY:
                raise
            client = self._as_agent(anew=True)  # a person has ended it
            ended = list(before)
            got = client.acquire(*resources, ttl=ttl, wait=wait, description=description,
                                 retry=False, reentrant=True)
        self._record["leases"] = {
            name: lease for name, lease in before.items() if name not in ended
        } | {lease.resource: {
            "lease_token": lease.lease_token, "fencing_token": lease.fencing_token,
            "content_hash": lease.content_hash} for lease in got.leases}
        done = self._record.setdefault("done", [])
        twice = bool(run) and run in done
        if twice:
            done.remove(run)
        self._write()
        now = self.fencing_tokens
        moved = [*_list_changed(got.leases, before, ended),
                 *_list_anew(known or {}, now, ended)]
        if twice:
            raise Stale(list(now), now, f"This step was brought to its end before ({self._label}), "
                        "by another run of the same thread or just before a crash. It was not run "
                        "again. Next: read what it writes, then run it again if it is still to be "
                        "done.")
        if moved:
            raise Stale(moved, now)
        self.held = client.hold(got, ttl=ttl)
        return self.held

    def end(self, *, leave: bool, run: str = "", keep: float | None = None) -> None:
        """Stop the step. `leave`: it is over, and its leases are given back. Otherwise it stays
        what it is, and its leases expire by themselves, after `keep` seconds if that is given.
        `run`: this run was completed.

        Raises:
            Refusal: the coordinator cannot be reached.
        """
        try:
            if self.held is not None:
                self.held.end(release=False)
            if self._client is not None and leave:
                with contextlib.suppress(Refusal):  # it has left, or will expire
                    self._client.call(rq.Leave(agent=self.agent, reason="its step is over"))
            elif self._client is not None and keep is not None and self.held is not None:
                with contextlib.suppress(Refusal):
                    self._client.call(rq.Renew(agent=self.agent, ttl_s=keep))
            if leave:
                self._forget()
            elif run and self._record:
                self._record["done"] = [*self._record.get("done", []), run][-DONE_MAX:]
                self._write()
        finally:
            self.close()

    def close(self) -> None:
        """Let another run of it begin; its leases stay."""
        if self._client is not None:
            self._client.close()
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor, self._client = -1, None

    def take_leave(self) -> None:
        """Give back all that an earlier run of it holds, after `open`.

        Raises:
            Refusal: the coordinator cannot be reached.
        """
        if self._record:
            self._client = Client(self._root, agent=self.agent, token=self._record["token"])
        self.end(leave=True)

    def _locked(self) -> bool:
        """Whether this is the one that has the file's lock now."""
        descriptor = ownership.open_own(self._lock, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The earlier runner may have removed the file: then another run makes a new one.
            if os.path.samestat(os.fstat(descriptor), os.lstat(self._lock)):
                self._descriptor, descriptor = descriptor, -1
        except (BlockingIOError, FileNotFoundError):
            pass
        finally:
            if descriptor >= 0:
                os.close(descriptor)
        return self._descriptor >= 0

    def _as_agent(self, anew: bool = False) -> Client:
        """A client that is the step's agent, which is registered and noted down first."""
        if self._client is not None:
            self._client.close()
        if anew or not self._record.get("token"):
            made = Client(self._root, agent=self._label, profile="step")
            try:  # it outlives its process
                made.register(silence_s=SILENCE_S, description=f"the step {self._label}")
            except Refusal as refusal:
                if refusal.code is not Code.INVALID:  # too long here
                    raise
                made.register(description=f"the step {self._label}")
            self._record = {**self._record, "agent": made.agent, "token": made.token}
            self._write()
            made.close()
        self._client = Client(self._root, agent=self.agent, token=self._record["token"])
        return self._client

    def _renewed(self, client: Client, name: str, lease: dict[str, Any], ttl: float) -> bool:
        """Whether the lease of an earlier run lives, by its own token."""
        try:
            client.call(rq.Renew(agent=self.agent, resources=[name], ttl_s=ttl,
                                 lease_token=lease["lease_token"]))
        except Refusal as refusal:
            if refusal.code in _ENDED or refusal.code in _NOBODY:
                return False
            raise
        return True

    def _write(self) -> None:
        """Put the record in its place, whole: a process may be killed at any moment."""
        fresh = self._file.with_suffix(".new")
        ownership.write(fresh, json.dumps(self._record).encode())
        fresh.replace(self._file)

    def _forget(self) -> None:
        self._record = {}
        for path in (self._file, self._lock):  # the lock last: until then it is ours
            path.unlink(missing_ok=True)


def _unchanged(now: rq.Lease, before: dict[str, Any]) -> bool:
    """Whether a file is, byte for byte, what it was when it was first leased. coord cannot see what
    a key stands for."""
    return (now.kind in ("file", "region") and before.get("content_hash") is not None
            and now.content_hash == before["content_hash"])


def _list_changed(leases: Sequence[rq.Lease], before: dict[str, Any],
                  ended: Sequence[str]) -> list[str]:
    """The resources that expired, were taken again, and may have changed since they were `before`.
    """
    return [lease.resource for lease in leases if lease.resource in ended
            and not _unchanged(lease, before[lease.resource])]


def _list_anew(known: dict[str, int], now: dict[str, int], ended: Sequence[str]) -> list[str]:
    """The resources that were taken again, under another fencing token than the known one."""
    return [name for name, token in known.items()
            if now.get(name, token) != token and name not in ended]


def _name(label: str) -> str:
    """An agent's name that tells what `label` does."""
    return re.sub(r"[^\w.@+-]+", "-", label, flags=re.ASCII).strip("-")[:80] or "step"
