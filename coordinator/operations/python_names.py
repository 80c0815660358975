"""What each operation is called in the Python client: its own name, save where a list has a bare
plural for a name and its siblings have not (`task_add`, `task_show`, so `task_list`).

And which fields may be given without their names. Data, for the generator of the client's methods
(generators/client_methods.py) and for the documents.
"""

from __future__ import annotations

#: Operation -> method, where they differ.
METHODS = {
    "tasks": "task_list", "reviews": "review_list", "requests": "request_list",
    "signals": "signal_list", "changes": "change_list", "steps": "step_list",
    "dead": "dead_list", "state_keys": "state_list", "messages": "message_list",
    "verifications": "verification_list", "commit_region": "commit_regions",
}
#: Methods that are written by hand (coordinator/client): what they do is more than to ask.
BY_HAND = frozenset({"register"})
#: Operation -> optional fields that may be given in this order, without their names.
BY_PLACE: dict[str, tuple[str, ...]] = {
    "task_import": ("format",), "task_claim": ("task",),
    "task_done": ("result",), "task_fail": ("reason", "blocked"), "heartbeat": ("progress", "ack"),
}
#: Operations whose resources are their positional arguments.
OF_RESOURCES = frozenset({"acquire", "release", "renew"})
#: Short forms: another name for a method.
SHORT = {"claim": "task_claim", "done": "task_done", "fail": "task_fail"}


def method_of(op: str) -> str:
    """The method's name."""
    return METHODS.get(op, op)
