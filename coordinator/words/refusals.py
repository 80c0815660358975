"""Every lawful no, in one catalogue: code, HTTP status, exit code, retryable, meaning, next step.

A refusal changes nothing (save its own event and place in line). Its facts travel as data, for the
reader is often a program; its sentence says what happened, what was left unharmed, and what to
type next. Documentation is generated from `Code`. An *error* (a bug, a broken disk) is not a
refusal; the two that a client can meet are listed last.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Any, NamedTuple, Self


class Row(NamedTuple):
    """One line of the catalogue."""

    http: int
    exit: int
    retryable: bool
    meaning: str
    next: str


class Code(StrEnum):
    """Refusal codes, in order of precedence: a request that earns several gets the first."""

    row: Row

    def __new__(cls, code: str, row: Row) -> Self:
        """A code, with its line of the catalogue."""
        member = str.__new__(cls, code)
        member._value_ = code
        member.row = row
        return member

    INVALID = "INVALID", Row(
        400, 2, False, "The request is malformed; nothing was done.",
        "`coord --help` lists the commands; `--help` after one tells what it takes.",
    )
    UNAUTHORIZED = "UNAUTHORIZED", Row(
        401, 6, False, "The token is missing, unknown, or belongs to another agent.",
        "Act with the token that the agent got when it registered.",
    )
    FOREIGN = "FOREIGN", Row(
        403, 6, False, "State, a socket or a daemon that is not this user's own (another user's, a "
        "link, out of a clone or an archive): nothing of it is used.",
        "Look at what the message names; `coord init --adopt` takes your own state over.",
    )
    UNTRUSTED = "UNTRUSTED", Row(
        403, 6, False, "A profile or setting that lies in the repository and that no person has "
        "trusted: it is not used.", "Let a person look at it: `coord trust`.",
    )
    OUTSIDE_REPO = "OUTSIDE_REPO", Row(
        400, 2, False, "The path, once resolved, is not inside this repository.",
        "Name a path below the repository root.",
    )
    LIMIT = "LIMIT", Row(
        413, 2, False, "A size, count or wait is over its limit; nothing was done.",
        "Ask for less at once; `coord doctor` lists the limits in force.",
    )
    UNKNOWN_AGENT = "UNKNOWN_AGENT", Row(
        404, 7, False, "No such agent is registered, or it has left.", "`coord agents` lists them.",
    )
    UNKNOWN_TASK = "UNKNOWN_TASK", Row(
        404, 7, False, "No task has this id.", "`coord task list` shows the backlog.",
    )
    UNKNOWN_LEASE = "UNKNOWN_LEASE", Row(
        404, 7, False, "No live lease matches.", "`coord locks` lists what is held.",
    )
    UNKNOWN_REVIEW = "UNKNOWN_REVIEW", Row(
        404, 7, False, "No review has this id.", "`coord review list` shows them.",
    )
    UNKNOWN_REQUEST = "UNKNOWN_REQUEST", Row(
        404, 7, False, "No unlock request has this id.", "`coord request list` shows them.",
    )
    UNKNOWN_KEY = "UNKNOWN_KEY", Row(
        404, 7, False, "No value is stored under this key, or not at this version.",
        "`coord state list` shows the keys.",
    )
    UNKNOWN_CHANGE = "UNKNOWN_CHANGE", Row(
        404, 7, False, "No change of a key has this id; a closed one is forgotten after a day.",
        "`coord state changes` shows them.",
    )
    UNKNOWN_STEP = "UNKNOWN_STEP", Row(
        404, 7, False, "No step has this id; one that was done is forgotten after a day.",
        "`coord dead list` shows what was given up.",
    )
    UNKNOWN_MESSAGE = "UNKNOWN_MESSAGE", Row(
        404, 7, False, "No message has this id; an old one is forgotten.",
        "`coord messages` lists them.",
    )
    REGION_UNKNOWN = "REGION_UNKNOWN", Row(
        404, 7, False, "The file is there and has no region of this name.",
        "`coord regions FILE` lists those it has.",
    )
    NAME_TAKEN = "NAME_TAKEN", Row(
        409, 8, False, "A live session has this name; it keeps it, and all that it holds.",
        "Register under another name, or with `unique`; the session's own token speaks for it.",
    )
    UNGUARDED = "UNGUARDED", Row(
        409, 8, True, "The hooks of this agent's session are gone: it could write without being "
        "asked, so nothing new is leased to it. What it holds stays its own.",
        "Put its hooks back with `coord init`, then repeat; `coord doctor` names what is missing.",
    )
    NOT_HOLDER = "NOT_HOLDER", Row(
        403, 6, False, "The lease or task belongs to another agent; it was left as it is.",
        "Ask its holder, or wait; `coord locks` and `coord task list` tell who has what.",
    )
    STALE_TOKEN = "STALE_TOKEN", Row(
        409, 8, False, "The lease has ended, so its token no longer gives any right.",
        "Acquire again, and read the file afresh before writing.",
    )
    REVIEW_OPEN = "REVIEW_OPEN", Row(
        409, 10, True, "Partial work on this resource waits for a human's verdict.",
        "`coord review list` names it; a person decides.",
    )
    LOCKED = "LOCKED", Row(
        423, 3, True, "Another holder has a live lease on an overlapping resource.",
        "Take the task that the answer names, or wait for the grant.",
    )
    DEADLOCK = "DEADLOCK", Row(
        423, 3, False, "Agents wait for each other in a circle, and this one was chosen to give "
        "way. What it holds is still its own, and it stands in line as before.",
        "Give back what the others wait for, with the command that the answer names.",
    )
    TASK_TAKEN = "TASK_TAKEN", Row(
        409, 4, True, "Another agent has claimed this task.", "`coord task claim` takes another.",
    )
    TASK_NOT_READY = "TASK_NOT_READY", Row(
        409, 4, True, "The task waits for its dependencies, its backoff or a review.",
        "`coord task list` says for what.",
    )
    BAD_TRANSITION = "BAD_TRANSITION", Row(
        409, 8, False, "The task or review is in a state that does not allow this.",
        "`coord task list` and `coord review list --state all` tell how things are.",
    )
    REQUEST_CLOSED = "REQUEST_CLOSED", Row(
        409, 8, False, "The unlock request was answered or withdrawn already; it stays so.",
        "`coord request list` shows what waits for an answer.",
    )
    NOTHING_TO_DO = "NOTHING_TO_DO", Row(
        404, 4, True, "No task can be started by this agent now.",
        "Wait and ask again; `coord status` shows what is in the way.",
    )
    VERSION_CHANGED = "VERSION_CHANGED", Row(
        409, 8, True, "The file was changed since the content that this request is based on.",
        "Read it afresh and decide again.",
    )
    REGION_CHANGED = "REGION_CHANGED", Row(
        409, 8, True, "The region was changed, or has gone, since the text that this is based on.",
        "Make the change on the fresh text that the answer has.",
    )
    PARSE_INVALID = "PARSE_INVALID", Row(
        422, 2, False, "With this text the file could not be read in its language; it was not "
        "written.", "Correct the text.",
    )
    OUT_OF_SCOPE_EDIT = "OUT_OF_SCOPE_EDIT", Row(
        422, 2, False, "The text changes more than the region that it was given for; it was not "
        "written.", "Lease what else it changes, or keep to the region.",
    )
    REQUIRE_ADDITIONAL_LOCKS = "REQUIRE_ADDITIONAL_LOCKS", Row(
        409, 8, False, "The text breaks regions that use what it changes, and that the agent does "
        "not hold; it was not written.", "Lease those, too, and commit all in one.",
    )
    ESCALATION_REQUIRED = "ESCALATION_REQUIRED", Row(
        409, 8, False, "Nobody can tell whom the text breaks, for what uses it cannot be seen "
        "through; it was not written.", "Lease the whole file, or ask a person.",
    )
    CONFLICT = "CONFLICT", Row(
        409, 8, False, "The idempotency key was used before, for another request or one whose "
        "answer is not kept; nothing was done.", "Make up a new key for each request.",
    )
    VERIFY_FAILED = "VERIFY_FAILED", Row(
        422, 2, False, "A person's own command failed on what was about to land; nothing of it "
        "landed.", "Correct what it tells of; then it lands.",
    )
    SHUTTING_DOWN = "SHUTTING_DOWN", Row(
        503, 5, True, "The coordinator ends: what had not begun was not done; who waited in line "
        "keeps the place.",
        "Try again in a moment; the next command starts it.",
    )
    DAEMON_DOWN = "DAEMON_DOWN", Row(
        503, 5, True, "The coordinator cannot be reached.", "`coord up`, or `coord doctor`.",
    )
    SANDBOXED = "SANDBOXED", Row(
        403, 5, False, "A sandbox around this process keeps it from the coordinator, which may run "
        "well; nothing was asked.", "Run it outside of the sandbox, or go on without an answer.",
    )
    VERSION_SKEW = "VERSION_SKEW", Row(
        409, 11, False, "The database or the daemon is of a newer version than this program.",
        "Install the newer coord; the database was left untouched.",
    )
    STORAGE = "STORAGE", Row(
        507, 9, True, "The disk refused (full, read-only, no permission, or damaged); "
        "nothing was changed.", "Make room or restore access, then repeat; `coord doctor` checks.",
    )
    INTERNAL = "INTERNAL", Row(
        500, 70, False, "A bug in coord; the request was rolled back whole.",
        "Please report it with the last lines of `.coord/daemon.log`.",
    )


#: Somebody else has it, so the asker may be queued.
HELD = frozenset({Code.LOCKED, Code.DEADLOCK})


class Refusal(Exception):
    """A lawful no: a `Code`, a sentence, and facts as data.

    `next` is the one command or act that helps; without it, the catalogue's own.
    """

    def __init__(
        self,
        code: Code,
        message: str,
        *,
        next: str | None = None,  # noqa: A002 - the wire's own word
        **facts: Any,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.next = next or code.row.next
        self.facts = facts

    def __reduce__(self) -> tuple[Any, ...]:
        return Refusal.from_body, (self.body(),)

    def body(self) -> dict[str, Any]:
        """The wire form: `{"code", "message", "retryable", "next", …facts}`."""
        return {
            "code": self.code.value,
            "message": self.message,
            "retryable": self.retryable,
            "next": self.next,
            **self.facts,
        }

    @property
    def retryable(self) -> bool:
        """Whether the same request may pass later, as it is."""
        return self.code.row.retryable

    @property
    def exit_code(self) -> int:
        """The exit code of a command that met this refusal."""
        return self.code.row.exit

    @classmethod
    def from_body(cls, body: dict[str, Any]) -> Refusal:
        """The refusal that `body()` came from; a code unknown here (a newer daemon) is INTERNAL."""
        own = ("code", "message", "retryable", "next")
        facts = {k: v for k, v in body.items() if k not in own}
        code = Code.__members__.get(str(body.get("code")), Code.INTERNAL)
        return cls(code, str(body.get("message", "")), next=body.get("next"), **facts)


class Exit(IntEnum):
    """The exit codes. A program behind `coord run` or a shim may end with codes of its own, which
    are passed on."""

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
