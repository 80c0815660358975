"""The dashboard on a terminal: everything that happens, in lists, and keys that act on the choice.

The module owns the lists and the keys. It shows one `requests.Status` (and the backlog) at a time,
and acts by the operations that the commands use. An action that takes something from an agent is
asked for twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from rich.cells import cell_len
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import DataTable, Footer, Static

from coordinator.cli import review_pages
from coordinator.cli.app import client, person
from coordinator.cli.screens.pages import KEYS_OF_DASHBOARD, LogPage, Page, SessionApp
from coordinator.client.client import Client
from coordinator.commands.lists import ago, cut, in_line, left, middle, path, paths_within
from coordinator.words import requests as rq
from coordinator.words.clock import from_iso, local_time, utc_offset_s

#: It is read again so often (seconds).
EVERY_S = 1.0
EVENTS, TASKS = 100, 500


class Row(NamedTuple):
    """A row of a list: its key, its cells, and its subject."""

    key: str
    cells: Sequence[str]
    about: Any


class Pending(NamedTuple):
    """The action of the next `y`."""

    said: str
    request: rq.Request[Any]


#: The past tense of an answer.
_DONE: dict[rq.UnlockVerdict, str] = {
    "approve": "approved", "reject": "rejected", "narrow": "narrowed", "coexist": "shared"}
#: The lists, in the order of their number keys, and their columns. The last column has the rest of
#: the width; a column that begins with `/` has paths, and more room than others.
LISTS: dict[str, tuple[str, ...]] = {
    "agents": ("agent", "state", "seen", "holds", "doing"),
    "leases": ("/resource", "holder", "left", "waiting", "for"),
    "backlog": ("task", "state", "by", "title"),
    "reviews": ("review", "age", "agent", "what happened"),
    "requests": ("id", "age", "by", "asks", "/for", "why"),
    "events": ("at", "event"),
}


class Dashboard(SessionApp[str | None]):
    """The screen of everything that happens. Ends with the name of the next screen to open, or
    None."""

    CSS = """
    #head, #tabs { height: 1; padding: 0 1; }
    #said { height: auto; min-height: 1; max-height: 40%; background: $panel; padding: 0 1; }
    DataTable { height: 1fr; scrollbar-size: 1 1; overflow-x: hidden; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [  # a narrow screen cuts the last ones off
        Binding("question_mark", "keys", "keys"),
        Binding("q", "quit", "end"),
        *(Binding(str(n), f"list('{name}')", name, show=False) for n, name in enumerate(LISTS, 1)),
        Binding("right", "step(1)", "list", show=False, priority=True),
        Binding("left", "step(-1)", "list", show=False, priority=True),
        Binding("enter", "open", "show", priority=True),
        Binding("l", "log", "log"),
        Binding("x", "release", "release"),
        Binding("a", "answer('approve')", "approve"),
        Binding("d", "answer('reject')", "reject"),
        Binding("k", "decide('keep')", "keep"),
        Binding("r", "decide('revert')", "revert"),
        Binding("u", "undo", "undo"),
        Binding("v", "queue", "reviews"),
        Binding("y", "confirm", "yes", show=False),
    ]

    def __init__(self, session: Client) -> None:
        super().__init__(session)
        self.status: rq.StatusReply | None = None
        self.tasks: list[rq.Task] = []
        self.chosen = "agents"
        self.rows: list[Row] = []
        self.pending: Pending | None = None

    def compose(self) -> ComposeResult:
        """Lay out the state, the lists' names, one list, the last message, the keys."""
        yield Static(id="head")
        yield Static(id="tabs")
        yield DataTable(cursor_type="row", zebra_stripes=False, cell_padding=1)
        yield Static(id="said")
        yield Footer(compact=True, show_command_palette=False)

    async def on_mount(self) -> None:
        """Begin with the agents."""
        await self._look()
        self.set_interval(EVERY_S, self._look_again)

    async def on_resize(self) -> None:
        """Give the last column the remaining width."""
        self._draw()

    # ------------------------------------------------------------ what is shown

    async def _look_again(self) -> None:
        if len(self.screen_stack) == 1:
            await self._look()

    async def _look(self) -> None:
        status_reply = await self.ask(rq.Status(events=EVENTS))
        if status_reply is None:
            return
        self.session._wire.autostart = False  # a stopped coordinator stays stopped
        if self.chosen == "backlog":
            listed = await self.ask(rq.Tasks(limit=TASKS))
            self.tasks = listed.items if listed is not None else self.tasks
        self.status = status_reply
        self._draw()

    def _draw(self) -> None:
        status = self.status
        if status is None or not self.query("#tabs"):
            return  # it is being closed
        counts = {"agents": len(status.agents), "leases": len(status.leases),
                  "backlog": sum(status.tasks.values()), "reviews": len(status.reviews),
                  "requests": len(status.requests), "events": None}
        tabs = self._tabs(counts, " ", True)
        for counted in (True, False):  # a narrow screen has all names, and less around them
            if tabs.cell_len > self.size.width - 2:
                tabs = self._tabs(counts, "", counted)
        self.query_one("#tabs", Static).update(tabs)
        states = ", ".join(f"{n} {state}" for state, n in sorted(status.tasks.items()) if n)
        head = Text(middle(path(status.root), max(20, self.size.width // 2)), "bold",
                    no_wrap=True, overflow="ellipsis")
        head.append(f"  {states}" if states else "  no task", "dim")
        for warning in list(status.health.get("warnings", []))[:1]:
            head.append(f"  warning: {in_line(str(warning))}", "yellow")
        self.query_one("#head", Static).update(head)
        row = self._row()
        self.rows = _ROWS[self.chosen](self)
        self._fill(row)

    def _tabs(self, counts: Mapping[str, int | None], before: str, counted: bool) -> Text:
        tabs = Text(no_wrap=True, overflow="ellipsis")
        for n, (name, count) in enumerate(counts.items(), 1):
            total = f" {count}" if counted and count is not None else ""
            waits = bool(count) and name in ("reviews", "requests")
            tabs.append(f"{before}{n} {name}{total} ", "reverse" if name == self.chosen else
                        "bold yellow" if waits else "")
        return tabs

    def _fit_columns(self, heads: Sequence[str]) -> list[int]:
        wide = [max([len(head.lstrip("/")), *(cell_len(row.cells[n]) for row in self.rows)])
                for n, head in enumerate(heads)]
        most = max(10, (self.size.width - 2) * 2 // 5)
        wide = [min(w, most if head.startswith("/") else 24)
                for w, head in zip(wide, heads, strict=True)]
        wide[-1] = max(8, self.size.width - 1 - sum(w + 2 for w in wide[:-1]) - 2)
        return wide

    def _fill(self, chosen: Row | None) -> None:
        table = self.query_one(DataTable)
        line, scroll = table.cursor_row, table.scroll_y
        heads = LISTS[self.chosen]
        table.clear(columns=True)
        wide = self._fit_columns(heads)
        for head, w in zip(heads, wide, strict=True):
            table.add_column(head.lstrip("/"), width=w)
        if self.rows:
            *names, last = zip(*(row.cells for row in self.rows), strict=True)
            rows = [paths_within(cells, w) for cells, w in zip(names, wide, strict=False)]
            rows.append([cut(cell, wide[-1]) for cell in last])
            for cells in zip(*rows, strict=True):
                table.add_row(*(Text(cell, no_wrap=True, overflow="ellipsis") for cell in cells))
        keys = [row.key for row in self.rows]
        if self.rows:
            line = keys.index(chosen.key) if chosen is not None and chosen.key in keys else line
            table.move_cursor(row=min(line, len(keys) - 1), animate=False)
            table.scroll_to(y=scroll, animate=False)

    def _row(self) -> Row | None:
        """Return the chosen row."""
        table = self.query_one(DataTable)
        position = table.cursor_row
        return self.rows[position] if table.row_count and 0 <= position < len(self.rows) else None

    # ------------------------------------------------------------ choosing

    async def action_list(self, name: str) -> None:
        """Show another list."""
        self.chosen, self.rows, self.pending = name, [], None
        self.query_one(DataTable).clear(columns=True)
        self.say("")
        await self._look()

    async def action_step(self, by: int) -> None:
        """Show the next list, or the one before."""
        names = list(LISTS)
        await self.action_list(names[(names.index(self.chosen) + by) % len(names)])

    # ------------------------------------------------------------ showing

    async def action_open(self) -> None:
        """Open everything about the chosen row: a review's difference, or the story in sentences.
        """
        row = self._row()
        if row is None:
            return
        if isinstance(row.about, rq.Review):
            whole = await self.ask(rq.ReviewShow(review=row.about.review))
            if whole is not None:
                lines = review_pages.page(whole, beside=None)
                await self.push_screen(Page(whole.review, Text("\n").join(lines)))
            return
        subject = _subject(row.about)
        if subject is None:
            await self.push_screen(Page("event", Text("\n".join(row.cells))))
            return
        story = await self.ask(rq.Explain(subject=subject))
        if story is not None:
            text = Text("\n".join(in_line(line) for line in story.sentences))
            await self.push_screen(Page(subject, text))

    async def action_log(self) -> None:
        """Show what the launched agent of the chosen task, agent or lease says and does."""
        row = self._row()
        task = _task(row.about) if row is not None else None
        if task is None:
            self.say("No task belongs to that, and so no log.")
            return
        await self.push_screen(LogPage(task, self.session.root))

    async def action_keys(self) -> None:
        """Show all keys."""
        await self.push_screen(Page("keys", Text(KEYS_OF_DASHBOARD)))

    def action_queue(self) -> None:
        """Work through the reviews, and come back."""
        self.exit("review_queue")

    # ------------------------------------------------------------ acting

    def action_release(self) -> None:
        """Take a lease from its holder, as a person; asked for twice."""
        row = self._row()
        if row is None or not isinstance(row.about, rq.Lease):
            self.say("Choose a lease (2) to release it.")
            return
        lease = row.about
        self.pending = Pending("released", rq.Release(
            agent=lease.locked_by, resources=[lease.resource], force=True))
        self.say(f"Press y to take it from {lease.locked_by} (changes are kept for a review): "
                 f"{path(lease.resource)}")

    def action_answer(self, verdict: rq.UnlockVerdict) -> None:
        """Answer a request in its holder's place; asked for twice."""
        row = self._row()
        if row is None or not isinstance(row.about, rq.Unlock):
            self.say("Choose a request (5) to answer it.")
            return
        unlock = row.about
        self.pending = Pending(_DONE[verdict], rq.RequestAnswer(
            agent=person(), request=unlock.request, verdict=verdict, force=True))
        self.say(f"Press y to {verdict} {unlock.request} in the place of {unlock.holder}.")

    async def action_confirm(self) -> None:
        """Do the pending action."""
        pending, self.pending = self.pending, None
        if pending is None:
            return
        done = await self.ask(pending.request)
        if done is not None:
            await self._look()
            self.say(f"{pending.said}. {in_line(getattr(done, 'message', ''))}".strip())

    async def action_decide(self, verdict: rq.Verdict) -> None:
        """Give a verdict on the chosen review."""
        row = self._row()
        if row is None or not isinstance(row.about, rq.Review):
            self.say("Choose a review (4) to decide on it; v opens them all.")
            return
        done = await self.ask(rq.ReviewDecide(review=row.about.review, verdict=verdict,
                                              by=person()))
        if done is not None:
            self.note(done)
            await self._look()
            self.say(f"{done.review} {done.state}  (u takes it back)")

    async def changed(self, review: rq.Review) -> None:
        """Show the new state."""
        await self._look()

    def on_key(self, event: Any) -> None:
        """Take any other key as a no."""
        if self.pending is not None and event.key not in ("y", "x", "a", "d"):
            self.pending = None
            self.say("Nothing was done.")


# ------------------------------------------------------------ the rows of each list


def _agents(app: Dashboard) -> list[Row]:
    status = app.status
    assert status is not None
    now = from_iso(status.at)
    busy = sorted(status.agents, key=lambda a: (a.state != "active", not a.tasks, not a.leases))
    return [Row(a.agent, [
        a.agent, "rests" if a.rests_until else a.state, ago(a.seen_at, now), str(a.leases), in_line(
        "waits for " + ", ".join(a.waiting_for) if a.waiting_for
        else " ".join(p for p in (", ".join(a.tasks), a.progress) if p))], a) for a in busy]


def _leases(app: Dashboard) -> list[Row]:
    status = app.status
    assert status is not None
    now = from_iso(status.at)
    waits: dict[str, list[rq.Waiter]] = {}
    for waiter in status.waiters:
        for name in waiter.resources:
            waits.setdefault(name, []).append(waiter)
    ranked = sorted(status.leases, key=lambda x: (x.resource not in waits, x.expires_at))
    rows = [Row(str(x.fencing_token), [
        path(x.resource), x.locked_by, left(x.expires_at, now),
        _names(waits.pop(x.resource, [])),
        in_line(" ".join(p for p in (x.task or "", x.description) if p))], x) for x in ranked]
    # Some waiters wait under another name than the leased one: for a file below a leased directory,
    # say.
    return [*(Row(f"waits for {name}", [path(name), "", "", _names(those), ""], those[0])
              for name, those in waits.items()), *rows]


def _names(waiters: Sequence[rq.Waiter]) -> str:
    return ", ".join(waiter.agent for waiter in waiters)


def _backlog(app: Dashboard) -> list[Row]:
    order = ("claimed", "review", "failed", "dead", "ready", "pending", "blocked")
    ranked = sorted(app.tasks, key=lambda t: order.index(t.state) if t.state in order else 99)
    return [Row(t.task, [t.task, t.state, t.claimed_by or "", in_line(t.title)], t) for t in ranked]


def _reviews(app: Dashboard) -> list[Row]:
    status = app.status
    assert status is not None
    now = from_iso(status.at)
    return [Row(r.review, [r.review, ago(r.opened_at, now), r.agent or "", in_line(r.summary)], r)
            for r in status.reviews]


def _requests(app: Dashboard) -> list[Row]:
    status = app.status
    assert status is not None
    now = from_iso(status.at)
    return [Row(u.request, [u.request, ago(u.requested_at, now), u.requested_by, u.holder,
                            path(u.resource), in_line(u.reason)], u) for u in status.requests]


def _events(app: Dashboard) -> list[Row]:
    status = app.status
    assert status is not None
    offset = utc_offset_s()
    return [Row(str(e.seq), [local_time(e.at, offset), in_line(e.text)], e)
            for e in reversed(status.events)]


_ROWS: dict[str, Callable[[Dashboard], list[Row]]] = {
    "agents": _agents, "leases": _leases, "backlog": _backlog, "reviews": _reviews,
    "requests": _requests, "events": _events,
}


def _subject(about: Any) -> str | None:
    """Return the subject of `requests.Explain` for it."""
    for kind, field in ((rq.AgentRow, "agent"), (rq.Lease, "resource"), (rq.Task, "task"),
                        (rq.Unlock, "request"), (rq.Waiter, "acquisition_id")):
        if isinstance(about, kind):
            return str(getattr(about, field))
    return None


def _task(about: Any) -> str | None:
    """Return the task that it belongs to."""
    if isinstance(about, rq.AgentRow):
        return about.tasks[0] if about.tasks else None
    task = getattr(about, "task", None)
    return str(task) if task else None


def run() -> None:
    """Open the dashboard, until it is closed; the queue of reviews from it, and back."""
    from coordinator.cli.screens.review_queue import ReviewQueue

    with client() as session:
        session.call(rq.Status(events=1))  # refused in words, before the screen is taken
        while Dashboard(session).run() == "review_queue":
            ReviewQueue(session).run()
