"""Agents that change one customer's account, each by its strategy: a process that the benchmark
`billing` starts.

    python -P -m benchmarks.billing_agent     (an `Order` on its standard input)

Each agent reads what is owed, thinks, and sees to it that its step is part of the account. It says
when it thinks, and what the step cost. Nothing here compares steps by name before it writes: that a
step is neither lost nor doubled is coord's business. Only an agent that was told that the outcome
of its own request is not known looks whether its step is there, as a careful one would.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import msgspec

from coordinator.client.client import Client, LeaseLost
from coordinator.client.owner import Owner, update
from coordinator.words import requests as rq
from coordinator.words.refusals import HELD, Code, Refusal

Strategy = Literal["none", "pessimistic", "optimistic", "isolated", "owner"]
#: A lease of an agent that dies ends after so long (seconds); who lives renews it.
TTL_S = 3.0
#: How long an agent stands in line at a time (seconds).
LINE_S = 300.0
#: What an agent meets when the daemon goes and comes, or somebody was faster: it begins again.
AGAIN = frozenset({*HELD, Code.VERSION_CHANGED, Code.STALE_TOKEN, Code.DAEMON_DOWN, Code.NOT_HOLDER,
                   Code.UNKNOWN_LEASE, Code.DEADLOCK})
#: How long an agent waits before it begins again (seconds).
PAUSE_S = 0.02


class Step(msgspec.Struct, frozen=True):
    """What one agent does to the account: a fee (more than 0) or a credit (less)."""

    name: str
    agent: str
    amount: int


class Order(msgspec.Struct, frozen=True):
    """What a process is to do: carry these steps, an agent each; or be the owner, until its input
    ends; or (`look`) say what the account is."""

    root: str
    key: str
    strategy: Strategy
    think_s: float
    seed: int
    steps: list[Step] = []
    owns: str = ""
    look: bool = False


def nothing_owed(owed: int) -> dict[str, Any]:
    """An account at its beginning."""
    return {"owed": owed, "steps": []}


def stepped(account: dict[str, Any], step: Step) -> dict[str, Any]:
    """The account with this step."""
    return {"owed": account["owed"] + step.amount, "steps": [*account["steps"], step.name]}


def merged(base: dict[str, Any], mine: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """What `mine` changed of `base`, on the account as it is now."""
    return {
        "owed": now["owed"] + mine["owed"] - base["owed"],
        "steps": [*now["steps"], *mine["steps"][len(base["steps"]):]],
    }


class Agent:
    """One agent with its step."""

    def __init__(self, order: Order, step: Step) -> None:
        self._order, self._step = order, step
        self._file = Path(order.root) / f"{order.key.replace(':', '-')}.json"
        self._think_s = order.think_s * random.Random(
            f"{order.seed} {step.name}").uniform(0.5, 1.5)
        self.thought_s = 0.0
        self._client = Client(order.root, agent=step.agent)
        if order.strategy != "none":
            self._client.register()

    def carry(self) -> None:
        """Carry the step to its end, and say what it cost."""
        began = time.perf_counter()
        course: Callable[[], None] = getattr(self, f"_{self._order.strategy}")
        while True:
            try:
                course()
                break
            except (Refusal, LeaseLost) as no:
                if isinstance(no, Refusal) and no.code not in AGAIN:
                    raise
                if self._is_there():
                    break
                self._give_back()
                time.sleep(PAUSE_S)
        took = time.perf_counter() - began
        say(done=self._step.name, waited_s=took - self.thought_s,
            wasted_s=max(0.0, self.thought_s - self._think_s))
        self._client.close()

    def _think(self, account: Any) -> dict[str, Any]:
        say(thinks=self._step.name)
        before = time.perf_counter()
        time.sleep(self._think_s)
        self.thought_s += time.perf_counter() - before
        return stepped(account, self._step)

    def _read(self) -> tuple[dict[str, Any], int]:
        state = self._client.call(rq.StateWatch(key=self._order.key, after=0, wait_s=0)).state
        return msgspec.json.decode(state.value), state.version

    def _put(self, account: dict[str, Any], version: int, token: int | None = None) -> None:
        self._client.call(rq.StatePut(
            agent=self._client.name(), key=self._order.key, version=version, fencing_token=token,
            value=msgspec.Raw(msgspec.json.encode(account))))

    def _give_back(self) -> None:
        """An attempt that was cut off may have left a lease: it came when nobody listened."""
        with contextlib.suppress(Refusal):
            self._client.release(self._order.key)

    def _is_there(self) -> bool:
        while True:
            try:
                return self._step.name in self._read()[0]["steps"]
            except Refusal as refusal:
                if refusal.code is not Code.DAEMON_DOWN:
                    raise
                time.sleep(PAUSE_S)

    # ------------------------------------------------------------ strategies

    def _none(self) -> None:
        """Without coord: read the file, think, write it."""
        made = self._think(json.loads(self._file.read_text()))
        new = self._file.with_suffix(f".{self._step.agent}")
        new.write_text(json.dumps(made))
        new.replace(self._file)

    def _pessimistic(self) -> None:
        """Lease the key, read, think, write under the lease's fencing token."""
        with self._client.lease(self._order.key, ttl=TTL_S, wait=LINE_S) as held:
            account, version = self._read()
            self._put(self._think(account), version, held.fencing_token)

    def _optimistic(self) -> None:
        """Read, think, write if nobody has written meanwhile; under a lease after three losses."""
        update(self._client, self._order.key, self._think, wait=LINE_S)

    def _isolated(self) -> None:
        """Think on a copy; then land what was changed on the account as it is by then."""
        base, _ = self._read()
        mine = self._think(base)
        while True:
            now, version = self._read()
            try:
                self._put(merged(base, mine, now), version)
                return
            except Refusal as refusal:
                if refusal.code not in (Code.VERSION_CHANGED, *HELD):
                    raise

    def _owner(self) -> None:
        """Read, think, ask the account's owner for the step, and wait until it is applied."""
        account, _ = self._read()
        self._think(account)
        asked = self._client.call(rq.ChangeAdd(
            agent=self._client.name(), key=self._order.key,
            wanted=msgspec.Raw(msgspec.json.encode(self._step))), key=f"step-{self._step.name}")
        while True:
            try:
                known = self._client.call(rq.ChangeShow(change=asked.change, wait_s=LINE_S))
            except Refusal as refusal:
                if refusal.code is not Code.DAEMON_DOWN:
                    raise
                continue
            if known.state == "done":
                return
            if known.state not in ("queued", "given"):
                raise RuntimeError(f"{asked.change} is {known.state}: {known.why}")


def own(order: Order) -> None:
    """Be the account's owner until standard input ends."""
    client = Client(order.root, agent=order.owns)
    client.register()
    over = threading.Event()

    def apply(value: Any, wanted: Any, change: rq.Change) -> Any:
        return stepped(value, msgspec.convert(wanted, Step))

    def serve() -> None:
        while not over.is_set():
            try:
                Owner(client, order.key, apply, ttl=TTL_S).run(wait=LINE_S)
            except (Refusal, LeaseLost) as no:
                if isinstance(no, Refusal) and no.code not in AGAIN:
                    raise
                time.sleep(PAUSE_S)

    threading.Thread(target=serve, daemon=True).start()
    say(ready=True)
    sys.stdin.readline()
    sys.stdin.readline()
    over.set()
    os._exit(0)  # its lease ends by itself, as that of an owner that dies


def say(**facts: Any) -> None:
    """A line for whoever started this process."""
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


def main() -> int:
    """Carry out the order on standard input."""
    order = msgspec.json.decode(sys.stdin.readline(), type=Order)
    if order.look:
        state = Client(order.root).call(rq.StateWatch(key=order.key, after=0, wait_s=0)).state
        say(account=msgspec.json.decode(state.value))
        return 0
    if order.owns:
        own(order)
    agents = [Agent(order, step) for step in order.steps]
    say(ready=True)
    sys.stdin.readline()  # all begin at once
    threads = [threading.Thread(target=agent.carry) for agent in agents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
