"""The life of a task: which verb leads from which state to which, and cycles.

`TRANSITIONS` is the whole state machine; the diagram in the documentation is drawn from it.
Pure: facts in, a decision out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

#: (state, verb) -> state afterwards. Every other pair is refused: BAD_TRANSITION.
TRANSITIONS: dict[tuple[str, str], str] = {
    ("pending", "unblock"): "ready",
    ("pending", "block"): "blocked",
    ("blocked", "wait"): "pending",
    ("ready", "wait"): "pending",
    ("blocked", "unblock"): "ready",
    ("ready", "claim"): "claimed",
    ("ready", "block"): "blocked",
    ("claimed", "done"): "done",
    ("claimed", "fail"): "failed",
    ("claimed", "exhaust"): "dead",
    ("claimed", "defer"): "ready",
    ("claimed", "hand"): "claimed",
    ("claimed", "flag"): "review",
    ("failed", "offer"): "ready",
    ("review", "accept"): "done",
    ("review", "restart"): "ready",
    ("done", "reopen"): "review",
    ("done", "redo"): "ready",  # its finished work breaks the verifying command
    ("done", "exhaust"): "dead",  # the same, and it has no attempt left
    ("ready", "reopen"): "review",
    ("dead", "retry"): "ready",
    ("failed", "retry"): "ready",
    ("cancelled", "retry"): "ready",
    ("cancelled", "reopen"): "review",
    ("pending", "cancel"): "cancelled",
    ("ready", "cancel"): "cancelled",
    ("blocked", "cancel"): "cancelled",
    ("failed", "cancel"): "cancelled",
    ("review", "cancel"): "cancelled",
    ("claimed", "cancel"): "cancelled",
    ("dead", "cancel"): "cancelled",
}

#: States in which a task will never be done unless a person acts.
ENDED_BADLY = frozenset({"dead", "cancelled", "blocked"})
#: States of finished business.
CLOSED = frozenset({"done", "dead", "cancelled"})


#: States in which a task's words may not be changed: an agent works on it, or it is history.
SETTLED = frozenset({"claimed", "done", "cancelled"})


def may(state: str) -> list[str]:
    """The actions of a person that a task in this state allows."""
    return [verb for verb, lawful in (
        ("edit", state not in SETTLED),
        ("retry", (state, "retry") in TRANSITIONS),
        ("cancel", (state, "cancel") in TRANSITIONS),
    ) if lawful]


def after(state: str, verb: str) -> str | None:
    """The state that `verb` leads to, or None when it is not allowed."""
    return TRANSITIONS.get((state, verb))


def told_state(state: str) -> str:
    """A state as it goes after "is"."""
    return "in review" if state == "review" else state


def states_before(verb: str) -> list[str]:
    """The states that allow `verb`, sorted."""
    return sorted(state for state, name in TRANSITIONS if name == verb)


def state_for(dependencies: Iterable[str]) -> str:
    """The state of an unclaimed task whose dependencies are in these states."""
    states = list(dependencies)
    if any(state in ENDED_BADLY for state in states):
        return "blocked"
    return "ready" if all(state == "done" for state in states) else "pending"


def cycle(edges: Mapping[str, Iterable[str]]) -> list[str] | None:
    """A cycle among `edges` (task -> tasks it comes after), first task repeated at the end.

    Iterative depth-first search: a chain of 100,000 tasks does not exhaust the stack.
    """
    done: set[str] = set()
    for start in edges:
        if start in done:
            continue
        path: list[str] = [start]
        on_path = {start}
        stack = [iter(edges.get(start, ()))]
        while stack:
            step = next(stack[-1], None)
            if step is None:
                stack.pop()
                last = path.pop()
                on_path.discard(last)
                done.add(last)
            elif step in on_path:
                return [*path[path.index(step) :], step]
            elif step not in done:
                path.append(step)
                on_path.add(step)
                stack.append(iter(edges.get(step, ())))
    return None
