"""A mutex for business code: one agent, request or job at a time works on a subject.

    with acquire_agent_lock(user_id, lock_timeout=45):
        ...                     # nobody else has this user's lock; it is renewed in the background

The module decides the name of the key that a bare id becomes. It queues nothing: a step that is to
run later goes to `postponing`.
"""

from __future__ import annotations

import contextlib
import unicodedata
import uuid
from collections.abc import Iterator
from typing import Unpack

from coordinator.client.client import Client, Held
from coordinator.frameworks.branches import branches_of, holding
from coordinator.frameworks.postponing import Postponing, postponed
from coordinator.words import resource_names
from coordinator.words.refusals import HELD, Code, Refusal

#: The prefix of a bare id's key.
PREFIX = "key:agent-lock:"


def lock_key(subject: str | int | uuid.UUID) -> str:
    """The resource that locks a subject.

    A bare id is one part of a key: `42` is `key:agent-lock:42`, and `a:b` is
    `key:agent-lock:a%3Ab`, because a colon would make it a part of `a`. An id that begins with
    `key:` is taken as it is.

    Raises:
        Refusal: INVALID: it is empty, has white space around it or invisible characters, or is
            neither text nor a number.
    """
    if isinstance(subject, bool) or not isinstance(subject, str | int | uuid.UUID):
        raise _invalid(subject, "it is neither a text, nor a whole number, nor a UUID")
    text = str(subject)
    if not text.strip():
        raise _invalid(subject, "it is empty: everybody without an id would share one lock")
    if text != text.strip():
        raise _invalid(subject, "it has white space around it, so it would be another lock than "
                       "the same id without")
    if any(unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Zl", "Zp") for sign in text):
        raise _invalid(subject, "it has signs in it that cannot be seen")
    if text.startswith("key:"):
        key = text
    else:
        key = PREFIX + text.replace("%", "%25").replace(":", "%3A").replace("*", "%2A")
    resource_names.parse(key)
    return key


@contextlib.contextmanager
def acquire_agent_lock(
    subject: str | int | uuid.UUID, lock_timeout: float = 45.0, *, client: Client | None = None,
    wait: float = 0.0, description: str = "", stall: float | None = None,
    **postponing: Unpack[Postponing],
) -> Iterator[Held]:
    """Hold the subject's lock while the body runs.

    Two threads, tasks or processes never have it at once, also with one `client`: each call is a
    holder of its own (a sub-agent of the client's agent). A call within a call, in one thread or
    task, is the same holder.

    Args:
        subject: an id, see `lock_key`.
        lock_timeout: seconds after which the lock is free again should this process die. While it
            lives, it is renewed.
        client: whose sub-agent holds it; default: this process's own.
        wait: seconds to queue if it is held.
        stall: seconds after which a body that has not called `progress()` loses the lock.
        postponing: `step`, `arguments`, `on_blocked`: see `Postponing`.

    Raises:
        StepPostponed: another agent holds it; the body was not entered.
        LeaseLost: it was lost while the body ran.
        Refusal: INVALID, DAEMON_DOWN and the like.
    """
    key = lock_key(subject)
    branches = branches_of(client)
    around = branches.around()
    branch = around or branches.take()
    sound = False
    try:
        try:
            got = branch.acquire(key, ttl=lock_timeout, wait=wait,
                                 description=description or postponing.get("step", ""),
                                 reentrant=around is not None, retry=False)
        except Refusal as refusal:
            sound = refusal.code in HELD
            raise postponed(refusal, resources=[key], **postponing) from refusal
        held = branch.hold(got, ttl=lock_timeout, stall=stall)
        with holding(held, branches, branch):
            try:
                yield held
            finally:
                held.end()
                sound = not held.lost
        held.check()
    finally:
        if around is None and sound:
            branches.give_back(branch)
        elif around is None:
            with contextlib.suppress(Refusal):
                branches.end(branch)


def _invalid(subject: object, why: str) -> Refusal:
    return Refusal(Code.INVALID, f"{subject!r} cannot be locked: {why}. Nothing was done.",
                   next="Give the id itself, or a resource: `key:NAME:ID`.")
