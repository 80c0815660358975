"""What a `coord` command exits with, by name. A refusal brings its number (`refusals.Code`);
here is what each number says, and those that no refusal has.
"""

from __future__ import annotations

from enum import IntEnum

from coordinator.words.refusals import Code


class Exit(IntEnum):
    """The numbers. A program that `coord run` or a shim stands in for may end with others of its
    own: they are handed on."""

    OK = 0
    INCOMPLETE = 1
    INVALID = 2
    HELD = 3
    NO_TASK = 4
    NO_COORDINATOR = 5
    NOT_ALLOWED = 6
    UNKNOWN = 7
    CHANGED = 8
    STORAGE = 9
    REVIEW_OPEN = 10
    VERSION_SKEW = 11
    BUG = 70
    REFUSED_FOR_GOOD = 100
    NOT_STARTED = 126
    NOT_FOUND = 127
    INTERRUPTED = 130
    PIPE_CLOSED = 141
    MERGE_FAILED = 255


MEANING: dict[Exit, str] = {
    Exit.OK: "Done.",
    Exit.INCOMPLETE: "It ran, and not all is well: tasks of a launch are left or failed, `doctor` "
                     "found a problem, or not all was trusted. Of "
                     "`merge-file`: the number of conflicts that are left, up to 127.",
    Exit.INVALID: "What was typed or asked cannot be carried out as it is; nothing was changed.",
    Exit.HELD: "Somebody else holds it, or it waits behind a circle of waiters.",
    Exit.NO_TASK: "The task is another's or not ready, or no task can start now.",
    Exit.NO_COORDINATOR: "The coordinator cannot be reached, or is ending.",
    Exit.NOT_ALLOWED: "It is not yours to do, or nobody has trusted it yet.",
    Exit.UNKNOWN: "Nothing has that name.",
    Exit.CHANGED: "It is no longer as it was when you looked: look again.",
    Exit.STORAGE: "The disk refused; nothing was changed.",
    Exit.REVIEW_OPEN: "Partial work waits there for a person's verdict.",
    Exit.VERSION_SKEW: "What lies there is of a newer coord.",
    Exit.BUG: "A bug in coord; please report it.",
    Exit.REFUSED_FOR_GOOD: "What a command of `coord state own` says to refuse a change for good.",
    Exit.NOT_STARTED: "There can be no protected session, or the file is no program: nothing was "
                      "started.",
    Exit.NOT_FOUND: "The program that was to be started is not there.",
    Exit.INTERRUPTED: "You interrupted it (Ctrl-C). A launch that you end has 1, as any that "
                      "leaves tasks.",
    Exit.PIPE_CLOSED: "Whoever read its output has gone.",
    Exit.MERGE_FAILED: "Of `merge-file`: it could not be carried out (git's own number for that).",
}


def codes(number: Exit) -> list[str]:
    """The refusals that a command exits with this number for."""
    return [code.value for code in Code if code.row.exit == number]
