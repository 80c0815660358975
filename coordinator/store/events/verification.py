"""What tasks have finished, and the runs of a command that verify it."""

from __future__ import annotations

from coordinator.store.events.base import Event


class WorkFinished(Event, tag="work_finished"):
    """A task was done, and this is what it had changed: path, content (None: deleted). Of what
    landed: the commits that it is between. `head`: what was checked out then."""

    n: int
    task: str
    agent: str
    files: list[tuple[str, str | None]]
    head: str | None = None
    before: str | None = None
    after: str | None = None


class VerificationBegun(Event, tag="verification_begun"):
    """`upto`: the last finished work that it is about."""

    verification: str
    n: int
    by: str
    command: str
    upto: int


class VerificationEnded(Event, tag="verification_ended"):
    """What it came to. `works`: number, state, the task whose repair it waits for. `base`: the tree
    that the command passes on now, as a commit (None: as before), with `head` and `since`.
    `task`: the first of `tasks`, which broke it."""

    verification: str
    n: int
    outcome: str
    runs: int
    works: list[tuple[int, str, str | None]] = []
    tasks: list[str] = []
    task: str | None = None
    said: str = ""
    tail: str = ""
    base: str | None = None
    head: str = ""
    since: int = 0


class VerifiedFrom(Event, tag="verified_from"):
    """Verifications begin with this commit; what was finished up to `since` is in it. Empty:
    nothing is verified any more."""

    base: str
    since: int
