"""What a commit of regions breaks elsewhere: asked of the index of meaning, kept up by the watcher.

Owns which files have changed since the index read them. The first question has the repository's
files read, beside everything else; until that is done nothing is known, and the answer says so.
Works in threads that may wait: never in the loop's, never in a transaction.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from threading import Lock

from coordinator.meaning.outcomes import Outcome
from coordinator.meaning.process import Meaning, MeaningError
from coordinator.words.refusals import Code, Refusal

#: The files whose meaning is known.
SUFFIX = ".py"
#: Sentences that a refusal has.
TOLD_MAX = 5
#: So many changed files are looked at one by one; of more, all are looked through.
CHANGED_MAX = 2_000


#: A function up to its body: comments and decorators of a line each, a head of one line.
_HEAD = re.compile(rb"(?:[ \t]*(?:[#@][^\n]*)?\n)*[ \t]*(?:async[ \t]+)?def[ \t][^\n]*:[ \t]*\r?\n")
#: What a body tells others.
_TOLD = re.compile(rb"\b(?:self|cls)\.\w+[^\n]*=|\bglobal\b|\bnonlocal\b|\byield\b|\bawait\b|"
                   rb"\bsetattr\b|\bdef\b|\bclass\b|\bimport\b")


class Impact:
    """One repository's."""

    def __init__(self, meaning: Meaning) -> None:
        self._meaning = meaning
        self._lock = Lock()
        self._changed: set[str] = set()
        self._asked = self._all = False

    def note(self, paths: Iterable[str]) -> None:
        """These files were changed, as far as is seen."""
        if self._asked:
            with self._lock:
                self._changed.update(path for path in paths if path.endswith(SUFFIX))

    def note_all(self) -> None:
        """More was changed than was seen."""
        with self._lock:
            self._all = True

    def close(self) -> None:
        """End the worker, if there is one."""
        self._meaning.close()

    def judge(self, path: str, before: bytes, after: bytes,
              held: Collection[str]) -> Outcome | str:
        """What a change of this file breaks; or why that is not known."""
        state = self._meaning.progress()
        if not self._asked or state.state in ("not begun", "failed", "stopped"):
            self._asked = True
            self._meaning.start()
            return "what it breaks elsewhere is not known yet: the files are being read"
        if state.state != "done":
            return (f"what it breaks elsewhere is not known yet: {state.done:,} of "
                    f"{state.files:,} files were read")
        with self._lock:
            changed, self._changed = self._changed, set()
            every, self._all = self._all, False
        try:
            if every or len(changed) > CHANGED_MAX:
                self._meaning.read_all()
            elif changed:
                self._meaning.update(changed)
        except MeaningError as bad:
            with self._lock:
                self._changed |= changed
                self._all = self._all or every
            return f"what it breaks elsewhere is not known ({bad})"
        return self._meaning.judge(path, before, after, held)


def is_body_alone(before: bytes, after: bytes) -> bool:
    """Whether all that differs is within one function's body, where nobody else sees it: the head
    is the same, and so is what a body tells others (attributes, globals, whether it yields). What
    is not plain is not."""
    one, two = _HEAD.match(before), _HEAD.match(after)
    return (one is not None and two is not None and one[0] == two[0]
            and _TOLD.findall(before) == _TOLD.findall(after))


def refused(outcome: Outcome, held: Collection[str]) -> Refusal | None:
    """Why this may not be written; None if it may. Who holds the whole file decides by itself what
    cannot be seen through."""
    if outcome.outcome == "ALLOW":
        return None
    if outcome.outcome == "REQUIRE_ADDITIONAL_LOCKS":
        broken = [one for one in outcome.breaks if one.resource in outcome.required]
        said = "; ".join(f"{one.path}:{one.line}: {one.why}" for one in broken[:TOLD_MAX])
        more = f"; and {len(broken) - TOLD_MAX} more" if len(broken) > TOLD_MAX else ""
        names = ", ".join(outcome.required[:TOLD_MAX])
        return Refusal(
            Code.REQUIRE_ADDITIONAL_LOCKS, f"With this text {said}{more}. Nothing was written.",
            next=f"Lease {names}, too, make them fit, and commit all in one.",
            required=outcome.required, breaks=[
                {"resource": one.resource, "line": one.line, "why": one.why} for one in broken],
        )
    if outcome.path in held:
        return None
    why = [f"{one.path}:{one.line}: {one.why}" for one in outcome.unseen[:TOLD_MAX]]
    return Refusal(
        Code.ESCALATION_REQUIRED,
        f"Nobody can tell whom this text breaks: {'; '.join([*why, outcome.note]).strip('; ')}. "
        "Nothing was written.",
        next=f"Look there. Then lease {outcome.path} as a whole, and commit it; or ask a person.",
        path=outcome.path,
        unseen=[{"resource": one.resource, "line": one.line, "why": one.why}
                for one in outcome.unseen],
    )
