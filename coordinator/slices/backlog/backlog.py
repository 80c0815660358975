"""The backlog as a whole: adding one or many tasks, and exporting them as text.

A text may contain tasks that an earlier version of it added. They are recognised by their titles.
So a file with a new line can be imported again, and what is done stays done.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from coordinator.kernel import tasks
from coordinator.kernel.core import Actor, Service
from coordinator.kernel.leasing.links import with_links
from coordinator.kernel.leasing.located import Wanted, once_wanted
from coordinator.looking.facts import Place
from coordinator.rules import backlog as rule
from coordinator.rules import pools as pool_rule
from coordinator.slices.backlog import text_formats
from coordinator.slices.backlog.events import TaskAdded
from coordinator.slices.backlog.task_fields import (
    ATTEMPTS_MAX,
    PRIORITY_MAX,
    PROMPT_CHARS_MAX,
    TITLE_CHARS_MAX,
    Item,
)
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import TaskRow
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import READ, Located
from coordinator.words.texts import quoted

#: Sentences of one kind.
TOLD_MAX = 5
_OVER = ("done", "cancelled")


def among(view: View, items: Sequence[Item], names: Sequence[str]) -> dict[int, TaskRow]:
    """The task that each item of the text already is, by the item's position. Of several tasks with
    one title the first item is the first task. A finished task is another task if its prompt
    differs."""
    rows = {task.task_id: task for task in view.each_of(TaskRow, "task_get", dict.fromkeys(names))}
    by_title: defaultdict[str, list[TaskRow]] = defaultdict(list)
    for row in rows.values():
        by_title[_plain(row.title)].append(row)
    result: dict[int, TaskRow] = {}
    for n, item in enumerate(items):
        left = by_title[_plain(item.title)]
        same = next((row for row in left if row.state not in _OVER
                     or item.prompt.strip() == row.prompt.strip()), None)
        if same is not None:
            left.remove(same)
            result[n] = same
    return result


def remarks(view: View, items: Sequence[Item], names: Sequence[str],
            matches: dict[int, TaskRow]) -> list[str]:
    """Remarks for the author of the changed text: what in it does not count, and what is missing
    from it."""
    other = [row.task_id for n, row in matches.items()
             if row.state not in _OVER and _differs(view, items[n], row)]
    task_ids = {row.task_id for row in matches.values()}
    unnamed = (name for name in dict.fromkeys(names) if name not in task_ids)
    gone = [row for row in view.each_of(TaskRow, "task_get", unnamed) if row.state not in _OVER]
    sentences = [f"{name} stays as it was added, and the text says otherwise now: `coord task edit "
            f"{name}`." for name in other[:TOLD_MAX]]
    sentences += [f"{row.task_id} ({quoted(row.title, 40)}) is not in the text any more, and "
                  "stays in "
                  f"the backlog: `coord task cancel {row.task_id}` takes it out."
                  for row in gone[:TOLD_MAX]]
    left = max(0, len(other) - TOLD_MAX) + max(0, len(gone) - TOLD_MAX)
    return [*sentences, f"And {left} more like these."] if left else sentences


def _plain(title: str) -> str:
    return " ".join(title.split())


def _differs(view: View, item: Item, row: TaskRow) -> bool:
    shown = tasks.reply(view, row)
    return item.prompt.strip() != row.prompt.strip() or {
        resource.removeprefix("./") for resource in item.resources} != set(shown.resources) or (
        set(item.needs) != set(shown.needs))


NOTHING = "Nothing was added."
_LINE_ENDS = re.compile(r"\s*[\n\r\v\f\x85\u2028\u2029]\s*")


@dataclass(slots=True)
class Draft:
    """A task that is about to be added. `after` names tasks by id, or by `ref` within a batch."""

    title: str
    prompt: str = ""
    resources: list[str] = field(default_factory=list)
    priority: int = 0
    after: list[str] = field(default_factory=list)
    attempts_max: int | None = None
    needs: list[str] = field(default_factory=list)
    ref: str | None = None
    where: str = ""
    """Which task of a file it is, for refusals; empty: it came alone."""


def add(svc: Service, tx: Tx, actor: Actor, req: rq.TaskAdd) -> rq.Task:
    """See `requests.TaskAdd`."""
    draft = Draft(
        title=req.title, prompt=req.prompt, resources=req.resources, priority=req.priority,
        after=req.after, attempts_max=req.attempts_max, needs=req.needs,
    )
    return _add_all(svc, tx, [draft], req.cwd)[0]


def import_text(svc: Service, tx: Tx, actor: Actor, req: rq.TaskImport) -> rq.Imported:
    """See `requests.TaskImport`."""
    read = text_formats.read(req.text.removeprefix("\ufeff"),
                             req.format or text_formats.format_of(req.name, req.text))
    known = among(tx, read.items, req.known)
    read.warnings.extend(remarks(tx, read.items, req.known, known))
    refs = {str(read.items[n].id): row.task_id for n, row in known.items() if read.items[n].id}
    drafts = _list_drafts(read.items, known)
    left = sum(item.done for n, item in enumerate(read.items) if n not in known)
    if left:
        read.warnings.append("One task is marked done, and was not added." if left == 1 else
                             f"{left} tasks are marked done, and were not added.")
    return rq.Imported(
        items=_add_all(svc, tx, drafts, None, refs), warnings=read.warnings,
        known=[tasks.reply(tx, row) for row in known.values()])


def export_text(svc: Service, view: View, actor: Actor, req: rq.TaskExport) -> rq.Exported:
    """See `requests.TaskExport`."""
    items = []
    for task in view.each(TaskRow, "tasks_list", 0, 2**31, 0):
        shown = tasks.reply(view, task)
        items.append(Item(
            id=task.task_id, title=task.title, prompt=task.prompt, resources=shown.resources,
            needs=shown.needs, priority=task.priority, after=shown.after,
            attempts_max=task.attempts_max,
            state=task.state, done=task.state == "done",
        ))
    return rq.Exported(text=text_formats.write(items, req.format))


def _list_drafts(items: Sequence[Item], there: Collection[int]) -> list[Draft]:
    """The tasks that are to be added; `there`: which of them are there already."""
    closed = {item.id for item in items if item.done}
    return [
        Draft(
            title=item.title, prompt=item.prompt, resources=item.resources, needs=item.needs,
            priority=item.priority, after=[name for name in item.after if name not in closed],
            attempts_max=item.attempts_max, ref=item.id,
            where=f"task {n} ({quoted(item.title, 40)})",
        )
        for n, item in enumerate(items, 1) if not item.done and n - 1 not in there
    ]


def _add_all(svc: Service, tx: Tx, drafts: Sequence[Draft], cwd: str | None,
             known: Mapping[str, str] | None = None) -> list[rq.Task]:
    """Check all, then add all, so that nothing is half done. `known`: ids that stand for tasks that
    exist already."""
    limits = svc.settings.backlog
    room = limits.tasks_max - int(tx.value("task_count") or 0)
    if len(drafts) > room:
        raise Refusal(
            Code.LIMIT, f"With {len(drafts)} more there would be over {limits.tasks_max} tasks "
            "(backlog.tasks_max). Nothing was added.",
        )
    tx.looked.require(place for draft in drafts for place in places(draft, cwd))
    first = tx.last_number("task") + 1
    ids = _number(drafts, first, known or {})
    events = [
        _draft_event(svc, tx, draft, f"T-{first + i}", first + i, ids, cwd)
        for i, draft in enumerate(drafts)
    ]
    _check_cycle(drafts, events)
    new = {e.task for e in events}
    for event in events:
        states = ["pending" if name in new else tasks.find(tx, name).state for name in event.after]
        event.state = rule.state_for(states)
    for event in events:
        assert tx.number("task") == event.n
        tx.record(event)
    tx.effects.offers = True
    return [tasks.reply(tx, tasks.find(tx, e.task)) for e in events]


def _number(drafts: Sequence[Draft], first: int, given: Mapping[str, str]) -> dict[str, str]:
    """The task that each id in `after` means."""
    names = [draft.ref for draft in drafts if draft.ref]
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise Refusal(Code.INVALID, f"The id {twice!r} is used twice; nothing was added.")
    ids = {**given, **{d.ref: f"T-{first + i}" for i, d in enumerate(drafts) if d.ref}}
    for i, draft in enumerate(drafts):
        if draft.ref is None and len(drafts) > 1:  # (of one alone, that is a task to come)
            ids[f"T-{first + i}"] = f"T-{first + i}"
    return ids


def _check_cycle(drafts: Sequence[Draft], events: Sequence[TaskAdded]) -> None:
    """Whether no new tasks wait for each other."""
    circle = rule.cycle({e.task: e.after for e in events})
    if circle:
        refs = {event.task: draft.ref for event, draft in zip(events, drafts, strict=True)}
        named = " -> ".join(refs.get(name) or name for name in circle)
        raise Refusal(
            Code.INVALID, f"These tasks wait for each other: {named}. Nothing was added.",
            next="Remove one of these `after`.", cycle=circle,
        )


def _draft_event(
    svc: Service, tx: Tx, draft: Draft, task_id: str, n: int, ids: dict[str, str], cwd: str | None
) -> TaskAdded:
    after = []
    try:
        title, attempts, resources = checked(svc, tx, draft, cwd, NOTHING)
        for name in draft.after:
            after.append(ids[name] if name in ids else tasks.find(tx, name).task_id)
    except Refusal as refusal:
        if not draft.where:
            raise
        text = refusal.message.removesuffix(" Nothing was done.").removesuffix(f" {NOTHING}")
        step = refusal.next
        if refusal.code is Code.UNKNOWN_TASK:
            step = ("Give the task that comes before an `id` in this file, and name that in "
                    "`after`; or name one of `coord task list`.")
        raise Refusal(refusal.code, f"{draft.where}: {text} {NOTHING}", next=step,
                      **refusal.facts) from None
    return TaskAdded(
        task=task_id, n=n, title=title, prompt=draft.prompt, priority=draft.priority,
        state="pending", attempts_max=attempts, resources=resources,
        after=list(dict.fromkeys(after)),
    )


def checked(
    svc: Service, tx: Tx, draft: Draft, cwd: str | None, nothing: str
) -> tuple[str, int, list[tuple[str, str, str, str]]]:
    """The title, the attempts and the resources (name, kind, scope, mode) of a task, in bounds.

    Raises:
        Refusal: INVALID, LIMIT, OUTSIDE_REPO.
        Unready: the resources were not looked at.
    """
    title = _LINE_ENDS.sub(" ", draft.title.strip())
    if not title or len(title) > TITLE_CHARS_MAX or "\0" in title:
        raise Refusal(
            Code.INVALID, f"A task needs a title of 1 to {TITLE_CHARS_MAX} characters "
            f"(got {len(title)}: {title[:60]!r}). {nothing}",
        )
    if len(draft.prompt) > PROMPT_CHARS_MAX:
        raise Refusal(Code.LIMIT, f"The prompt of {title[:60]!r} has {len(draft.prompt)} "
                      f"characters; at most {PROMPT_CHARS_MAX} are taken. {nothing}")
    check_priority(draft.priority, nothing)
    usual = svc.settings.backlog.attempts_max
    attempts = usual if draft.attempts_max is None else draft.attempts_max
    if not 1 <= attempts <= ATTEMPTS_MAX:
        raise Refusal(
            Code.INVALID, f"`attempts_max` is {attempts}; it must be between 1 and {ATTEMPTS_MAX}. "
            f"{nothing}")
    if len(draft.resources) > svc.settings.leases.resources_max:
        raise Refusal(Code.LIMIT, f"{title[:60]!r} names {len(draft.resources)} resources; at "
                      f"most {svc.settings.leases.resources_max} are taken "
                      f"(leases.resources_max). {nothing}")
    tx.looked.require(places(draft, cwd))
    modes: list[tuple[Located, str]] = []
    for text in draft.resources:
        mode = "shared" if text.startswith(READ) else "exclusive"
        modes += [(with_link, mode) for with_link
                  in with_links(tx, [tx.looked.place(_named(text), cwd)])]
    wanted = once_wanted(_add_needs(svc, draft.needs, modes))
    return title, attempts, [
        (located.resource.name, located.resource.kind, located.resource.scope, mode) for located,
        mode in wanted
    ]


def _add_needs(svc: Service, needs: Sequence[str],
               named: Sequence[Wanted]) -> list[Wanted]:
    """The resources of a task with those that stand for any value of a pool.

    Raises:
        Refusal: INVALID: there is no such pool.
    """
    pools = pool_rule.list_needs((located.resource.name, mode) for located, mode in named)
    for part in svc.slices if needs or pools else ():
        part.check_needs(svc, [*needs, *pools])
    return [*named, *((Located(pool_rule.name_need(name), None, None), "exclusive")
                      for name in needs)]


def check_priority(priority: int, nothing: str) -> None:
    """
    Raises:
        Refusal: INVALID.
    """
    if not -PRIORITY_MAX <= priority <= PRIORITY_MAX:
        raise Refusal(
            Code.INVALID, f"`priority` is {priority}; it must be between {-PRIORITY_MAX} and "
            f"{PRIORITY_MAX}. {nothing}")


def places(draft: Draft, cwd: str | None) -> list[Place]:
    """The places of its resources."""
    return [Place(_named(text), cwd) for text in draft.resources]


def _named(text: str) -> str:
    """The resource's own name; a space after `shared:` is no part of it."""
    name = text.removeprefix(READ)
    return name if name == text else name.lstrip(" ")
