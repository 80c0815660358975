"""The story: events as sentences, the story of one subject, and the log held against the state."""

from __future__ import annotations

import re
from contextlib import suppress
from difflib import get_close_matches

import msgspec

from coordinator.kernel import tasks
from coordinator.kernel.core import Actor, Service
from coordinator.kernel.event_sentences import make_event_reply, tell_event
from coordinator.kernel.leasing.typed_names import held_by_link
from coordinator.store.events import SENTENCES
from coordinator.store.ledger import View
from coordinator.store.rebuild import differences
from coordinator.store.rows import LogRow, MessageRow, ReviewRow, VersionRow
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import WHOLE, kind_of
from coordinator.words.texts import one_line

#: Other things with an id: a place in the queue (W), a change (K), a step (S), ….
_ID = re.compile(r"[A-Z]{1,2}-[0-9]{1,15}")
#: The refusal for an unknown id, by its first letter.
_UNKNOWN = {"T": Code.UNKNOWN_TASK, "R": Code.UNKNOWN_REVIEW, "M": Code.UNKNOWN_MESSAGE,
            "K": Code.UNKNOWN_CHANGE, "S": Code.UNKNOWN_STEP, "W": Code.UNKNOWN_LEASE,
            "A": Code.UNKNOWN_LEASE}
#: How many events are returned at once: on a page, and as a story.
PAGE_MAX, STORY_MAX = 5000, 2000


def events(svc: Service, view: View, actor: Actor, req: rq.Events) -> rq.EventList:
    """See `requests.Events`.

    Raises:
        Refusal: INVALID: there is no such kind. UNKNOWN_TASK.
    """
    if req.kind is not None and req.kind not in SENTENCES:
        near = [text for text in SENTENCES if req.kind and req.kind in text] or get_close_matches(
            req.kind, SENTENCES, 3)
        raise Refusal(
            Code.INVALID, f"There is no kind of event called {one_line(req.kind[:60])!r}. Nothing "
            "was looked up.", kinds=list(SENTENCES), next=(
                (f"The nearest: {', '.join(near[:8])}. " if near else "")
                + "`coord events --json` shows the kind of each."))
    limit = min(req.limit, PAGE_MAX)
    name = "events_last" if req.tail else "events_after"
    task, resource = tasks.named(view, req.task), req.resource
    if resource is not None:
        with suppress(Refusal):  # any other text is looked up as it is
            resource = view.looked.place(resource, req.cwd).resource.name
    # Nothing after the last events is written yet, so no extra one is asked for.
    rows = view.each(LogRow, name, req.after, req.agent, task, resource, req.kind,
                     limit + (not req.tail))
    items = [make_event_reply(row) for row in rows[:limit]]
    return rq.EventList(items=items, next=items[-1].seq if len(rows) > limit else None,
                        task=task, resource=resource)


def explain(svc: Service, view: View, actor: Actor, req: rq.Explain) -> rq.Story:
    """See `requests.Explain`. The subject is an agent, a resource, or an id: of a task, a review,
    an unlock request, a message, or whatever else has one.

    Raises:
        Refusal: INVALID: it is empty, or no name. OUTSIDE_REPO. UNKNOWN_TASK and the like: nothing
            has this id.
    """
    subject = req.subject.strip()
    if not subject:
        raise Refusal(Code.INVALID, "`subject` is empty: nothing was looked up.",
                      next="Name a task, a review, a request, a message, an agent or a file.")
    upper = subject.upper()
    by_id = _explain_id(view, subject, upper)
    if by_id is not None:
        return by_id
    located = view.looked.place(subject, req.cwd)
    meant = located.resource
    by_name = held_by_link(svc, view, subject, meant, req.cwd)
    subject = by_name[0].file_path if by_name else meant.name
    # A text that looks like an id and is no file is no file, whatever was held around it.
    around = _around(subject) if located.there or not _ID.fullmatch(upper) else "[]"
    rows = view.each(LogRow, "events_of_resource", subject, f'"{subject}"', STORY_MAX, around)
    link = svc.tree.relative(located.through[0]) if located.through else None
    rows = _add_events_of_link(view, rows, link) if link else rows
    if not rows and _ID.fullmatch(upper):
        raise Refusal(
            _UNKNOWN.get(upper[0], Code.UNKNOWN_REQUEST), f"Nothing is called {upper}, as far as "
            "the log reaches back.", next="`coord events` tells the last changes.")
    story = _story(subject, rows)
    _add_last_write(view, story, subject, rows)
    return story


def _add_last_write(view: View, story: rq.Story, subject: str, rows: list[LogRow]) -> None:
    """The write that was seen after all that is in the log."""
    seen = view.first(VersionRow, "version_get", subject)
    if seen is not None and seen.agent and (not rows or seen.seen_at > rows[-1].at):
        did = "wrote" if seen.hash else "deleted"
        last = f"{seen.seen_at[:19]}Z {seen.agent} {did} {one_line(subject)}"
        story.sentences = [*story.sentences, last] if rows else [last]


def _add_events_of_link(view: View, rows: list[LogRow], link: str) -> list[LogRow]:
    """Add what was done to the link that leads there."""
    of_link = view.each(LogRow, "events_of_resource", link, f'"{link}"', STORY_MAX, "[]")
    return sorted({row.seq: row for row in (*rows, *of_link)}.values(),
                  key=lambda row: row.seq)[-STORY_MAX:]


def _explain_id(view: View, subject: str, upper: str) -> rq.Story | None:
    """The story of what has this id, or of the agent of this name."""
    if view.has("task_get", upper):
        rows = view.each(LogRow, "events_of_task", upper, STORY_MAX)
        return _story(upper, rows)
    review = view.first(ReviewRow, "review_get", upper)
    if review is not None:
        rows = view.each(LogRow, "events_of_review", review.events_from, review.task_id,
                         review.agent, STORY_MAX)
        return _story(upper, list(reversed(rows)))
    if view.has("unlock_get", upper):
        return _story(upper, view.each(LogRow, "events_of_unlock", upper, STORY_MAX))
    if (message := view.first(MessageRow, "message_get", upper)) is not None:
        return _story(upper, view.each(LogRow, "events_of_thread", message.thread, STORY_MAX))
    if view.has("agent_get", subject):
        return _story(subject, view.each(LogRow, "events_of_agent", subject, STORY_MAX))
    if _ID.fullmatch(upper) and (
            rows := view.each(LogRow, "events_of_id", f'"{upper}"', STORY_MAX)):
        return _story(upper, rows)
    return None


def _around(name: str) -> str:
    """The directories that contain a path, as JSON."""
    if kind_of(name) not in ("file", "dir"):
        return "[]"
    parts = name.rstrip("/").split("/")[:-1]
    return msgspec.json.encode(
        [WHOLE, *("/".join(parts[:n + 1]) + "/" for n in range(len(parts)))]).decode()


def _story(subject: str, rows: list[LogRow]) -> rq.Story:
    sentences = [tell_event(row) for row in rows]
    return rq.Story(subject=subject,
                    sentences=sentences or [f"The log tells nothing of {subject}."])


def replay(svc: Service, view: View, actor: Actor, req: rq.Replay) -> rq.ReplayResult:
    """See `requests.Replay`."""
    applied, matches = differences(view.db)
    return rq.ReplayResult(events=applied, equal=not matches, differences=matches)
