# Made by scripts/blocking_client.py from coordinator/client/asynchronous/sharing.py; do not edit.
"""Methods of `Client`: values of keys, their changes, and signals."""

from __future__ import annotations

from typing import Any, Literal

from coordinator.client.asking import Asking, here, json
from coordinator.words import requests as rq


class Sharing(Asking):
    """Asking about values of keys, their changes, and signals."""

    def signal_add(
        self, subject: str, name: str, *, agent: str | None = None, strength: float = 1.0,
        half_life: float | None = None, note: str = "",
    ) -> rq.Signal:
        """Leave a hint on a task or a resource, or add to the one there. It fades by half with each
        half-life, orders tasks of one priority at dispatch, and never blocks anybody.

        Args:
            subject: T-3, or a resource.
            name: `priority`, `saturation`, `warning`, …, or a word of one's own.
            agent: Whom it is asked for; default: this client's own agent.
            strength: How strong it is: more than 0, at most 10.
            half_life: Seconds; default: `signals.half_life_s`.
            note: A remark for people, in a line.
        """
        return self.call(rq.SignalAdd(
            agent=agent or self.name(), subject=subject, name=name, strength=strength,
            half_life_s=half_life, note=note, cwd=here(),
        ))

    def signal_list(
        self, *, subject: str | None = None, name: str | None = None, limit: int = 200,
        after: str | None = None,
    ) -> rq.SignalList:
        """Hints with their strength now, those that are as good as gone left out; `subject`: on
        this one, and on all below it.

        Args:
            subject: What it is about: `T-3`, `task:T-3`, a review, an agent or a resource.
            name: Only hints of this name.
            limit: How many at most; 1 or more. A page's own bound holds, too.
            after: Only what comes after this: the `next` of the page before.
        """
        return self.call(rq.Signals(
            subject=subject, name=name, limit=limit, after=after, cwd=here(),
        ))

    def state_get(self, key: str, *, version: int | None = None) -> rq.StateValue:
        """The value of a key, as it is or as it was at a version. Refused UNKNOWN_KEY if nothing is
        stored there.

        Args:
            key: A semantic key, like `key:account:12345`; what continues it is part of it.
            version: As it was at this version; null: as it is.
        """
        return self.call(rq.StateGet(key=key, version=version))

    def state_list(
        self, *, prefix: str | None = None, limit: int = 200, after: str | None = None,
    ) -> rq.StateList:
        """The keys that have values, without the values; `prefix`: this key and all that continue
        it.

        Args:
            prefix: Only this key and all that continue it.
            limit: How many at most; 1 or more. A page's own bound holds, too.
            after: Only what comes after this: the `next` of the page before.
        """
        return self.call(rq.StateKeys(prefix=prefix, limit=limit, after=after))

    def state_put(
        self, key: str, value: Any, *, agent: str | None = None, version: int | None = None,
        fencing_token: int | None = None,
    ) -> rq.StateValue:
        """Store a value, if the key is still at the version that you read (0: nothing is there
        yet); else VERSION_CHANGED, with the value as it is and the difference.

        Args:
            key: A semantic key, like `key:account:12345`; what continues it is part of it.
            value: Any JSON.
            agent: Whom it is asked for; default: this client's own agent.
            version: May be left out only by whoever holds a lease on the key.
            fencing_token: Of that lease: required where you hold one.
        """
        return self.call(rq.StatePut(
            agent=agent or self.name(), key=key, value=json(value, "value"), version=version,
            fencing_token=fencing_token,
        ))

    def state_patch(
        self, key: str, patch: Any, *, agent: str | None = None, version: int | None = None,
        fencing_token: int | None = None,
    ) -> rq.StateValue:
        """Change parts of a value: a JSON merge patch (RFC 7396: null removes a field). Otherwise
        as `state_put`.

        Args:
            key: A semantic key, like `key:account:12345`; what continues it is part of it.
            patch: A JSON merge patch (RFC 7396).
            agent: Whom it is asked for; default: this client's own agent.
            version: The version that this is based on; 0: nothing is there yet.
            fencing_token: Rises with each grant and is never used again: give it to whatever you
                write to.
        """
        return self.call(rq.StatePatch(
            agent=agent or self.name(), key=key, patch=json(patch, "patch"), version=version,
            fencing_token=fencing_token,
        ))

    def state_delete(
        self, key: str, *, agent: str | None = None, version: int | None = None,
        fencing_token: int | None = None,
    ) -> rq.StateValue:
        """Delete a value. Its versions go on from there: a writer who has read an older one is
        refused all the same.

        Args:
            key: A semantic key, like `key:account:12345`; what continues it is part of it.
            agent: Whom it is asked for; default: this client's own agent.
            version: The version that this is based on; 0: nothing is there yet.
            fencing_token: Rises with each grant and is never used again: give it to whatever you
                write to.
        """
        return self.call(rq.StateDelete(
            agent=agent or self.name(), key=key, version=version, fencing_token=fencing_token,
        ))

    def state_history(self, key: str, *, limit: int = 20) -> rq.StateList:
        """The versions of a key that are kept, the newest first, with their values.

        Args:
            key: A semantic key, like `key:account:12345`; what continues it is part of it.
            limit: How many at most; 1 or more. A page's own bound holds, too.
        """
        return self.call(rq.StateHistory(key=key, limit=limit))

    def state_watch(self, key: str, *, after: int = 0, wait: float = 30.0) -> rq.StateWatched:
        """Wait until a key is at a later version than `after`, at most `wait_s` seconds.

        Args:
            key: A semantic key, like `key:account:12345`; what continues it is part of it.
            after: The version that is known; 0: none.
            wait: How long to wait for it at most (seconds); 0: not at all.
        """
        return self.call(rq.StateWatch(key=key, after=after, wait_s=wait))

    def change_add(
        self, key: str, wanted: Any, *, agent: str | None = None, note: str = "",
        during: str | None = None, attempts_max: int = 5,
    ) -> rq.Change:
        """Ask the owner of a key for a change. It is queued on disk before this is answered, and
        applied once, in its turn.

        Args:
            key: A semantic key, like `key:account:12345`; what continues it is part of it.
            wanted: What is asked for: any JSON that the owner understands.
            agent: Whom it is asked for; default: this client's own agent.
            note: A remark for people, in a line.
            during: The change that you, as an owner, are at.
            attempts_max: How often it is tried at most.
        """
        return self.call(rq.ChangeAdd(
            agent=agent or self.name(), key=key, wanted=json(wanted, "wanted"), note=note,
            during=during, attempts_max=attempts_max,
        ))

    def change_next(
        self, key: str, *, agent: str | None = None, wait: float = 0.0, give: float = 60.0,
    ) -> rq.ChangeGiven:
        """The owner's next change, with the key's value. An owner is whoever holds an exclusive
        lease on the key, or on one that it continues; one that was not finished is given again.

        Args:
            key: A semantic key, like `key:account:12345`; what continues it is part of it.
            agent: Whom it is asked for; default: this client's own agent.
            wait: How long to wait for it at most (seconds); 0: not at all.
            give: So many seconds it has for it; then another attempt is due.
        """
        return self.call(rq.ChangeNext(
            agent=agent or self.name(), key=key, wait_s=wait, give_s=give,
        ))

    def change_done(
        self, change: str, attempt: int, value: Any, *, agent: str | None = None,
    ) -> rq.Change:
        """The owner has applied it: the value that the key has now. Written, and the change closed,
        in one transaction; a second answer is refused and changes nothing.

        Args:
            change: The change's id, like `K-3`.
            attempt: As it was given.
            value: Any JSON.
            agent: Whom it is asked for; default: this client's own agent.
        """
        return self.call(rq.ChangeDone(
            agent=agent or self.name(), change=change, attempt=attempt,
            value=json(value, "value"),
        ))

    def change_fail(
        self, change: str, attempt: int, why: str, *, agent: str | None = None,
        refuse: bool = False,
    ) -> rq.Change:
        """The owner could not apply it: it is tried again later, at most `attempts_max` times, then
        it is dead. With `refuse` that is its answer, and it is not tried again.

        Args:
            change: The change's id, like `K-3`.
            attempt: Which attempt this answers, from 1, as it was given.
            why: Why, in words.
            agent: Whom it is asked for; default: this client's own agent.
            refuse: It is not to be made, whatever is tried.
        """
        return self.call(rq.ChangeFail(
            agent=agent or self.name(), change=change, attempt=attempt, why=why,
            refuse=refuse,
        ))

    def change_show(self, change: str, *, wait: float = 0.0) -> rq.Change:
        """One change; with `wait_s`, wait so long until it is closed.

        Args:
            change: The change's id, like `K-3`.
            wait: How long to wait for it at most (seconds); 0: not at all.
        """
        return self.call(rq.ChangeShow(change=change, wait_s=wait))

    def change_list(
        self, *, key: str | None = None, state: Literal["open", "queued", "given", "done",
        "refused", "dead", "dropped", "all"] = "open", limit: int = 200, after: int = 0,
    ) -> rq.ChangeList:
        """Changes in their order; without `state`, those that are not closed.

        Args:
            key: Of this key, and of all that continue it.
            state: Only changes in this state.
            limit: How many at most; 1 or more. A page's own bound holds, too.
            after: Only what comes after this: the `next` of the page before.
        """
        return self.call(rq.Changes(key=key, state=state, limit=limit, after=after))
