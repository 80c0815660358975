# Made by scripts/blocking_client.py from coordinator/client/asynchronous/watching.py; do not edit.
"""Methods of `Client`: the log, status, health, the archive, the page, agents' output."""

from __future__ import annotations

from collections.abc import Sequence

from coordinator.client.asking import Asking, here, listed
from coordinator.words import requests as rq


class Watching(Asking):
    """Asking about the log, status, health, the archive, the page, agents' output."""

    def sweep(self) -> rq.Swept:
        """Tidy now: close what has expired, flag partial work, serve the queue."""
        return self.call(rq.Sweep())

    def env_take(
        self, *, agent: str | None = None, pools: Sequence[str] = (), ttl: float | None = None,
    ) -> rq.Environment:
        """Give the agent a value of each named pool, all or none: the one that it has, or a free
        one. Without names: what it has. A value ends with the agent's one task, or its session.

        Args:
            agent: Whom it is asked for; default: this client's own agent.
            pools: Names of pools.
            ttl: How long the lease lasts unless it is renewed (seconds); null: as the settings say.
        """
        return self.call(rq.EnvironmentTake(
            agent=agent or self.name(), pools=listed(pools), ttl_s=ttl,
        ))

    def env_release(
        self, *, agent: str | None = None, pools: Sequence[str] = (),
    ) -> rq.Environment:
        """Give values back: of these pools, or of all. The reply tells what they were.

        Args:
            agent: Whom it is asked for; default: this client's own agent.
            pools: Names of pools.
        """
        return self.call(rq.EnvironmentRelease(
            agent=agent or self.name(), pools=listed(pools),
        ))

    def pools(self, *, pool: str | None = None, limit: int = 10000) -> rq.PoolValueList:
        """The values of pools: who has which, and which ports somebody listens on.

        Args:
            pool: Only of this one.
            limit: How many at most; 1 or more. A page's own bound holds, too.
        """
        return self.call(rq.PoolValues(pool=pool, limit=limit))

    def work(
        self, *, agent: str | None = None, resource: str | None = None, after: int = 0,
        limit: int = 50,
    ) -> rq.WorkList:
        """What has changed on disk below live leases since they were granted, oldest lease first.

        It compares what a lease began with to the present file, so changes of others are included.
        For a region it shows that region's changes, and below a directory or glob also new files
        that are not ignored.

        Args:
            agent: Only below leases of this agent.
            resource: Only below leases of this name.
            after: A lease's fencing token.
            limit: Leases that are looked at.
        """
        return self.call(rq.Work(agent=agent, resource=resource, after=after, limit=limit))

    def archive_search(self, query: str, *, limit: int = 10) -> rq.HitList:
        """Full-text search over the context archive and the living sections.

        Args:
            query: Words to look for.
            limit: How many at most; 1 or more. A page's own bound holds, too.
        """
        return self.call(rq.ArchiveSearch(query=query, limit=limit))

    def archive_show(self, ref: str) -> rq.ArchiveSection:
        """One section by number (`4.2`, `4.2@file.md`) or title.

        Args:
            ref: A number (`4.2`, `4.2@file.md`) or a title.
        """
        return self.call(rq.ArchiveShow(ref=ref))

    def archive_index(self) -> rq.Indexed:
        """Read changed Markdown again now."""
        return self.call(rq.ArchiveIndexNow())

    def status(self, *, events: int = 10, leases: int = 5000) -> rq.StatusReply:
        """Everything that the dashboard shows, read in one snapshot.

        Args:
            events: How many of the last events to show.
            leases: How many leases are listed at most.
        """
        return self.call(rq.Status(events=events, leases=leases))

    def events(
        self, *, after: int = 0, limit: int = 200, tail: bool = False, agent: str | None = None,
        task: str | None = None, resource: str | None = None, kind: str | None = None,
    ) -> rq.EventList:
        """The log after `after`, oldest first; `tail` gives the last ones instead. A `resource`
        includes its regions.

        Args:
            after: Only events after this number.
            limit: How many at most; 1 or more. A page's own bound holds, too.
            tail: The last ones, in place of the first.
            agent: Only events of this agent.
            task: Only events of this task.
            resource: Only events of this resource.
            kind: Only events of this kind: `lease_granted`, `task_changed`, …
        """
        return self.call(rq.Events(
            after=after, limit=limit, tail=tail, agent=agent, task=task, resource=resource,
            kind=kind, cwd=here(),
        ))

    def explain(self, subject: str) -> rq.Story:
        """The story of one task, review, unlock request, message, agent or resource, in sentences.

        Args:
            subject: What it is about: `T-3`, `task:T-3`, a review, an agent or a resource.
        """
        return self.call(rq.Explain(subject=subject, cwd=here()))

    def report(
        self, *, since: str | None = None, until: str | None = None, limit: int = 20,
    ) -> rq.ReportReply:
        """The report of a time of work, by the log: who waited for whom and how long, which files
        were in demand, what was refused, what each agent did. Without bounds: all of the log.

        Args:
            since: An instant, like 2026-11-21T14:32:00Z: from there on.
            until: An instant: up to there; default: now.
            limit: How many lines of a list at most.
        """
        return self.call(rq.Report(since=since, until=until, limit=limit))

    def timeline(
        self, *, since: str | None = None, until: str | None = None, spans: int = 2000,
        parts: int = 60, limit: int = 20,
    ) -> rq.TimelineReply:
        """How a time of work went, by the log: a lane for each agent (tasks, leases, waits,
        thinking, refusals, reviews), demand for each file over time, and who waited for whom.
        Without bounds: all of the log.

        Args:
            since: An instant, like 2026-11-21T14:32:00Z: from there on.
            until: An instant: up to there; default: now.
            spans: How many spans at most; near ones are drawn together where there are more.
            parts: Into how many parts the window is divided for the demand.
            limit: How many resources, and lines of each list of the report, at most.
        """
        return self.call(rq.Timeline(
            since=since, until=until, spans=spans, parts=parts, limit=limit,
        ))

    def moment(self, *, event: int | None = None, at: str | None = None) -> rq.MomentReply:
        """The state at a moment: who held what, who waited, what was claimed, what had been tried.
        It is rebuilt from the log. For an event: the state just after it. Without bounds: now.

        Args:
            event: The number of the event after which the state is shown.
            at: Or an instant, like 2026-11-21T14:32:00Z.
        """
        return self.call(rq.Moment(event=event, at=at))

    def replay(self) -> rq.ReplayResult:
        """Rebuild the state from the log into a fresh database and compare."""
        return self.call(rq.Replay())

    def health(self, *, integrity: bool = False) -> rq.HealthReply:
        """How the daemon is; `integrity` also checks the database page by page.

        Args:
            integrity: Check the database page by page, too.
        """
        return self.call(rq.Health(integrity=integrity))

    def overlaps(
        self, *, branch: str | None = None, paths: Sequence[str] = (), unasked: bool = False,
        limit: int = 200,
    ) -> rq.OverlapList:
        """What two working trees of the repository change both, file by file and by region, from
        their common commit on, and whether a trial merge of the two is clean. Nothing is changed.

        The files are read as they are now, so uncommitted work counts. The same change on both
        sides is no overlap.

        Args:
            branch: Only of the tree that has this branch checked out.
            paths: Only of these files.
            unasked: For a warning: a few; none where `[worktrees] overlap = "ignore"`.
            limit: How many at most; 1 or more. A page's own bound holds, too.
        """
        return self.call(rq.Overlaps(
            branch=branch, paths=listed(paths), unasked=unasked, limit=limit, cwd=here(),
        ))

    def coordinators(self) -> rq.CoordinatorList:
        """The coordinators that this user runs, of all repositories, and how each of them is."""
        return self.call(rq.Coordinators())

    def compact(self, *, keep_days: float | None = None) -> rq.Compacted:
        """Apply the retention rule to the log and the blobs now.

        Args:
            keep_days: How many days of the log are kept; null: as the settings say.
        """
        return self.call(rq.Compact(keep_days=keep_days))

    def task_log(
        self, task: str, *, log: str = "", after: int | None = None, wait: float = 0.0,
    ) -> rq.TaskLogLines:
        """The output of a task's launched agent, newest attempt; with `wait_s`, wait so long until
        there is more.

        Without `after`, the end of the log. With it, what came since, or the beginning of a log
        newer than `log`.

        Args:
            task: The task's id, like `T-3`.
            log: The log that `after` refers to, as it was returned.
            after: Only what comes after this: the `next` of the page before.
            wait: How long to wait for it at most (seconds); 0: not at all.
        """
        return self.call(rq.TaskLog(task=task, log=log, after=after, wait_s=wait))

    def page_open(
        self, *, reads_only: bool = False, port: int | None = None,
    ) -> rq.PageOpened:
        """Open the HTTP door where it is shut, and make a code that one browser page exchanges for
        a token of its own (`coord web`).

        With `reads_only` the page sees all and changes nothing. Asked with an agent's token, it
        only reads, too, sees what that agent may, and opens no door that is shut.

        Args:
            reads_only: The page changes nothing.
            port: Where to open a door that is shut (0: any); it stays asked for.
        """
        return self.call(rq.PageOpen(reads_only=reads_only, port=port))

    def shutdown(self) -> rq.Stopping:
        """Drain and exit."""
        return self.call(rq.Shutdown())
