"""Versioned values of keys, and changes that their single owner applies one by one."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from coordinator.words.requests.base import Count, Number, Place, Reply, Request, Whole
from coordinator.words.texts import Line, Name

ChangeState = Literal["queued", "given", "done", "refused", "dead", "dropped"]


class StateValue(Reply):
    key: str
    version: int  # 1, 2, …; 0: nothing was ever stored, or it is not there at this version
    value: msgspec.Raw  # JSON; null: deleted, or left out of a list
    deleted: bool
    size: int  # bytes of the value
    written_by: str | None
    written_at: str | None
    fencing_token: int | None  # of the lease under which it was written

    def decoded(self) -> Any:
        """The value as Python has it: a dict, a list, a text, …"""
        return msgspec.json.decode(self.value)


class StateList(Reply):
    items: list[StateValue]
    next: str | None = None


class StateWatched(Reply):
    changed: bool
    state: StateValue


class StateGet(Request[StateValue]):
    """The value of a key, as it is or as it was at a version. Refused UNKNOWN_KEY if nothing is
    stored there."""

    op = "state_get"
    http = ("GET", "/v1/state/{key}")
    writes = False
    key: Name
    version: Whole | None = None


class StateKeys(Request[StateList]):
    """The keys that have values, without the values; `prefix`: this key and all that continue
    it."""

    op = "state_keys"
    http = ("GET", "/v1/state")
    writes = False
    prefix: Name | None = None
    limit: Count = 200
    after: Name | None = None


class StatePut(Request[StateValue]):
    """Store a value, if the key is still at the version that you read (0: nothing is there yet);
    else VERSION_CHANGED, with the value as it is and the difference."""

    op = "state_put"
    http = ("PUT", "/v1/state/{key}")
    agent: Name
    key: Name
    value: msgspec.Raw
    version: Whole | None = None  # may be left out only by whoever holds a lease on the key
    fencing_token: Whole | None = None  # of that lease: required where you hold one


class StatePatch(Request[StateValue]):
    """Change parts of a value: a JSON merge patch (RFC 7396: null removes a field). Otherwise as
    `state_put`."""

    op = "state_patch"
    http = ("PATCH", "/v1/state/{key}")
    agent: Name
    key: Name
    patch: msgspec.Raw
    version: Whole | None = None
    fencing_token: Whole | None = None


class StateDelete(Request[StateValue]):
    """Delete a value. Its versions go on from there: a writer who has read an older one is refused
    all the same."""

    op = "state_delete"
    http = ("DELETE", "/v1/state/{key}")
    agent: Name
    key: Name
    version: Whole | None = None
    fencing_token: Whole | None = None


class StateHistory(Request[StateList]):
    """The versions of a key that are kept, the newest first, with their values."""

    op = "state_history"
    http = ("GET", "/v1/state/{key}/history")
    writes = False
    key: Name
    limit: Count = 20


class StateWatch(Request[StateWatched]):
    """Wait until a key is at a later version than `after`, at most `wait_s` seconds."""

    op = "state_watch"
    http = ("GET", "/v1/state/{key}/watch")
    writes = False
    key: Name
    after: Place = 0
    wait_s: Number = 30.0


class Change(Reply):
    change: str
    key: str
    state: str
    asked_by: str
    asked_at: str
    wanted: msgspec.Raw  # the change itself, JSON; null in lists
    note: str
    during: str | None  # the change in whose course it was asked for
    attempts: int
    attempts_max: int
    not_before: str | None
    given_to: str | None
    given_until: str | None
    why: str  # why the last attempt failed, or why it was refused
    version: int | None  # of the key, after it was applied
    closed_at: str | None


class ChangeList(Reply):
    items: list[Change]
    next: int | None = None


class ChangeGiven(Reply):
    change: Change
    state: StateValue  # of the key, as it is now


class ChangeAdd(Request[Change]):
    """Ask the owner of a key for a change. It is queued on disk before this is answered, and
    applied once, in its turn."""

    op = "change_add"
    http = ("POST", "/v1/changes")
    agent: Name
    key: Name
    wanted: msgspec.Raw
    note: Line = ""
    during: Name | None = None  # the change that you, as an owner, are at
    attempts_max: Whole = 5


class ChangeNext(Request[ChangeGiven]):
    """The owner's next change, with the key's value. An owner is whoever holds an exclusive lease
    on the key, or on one that it continues; one that was not finished is given again."""

    op = "change_next"
    http = ("POST", "/v1/changes/next")
    agent: Name
    key: Name
    wait_s: Number = 0.0
    give_s: Number = 60.0  # so many seconds it has for it; then another attempt is due


class ChangeDone(Request[Change]):
    """The owner has applied it: the value that the key has now. Written, and the change closed, in
    one transaction; a second answer is refused and changes nothing."""

    op = "change_done"
    http = ("POST", "/v1/changes/{change}/done")
    agent: Name
    change: Name
    attempt: Whole  # as it was given
    value: msgspec.Raw


class ChangeFail(Request[Change]):
    """The owner could not apply it: it is tried again later, at most `attempts_max` times, then it
    is dead. With `refuse` that is its answer, and it is not tried again."""

    op = "change_fail"
    http = ("POST", "/v1/changes/{change}/fail")
    agent: Name
    change: Name
    attempt: Whole
    why: Line
    refuse: bool = False


class ChangeShow(Request[Change]):
    """One change; with `wait_s`, wait so long until it is closed."""

    op = "change_show"
    http = ("GET", "/v1/changes/{change}")
    writes = False
    change: Name
    wait_s: Number = 0.0


class Changes(Request[ChangeList]):
    """Changes in their order; without `state`, those that are not closed."""

    op = "changes"
    http = ("GET", "/v1/changes")
    writes = False
    key: Name | None = None  # of this key, and of all that continue it
    state: Literal["open", "queued", "given", "done", "refused", "dead", "dropped", "all"] = "open"
    limit: Count = 200
    after: Place = 0
