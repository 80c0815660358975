"""The purpose of a lease or of a place in the queue: a field that only the coordinator fills.

A description is for people. What coord decides about a lease follows from its purpose. A purpose
with a subject has it after a colon: `commit:C-3`, `hook:Bash`.
"""

from __future__ import annotations

#: Its holder has asked for it: it ends by a release, or in time.
ASKED = "asked"
#: Granted from the queue while nobody listened: the first request in the waiter's name gets it.
OFFERED = "offered"
#: A task that was claimed needs it.
CLAIM = "claim"
#: Its holder has lost its writes too often, and is to win by it.
LOSSES = "losses"
#: Its holder changed the file by a command, and has leased it since.
ADOPTED = "adopted"
#: An edit of a file of which several hold parts, from its permission to its end.
WINDOW = "window"
#: A git command that changes the whole working tree.
TURN = "turn"
#: Begins the purpose of a lease that a hook has taken for a tool's call.
HOOK = "hook:"
#: The same of a lease that counts in all working trees, as the settings want it.
HOOK_EVERYWHERE = "hook:*"
#: Begins the purpose of a lease for a commit of regions or a proposal.
COMMIT = "commit:"
#: Begins the purpose of a lease for a verdict on a review.
VERDICT = "verdict:"


def of_hook(tool: str, *, everywhere: bool = False) -> str:
    """The purpose of what is leased for a call of this tool. `everywhere`: it counts in all working
    trees."""
    return f"{HOOK_EVERYWHERE if everywhere else HOOK}{tool[:180]}"


def is_unasked(purpose: str) -> bool:
    """Whether coord took the lease on its holder's behalf, so that it counts in its own working
    tree alone."""
    return purpose == ADOPTED or (
        purpose.startswith(HOOK) and not purpose.startswith(HOOK_EVERYWHERE))


def of_commit(name: str) -> str:
    """The purpose of what is leased for one commit."""
    return f"{COMMIT}{name}"


def of_writing(name: str) -> str:
    """The purpose of what coord holds while it writes: for a commit, or a verdict on a review."""
    return of_commit(name) if name.startswith("C-") else f"{VERDICT}{name}"


def ends_by_itself(purpose: str) -> bool:
    """Whether such a lease ends with what it was taken for, or soon, unless its holder asks
    for it."""
    return purpose in (LOSSES, OFFERED) or purpose.startswith((HOOK, COMMIT))
