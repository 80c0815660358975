"""What a commit of regions breaks elsewhere, by the index of meaning, which the watcher keeps up to
date.

The module knows which files have changed since the index read them. The first question starts the
reading of the repository beside everything else. Until that is done nothing is known, and the
answer says so. The module works in threads that may wait, never in the loop or in a transaction.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from threading import Lock

from coordinator.meaning.outcomes import Outcome
from coordinator.regions.languages import has_meaning
from coordinator.source.meaning import Meaning
from coordinator.source.reader_process import NoAnswerError
from coordinator.words.refusals import Code, Refusal

#: Sentences that a refusal has.
TOLD_MAX = 5
#: So many changed files are looked at one by one; of more, all are looked through.
CHANGED_MAX = 2_000
#: So many are looked at while an agent waits; of more, all are looked through beside it.
AT_ONCE_MAX = 50
#: After a judgement that took too long for a waiting agent, none is made for others for so long
#: (s).
REST_S = 60.0


class Impact:
    """One repository's."""

    def __init__(self, meaning: Meaning) -> None:
        self._meaning = meaning
        self._lock = Lock()
        self._changed: set[str] = set()
        self._asked = self._all = False
        self._rests_until = 0.0

    def note(self, paths: Iterable[str]) -> None:
        """These files were changed, as far as is seen."""
        if self._asked:
            with self._lock:
                self._changed.update(path for path in paths if has_meaning(path))

    def note_all(self) -> None:
        """More was changed than was seen."""
        with self._lock:
            self._all = True

    def close(self) -> None:
        """End the worker, if there is one."""
        self._meaning.close()

    def judge(self, path: str, before: bytes, after: bytes, held: Collection[str],
              seconds: float | None = None) -> Outcome | str:
        """What a change of this file breaks, or why that is not known.

        Args:
            held: what the asker has leases on; not asked where `seconds` are given.
            seconds: how long that may take, where an agent waits for it and goes on without.
        """
        state = self._meaning.progress()
        if not self._asked or state.state in ("not begun", "failed", "stopped"):
            self._asked = True
            self._meaning.start()
            return "what it breaks elsewhere is not known yet: the files are being read"
        if state.state != "done" and not state.files:
            return "what it breaks elsewhere is not known yet: the files are being looked for"
        if state.state != "done":
            return (f"what it breaks elsewhere is not known yet: {state.done:,} of "
                    f"{state.files:,} files were read")
        with self._lock:
            changed, self._changed = self._changed, set()
            every, self._all = self._all, False
        try:
            if seconds is not None:
                return self._in_time(seconds, path, before, after, changed, every)
            if every or len(changed) > CHANGED_MAX:
                self._meaning.read_all()
            elif changed:
                self._meaning.update(changed)
        except NoAnswerError as bad:
            with self._lock:
                self._changed |= changed
                self._all = self._all or every
            return f"what it breaks elsewhere is not known ({bad})"
        return self._meaning.judge(path, before, after, held)

    def refuse(self, outcome: Outcome, held: Collection[str]) -> Refusal | None:
        """Why a change with this judgement may not be written; None if it may."""
        return refused(outcome, held)

    def _in_time(self, seconds: float, path: str, before: bytes, after: bytes,
                 changed: set[str], every: bool) -> Outcome | str:
        """
        Raises:
            NoAnswerError: it cannot be told so soon.
        """
        if every or len(changed) > AT_ONCE_MAX:
            self._meaning.start()  # beside: it looks through all, also at these
            return "what it breaks elsewhere is not known yet: much has changed"
        if time.monotonic() < self._rests_until:
            raise NoAnswerError("it took too long a moment ago")
        try:
            return self._meaning.judge_within(seconds, path, before, after, changed)
        except NoAnswerError:
            self._rests_until = time.monotonic() + REST_S
            raise


def refused(outcome: Outcome, held: Collection[str]) -> Refusal | None:
    """Why this may not be written; None if it may. The holder of the whole file decides itself
    about dynamic uses. The places that break for certain it has to lease like anybody else."""
    escalates = outcome.outcome == "ESCALATION_REQUIRED" and outcome.path not in held
    if not escalates and not outcome.required:
        return None
    if not escalates:
        broken = [breakage for breakage in outcome.breaks if breakage.resource in outcome.required]
        text = "; ".join(f"{breakage.path}:{breakage.line}: {breakage.why}" for breakage
                         in broken[:TOLD_MAX])
        more = f"; and {len(broken) - TOLD_MAX} more" if len(broken) > TOLD_MAX else ""
        names = ", ".join(outcome.required[:TOLD_MAX])
        return Refusal(
            Code.REQUIRE_ADDITIONAL_LOCKS, f"With this text {text}{more}. Nothing was written.",
            next=f"Lease {names}, too, make them fit, and commit all in one.",
            required=outcome.required, breaks=[
                {"resource": breakage.resource, "line": breakage.line, "why": breakage.why}
                for breakage in broken],
        )
    why = [f"{unseen.path}:{unseen.line}: {unseen.why}" for unseen in outcome.unseen[:TOLD_MAX]]
    return Refusal(
        Code.ESCALATION_REQUIRED,
        f"Nobody can tell whom this text breaks: {'; '.join([*why, outcome.note]).strip('; ')}. "
        "Nothing was written.",
        next=f"Look there. Then lease {outcome.path} as a whole, and commit it; or ask a person.",
        path=outcome.path,
        unseen=[{"resource": unseen.resource, "line": unseen.line, "why": unseen.why}
                for unseen in outcome.unseen],
    )
