"""Leases for LangGraph: a decorator for one node, and nodes for a lease over several.

    @guard(lambda state: state["file"], key="lease")
    def write(state: State) -> dict: ...          # runs while it holds the file

    graph.add_conditional_edges("write", route_blocked(free=END, blocked="other_work"))

The holder of a lease is the step: the thread, the place in the graph and the checkpoint that it
begins from. So a resumed graph, after `interrupt()` or a crash, in this process or another, is the
same agent, and its leases are renewed before the node runs. Branches that run side by side are
different agents. One step never runs twice at once (NAME_TAKEN). The graph's state holds
`LeaseState` and never a token (see `resumable`). The module runs no graph.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypedDict, Unpack, cast

from coordinator.client.client import Held
from coordinator.frameworks.asynchronous import to_the_end
from coordinator.frameworks.branches import current, holding
from coordinator.frameworks.extras import missing
from coordinator.frameworks.postponing import Postpones, StepPostponed, postponed
from coordinator.frameworks.resumable import ResumableStep, Stale
from coordinator.words.refusals import Code, Refusal

try:
    from langgraph.config import get_config
    from langgraph.errors import GraphBubbleUp, ParentCommand
    from langgraph.types import Command
except ImportError as bad:
    raise missing("langgraph", "LangGraph", "langgraph", bad) from bad

__all__ = ["LeaseState", "Stale", "StepPostponed", "current", "guard", "lease_node",
           "release_node", "route_blocked", "with_lease"]

Resources = str | Sequence[str]
#: How long the node that gives back waits for another run of its thread (seconds).
GIVE_BACK_WAIT_S = 10.0


class LeaseState(TypedDict, total=False):
    """A lease in the graph's state. No secret is in it.

    Attributes:
        status: `held`; `done`: the guarded node ran; `blocked`: others hold it, the node did not
            run; `stale`: it was lost meanwhile and is held again, the node did not run; `released`.
        resources: what it is on.
        fencing_tokens: for each resource its number, to hand to what is written to.
        message, holder, retry_after_s, redirect: of a refusal: coord's words, who holds it, when
            to try again (seconds), and the task that can be done meanwhile.
        agent: its holder for this graph.
        step: by what a later node finds it.
    """

    status: Literal["held", "done", "blocked", "stale", "released"]
    resources: list[str]
    fencing_tokens: dict[str, int]
    message: str
    holder: str
    retry_after_s: float
    redirect: dict[str, Any] | None
    agent: str
    step: str


class Interrupted(TypedDict, total=False):
    """What becomes of a node's leases when it calls `interrupt()`.

    Attributes:
        on_interrupt: the node keeps them (default), so that it goes on with them, or gives them
            back.
        keep: for how many seconds it then keeps them; default: the guard's `ttl`.
    """

    on_interrupt: Literal["keep", "release"]
    keep: float | None


def guard(
    resources: Resources | Callable[[Any], Resources], *, key: str | None = None,
    ttl: float = 60.0, wait: float = 0.0, root: Path | str | None = None,
    description: str = "", on_blocked: Postpones | None = None,
    **interrupted: Unpack[Interrupted],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Have a node (`def` or `async def`) hold `resources` while it runs.

    Args:
        resources: fixed, or a function that gives them from the state.
        key: the state's key for a `LeaseState`. With it, a node that is blocked or stale does not
            run, and a conditional edge says where the graph goes (`route_blocked`). Without it,
            that is raised.
        ttl: seconds after which a lease is free should this process die. Renewed meanwhile.
        wait: seconds to queue.
        root: a path in the repository; default: as for `Client`.
        description: what others read about it; default: the node's name.
        on_blocked: gets a postponed step first.
        interrupted: `on_interrupt`, `keep`: see `Interrupted`.

    The node raises:
        StepPostponed: others hold one of them (without `key`).
        Stale: it was resumed, and its leases had expired meanwhile (without `key`).
        LeaseLost: a lease ended while it ran; its update is not taken.
        Refusal: NAME_TAKEN: this very step is being run elsewhere; INVALID and the like.
    """

    keeps = interrupted.get("on_interrupt", "keep") == "keep"

    def decorate(node: Callable[..., Any]) -> Callable[..., Any]:
        def turn(state: Any) -> _Turn:
            place = _place()
            wanted = resources(state) if callable(resources) else resources
            return _Turn(
                ResumableStep(root, f"node {place.key}", place.label), place, _listed(wanted),
                _Manner(key, ttl, wait, description or place.node, on_blocked,
                        keeps=keeps and place.resumable, keep=interrupted.get("keep")))

        return _wrapped(node, turn)

    return decorate


def lease_node(
    resources: Resources | Callable[[Any], Resources], *, key: str = "lease", ttl: float = 300.0,
    wait: float = 0.0, root: Path | str | None = None, description: str = "",
    on_blocked: Postpones | None = None,
) -> Callable[[Any], dict[str, LeaseState]]:
    """A node that takes leases which later nodes use (`with_lease`) and one gives back
    (`release_node`). Between nodes they are not renewed: `ttl` (seconds) is how long they last
    then.

    In the state, `key` says `held` or `blocked`: put `route_blocked` behind it.
    """

    def take(state: Any) -> dict[str, LeaseState]:
        place = _place()
        wanted = _listed(resources(state) if callable(resources) else resources)
        step = ResumableStep(root, f"lease {place.key}", place.label)
        turn = _Turn(step, place, wanted,
                     _Manner(key, ttl, wait, description or place.node, on_blocked),
                     _Span(f"lease {place.key}", begins=True))
        refused = turn.begin()
        if refused is not None:
            return {key: refused}
        turn.end("kept")
        return {key: turn.told("held")}

    take.__name__ = "take_lease"
    return take


def with_lease(
    *, key: str = "lease", ttl: float = 300.0, wait: float = 0.0, root: Path | str | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Have a node run under what `lease_node` took: validated before (renewed by its token, its
    fencing token compared with the state's), renewed meanwhile. If it had expired, or another run
    of the thread has had it since, `key` says `stale` and the node does not run: the graph has the
    lease again, and has to read afresh (`route_blocked(stale=…)`). `ttl` and `wait` in seconds.

    The node raises:
        Refusal: UNKNOWN_LEASE: no `lease_node` came before; NAME_TAKEN: another run of this thread
            is in such a node just now.
        LeaseLost: a lease ended while it ran.
    """

    def decorate(node: Callable[..., Any]) -> Callable[..., Any]:
        def turn(state: Any) -> _Turn:
            place, lease = _place(), _lease(state, key)
            return _Turn(
                ResumableStep(root, lease["step"], place.thread), place, lease["resources"],
                _Manner(key, ttl, wait, place.node),
                _Span(lease["step"], lease.get("fencing_tokens")))

        return _wrapped(node, turn)

    return decorate


def release_node(
    *, key: str = "lease", root: Path | str | None = None,
) -> Callable[[Any], dict[str, LeaseState]]:
    """A node that gives back what `lease_node` took."""

    def give_back(state: Any) -> dict[str, LeaseState]:
        lease = _lease(state, key)
        step = ResumableStep(root, lease["step"], _place().thread)
        step.open(GIVE_BACK_WAIT_S)
        step.take_leave()
        return {key: LeaseState(status="released", resources=lease["resources"])}

    give_back.__name__ = "release_lease"
    return give_back


def route_blocked(*, free: str, blocked: str, stale: str | None = None,
                  key: str = "lease") -> Callable[[Any], str]:
    """The path of a conditional edge behind a guarded node: `free`, if it ran; `blocked`, if others
    hold what it needs; `stale` (default: `blocked`), if it has to read afresh."""

    def route(state: Any) -> str:
        status = (_get(state, key) or {}).get("status")
        if status == "blocked":
            return blocked
        return (stale or blocked) if status == "stale" else free

    return route


class _Place:
    """The place of this code in a graph."""

    def __init__(self) -> None:
        config = get_config()
        inside = config.get("configurable", {})
        thread = inside.get("thread_id")
        self.resumable = thread is not None
        self.node = str(config.get("metadata", {}).get("langgraph_node", "node"))
        #: Names the task: made by LangGraph from the checkpoint, so it is the same when resumed.
        self.task = str(inside.get("checkpoint_ns", ""))
        self.thread = f"langgraph-{thread if self.resumable else uuid.uuid4().hex[:8]}"
        self.label = f"{self.thread}-{self.node}"
        self.key = f"{thread}\n{self.task}" if self.resumable else uuid.uuid4().hex


def _place() -> _Place:
    return _Place()


class _Manner(NamedTuple):
    """How a node holds what it needs: see `guard`. `keeps`: also if it calls `interrupt()`."""

    key: str | None
    ttl: float
    wait: float
    description: str
    on_blocked: Postpones | None = None
    keeps: bool = True
    keep: float | None = None


class _Span(NamedTuple):
    """A step that continues after a node: how to find it again, and its tokens, as far as they are
    known. `begins`: with this node."""

    found: str
    known: dict[str, int] | None = None
    begins: bool = False


class _Turn:
    """One run of a guarded node. `span`: its step continues after this node."""

    def __init__(self, step: ResumableStep, place: _Place, resources: Sequence[str],
                 manner: _Manner, span: _Span | None = None) -> None:
        self._step, self._place, self._resources = step, place, list(resources)
        (self._key, self._ttl, self._wait, self._description, self._on_blocked,
         self._keeps, self._keep) = manner
        self._spans = span is not None
        self._found, self._known, self._begins = span or _Span("")
        self._run = place.task if self._spans and not self._begins else ""
        self._tokens: dict[str, int] = {}

    @property
    def held(self) -> Held:
        """Its leases, after `begin`."""
        assert self._step.held is not None
        return self._step.held

    def begin(self) -> LeaseState | None:
        """Hold all that it needs; otherwise return the lease's part of the state.

        Raises:
            StepPostponed, Stale, Refusal: see `guard`.
        """
        try:
            self._step.open(self._wait)
        except BaseException:
            self._step.close()
            raise
        try:
            self._step.begin(self._resources, ttl=self._ttl, wait=self._wait, run=self._run,
                             description=self._description, known=self._known)
            return None
        except Stale as stale:
            if self._begins:
                return None  # nothing was read under it yet
            self._step.end(leave=not self._spans and self._key is not None)
            if self._key is None:
                raise
            return self.told("stale", message=str(stale), resources=stale.resources)
        except Refusal as refusal:
            self._step.end(leave=not self._spans or self._begins)
            why = postponed(refusal, resources=self._resources, step=self._place.label,
                            on_blocked=self._on_blocked)
            if self._key is None or not isinstance(why, StepPostponed):
                raise why from refusal
            return self.told("blocked", message=refusal.message, holder=why.holder,
                             retry_after_s=why.retry_after_s,
                             redirect=refusal.facts.get("redirect"))
        except BaseException:
            self._step.end(leave=False)
            raise

    def end(self, how: Literal["done", "failed", "kept"]) -> None:
        """The node has returned, raised, or stopped to be resumed.

        Raises:
            LeaseLost: it returned, and a lease had ended before.
        """
        held = self._step.held
        tokens = self._step.fencing_tokens
        over = not self._spans and not (how == "kept" and self._keeps)
        sound = how != "done" or held is None or not held.lost
        self._step.end(leave=over, run=self._run if how == "done" and sound else "",
                       keep=self._keep if how == "kept" else None)
        self._tokens = tokens
        if how == "done" and held is not None:
            held.check()

    def told(self, status: Literal["held", "done", "blocked", "stale"], **more: Any) -> LeaseState:
        """The lease's part of the state."""
        state: dict[str, Any] = {
            "status": status, "resources": self._resources, "agent": self._step.agent,
            "fencing_tokens": self._step.fencing_tokens or self._tokens, **more}
        if self._spans and not (self._begins and status == "blocked"):
            state |= {"step": self._found, "resources": self._resources}
        return cast(LeaseState, state)

    def instead(self, refused: LeaseState) -> dict[str, LeaseState]:
        """The update of a node that did not run."""
        assert self._key is not None
        return {self._key: refused}

    def update(self, result: Any) -> Any:
        """The node's result, with the lease's part of the state."""
        if self._key is None:
            return result
        fields = {self._key: self.told("held" if self._spans else "done")}
        if result is None:
            return fields
        if isinstance(result, Mapping):
            return {**fields, **result}
        return [*(result if isinstance(result, list | tuple) else [result]), Command(update=fields)]


def _wrapped(node: Callable[..., Any], turn_of: Callable[[Any], _Turn]) -> Callable[..., Any]:
    """The node as it runs in its turn: signature, name and annotations are the node's own, for
    LangGraph reads what to give it from them."""

    @functools.wraps(node)
    def run(state: Any, *args: Any, **kwargs: Any) -> Any:
        turn = turn_of(state)
        refused = turn.begin()
        if refused is not None:
            return turn.instead(refused)
        try:
            with holding(turn.held):
                result = node(state, *args, **kwargs)
        except BaseException as bad:
            turn.end(_ending(bad))
            raise
        turn.end("done")
        return turn.update(result)

    @functools.wraps(node)
    async def run_async(state: Any, *args: Any, **kwargs: Any) -> Any:
        turn = turn_of(state)
        try:
            refused = await to_the_end(turn.begin)
        except BaseException as bad:
            if isinstance(bad, asyncio.CancelledError):  # while it was being granted, perhaps
                await to_the_end(lambda: turn.end("failed"))
            raise
        if refused is not None:
            return turn.instead(refused)
        try:
            with holding(turn.held):
                result = await node(state, *args, **kwargs)
        except BaseException as bad:
            how = _ending(bad)
            await to_the_end(lambda: turn.end(how))
            raise
        await to_the_end(lambda: turn.end("done"))
        return turn.update(result)

    return run_async if inspect.iscoroutinefunction(node) else run


def _ending(bad: BaseException) -> Literal["done", "failed", "kept"]:
    """The end of a node that raised: `interrupt()` and the like are exceptions to LangGraph."""
    if isinstance(bad, ParentCommand):
        return "done"
    return "kept" if isinstance(bad, GraphBubbleUp) else "failed"


def _get(state: Any, key: str) -> Any:
    return state.get(key) if isinstance(state, Mapping) else getattr(state, key, None)


def _lease(state: Any, key: str) -> Any:
    """The lease that `lease_node` put into the state.

    Raises:
        Refusal: UNKNOWN_LEASE.
    """
    lease_id = _get(state, key)
    if not isinstance(lease_id, Mapping) or "step" not in lease_id:
        raise Refusal(
            Code.UNKNOWN_LEASE, f"The graph's state has no lease under {key!r}. The node was not "
            "run.", next=f"Put lease_node(…, key={key!r}) before it, and route_blocked(…) between.")
    return lease_id


def _listed(resources: Resources) -> list[str]:
    return [resources] if isinstance(resources, str) else list(resources)
