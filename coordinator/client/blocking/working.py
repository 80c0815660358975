# Made by scripts/blocking_client.py from coordinator/client/asynchronous/working.py; do not edit.
"""Methods of `Client`: tasks, landing and verification."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from coordinator.client.asking import Asking, here, listed
from coordinator.words import requests as rq


class Working(Asking):
    """Asking about tasks, landing and verification."""

    def limit_reached(
        self, *, agent: str | None = None, until: str | None = None, for_s: float | None = None,
        note: str = "", log_tail: str = "",
    ) -> rq.Limited:
        """The agent has met its provider's limit and is given nothing until it may continue. Its
        tasks go back, to agents of other profiles first, and no attempt is lost. `for_s` 0: it
        continues now.

        Args:
            agent: Whom it is asked for; default: this client's own agent.
            until: An instant, like 2026-11-21T14:32:00Z.
            for_s: Or so many seconds; at most 7 days.
            note: A remark for people, in a line.
            log_tail: The last lines of the agent's log.
        """
        return self.call(rq.LimitReached(
            agent=agent or self.name(), until=until, for_s=for_s, note=note,
            log_tail=log_tail,
        ))

    def task_add(
        self, title: str, *, prompt: str = "", resources: Sequence[str] = (), priority: int = 0,
        after: Sequence[str] = (), attempts_max: int | None = None, needs: Sequence[str] = (),
    ) -> rq.Task:
        """Add a task. `resources` are leased with its claim; a resource may be marked
        `shared:NAME`. `needs`: pools of the environment; a value of each is given with its claim.

        Args:
            title: A title, in a line.
            prompt: What its agent is told.
            resources: Resources: paths from the root (or from `cwd`), `dir/`, globs, regions
                (`path::Qualified.name`), `key:a:b`, `task:T-3`.
            priority: The higher, the earlier; 0 is ordinary.
            after: Ids of tasks that have to be done before it may begin.
            attempts_max: How often it is tried at most.
            needs: Names of pools.
        """
        return self.call(rq.TaskAdd(
            title=title, prompt=prompt, resources=listed(resources), priority=priority,
            after=listed(after), attempts_max=attempts_max, needs=listed(needs), cwd=here(),
        ))

    def task_list(
        self, *, state: Literal["pending", "ready", "claimed", "review", "failed", "dead",
        "blocked", "done", "cancelled"] | None = None, agent: str | None = None, limit: int = 200,
        after: int = 0, filter: str = "", order: Literal["arrival", "priority"] = "arrival",
        skip: int = 0, brief: bool = False,
    ) -> rq.TaskList:
        """The backlog in order of arrival, or the next to be given out first. `skip` and `limit`
        are a window of it.

        Args:
            state: Only tasks in this state.
            agent: Only what it has claimed.
            limit: How many at most; 1 or more. A page's own bound holds, too.
            after: Only what comes after this: the `next` of the page before.
            filter: Only with this in its id, title, holder or a resource, A as a.
            order: The oldest first, or the next to be given out first.
            skip: How many are left out at the beginning.
            brief: Prompts and results are left empty.
        """
        return self.call(rq.Tasks(
            state=state, agent=agent, limit=limit, after=after, filter=filter, order=order,
            skip=skip, brief=brief,
        ))

    def task_show(self, task: str) -> rq.TaskShown:
        """One task, with who holds what it needs, what comes before and after it, what it wrote.

        Args:
            task: The task's id, like `T-3`.
        """
        return self.call(rq.TaskShow(task=task))

    def task_edit(
        self, task: str, *, title: str | None = None, prompt: str | None = None,
        resources: Sequence[str] | None = None, priority: int | None = None,
        before: str | None = None, behind: str | None = None, after: Sequence[str] | None = None,
        attempts_max: int | None = None, needs: Sequence[str] | None = None,
        seen: str | None = None,
    ) -> rq.Task:
        """Change the text of a task. Omitted fields stay; `resources`, `needs` and `after` are
        complete lists.

        A task that an agent works on, or that is done or cancelled, is refused. `seen`: the
        `updated_at` that the change is based on; VERSION_CHANGED if the task has changed since.
        `before` and `behind` give the task a place in the order of dispatch: its priority follows,
        and the priorities of the tasks before it are raised as far as necessary.

        Args:
            task: The task's id, like `T-3`.
            title: A title, in a line.
            prompt: What its agent is told.
            resources: Resources: paths from the root (or from `cwd`), `dir/`, globs, regions
                (`path::Qualified.name`), `key:a:b`, `task:T-3`.
            priority: The higher, the earlier; 0 is ordinary.
            before: The task that it is to be given out right before; null: as it is.
            behind: The task that it is to be given out right after; null: as it is.
            after: Ids of all tasks that have to be done before it may begin.
            attempts_max: How often it is tried at most.
            needs: Names of pools.
            seen: The `updated_at` that the change is based on; null: whatever it is by now.
        """
        return self.call(rq.TaskEdit(
            task=task, title=title, prompt=prompt,
            resources=None if resources is None else listed(resources), priority=priority,
            before=before, behind=behind, after=None if after is None else listed(after),
            attempts_max=attempts_max, needs=None if needs is None else listed(needs), seen=seen,
            cwd=here(),
        ))

    def task_claim(
        self, task: str | None = None, *, agent: str | None = None, ttl: float | None = None,
        wait: float = 0.0, reentrant: bool = False,
    ) -> rq.Claimed:
        """Take a task and all its leases in one transaction; without `task`, the best that the
        agent can start. A task that the agent has claimed already is answered again with
        `reentrant` only.

        Args:
            task: The task's id; null: the best that can be started.
            agent: Whom it is asked for; default: this client's own agent.
            ttl: How long the lease lasts unless it is renewed (seconds); null: as the settings say.
            wait: How long to wait for it at most (seconds); 0: not at all.
            reentrant: What the agent has already is this asker's.
        """
        return self.call(rq.TaskClaim(
            agent=agent or self.name(), task=task, ttl_s=ttl, wait_s=wait,
            reentrant=reentrant, cwd=here(),
        ))

    def task_done(
        self, task: str, result: str = "", *, agent: str | None = None, force: bool = False,
        landed: str | None = None,
    ) -> rq.Task:
        """The task is finished; its leases are released and its dependents may become ready.

        Args:
            task: The task's id, like `T-3`.
            result: What came of it, in words.
            agent: Whom it is asked for; default: this client's own agent.
            force: A person overrides whose it is; this is noted.
            landed: Of work in a launch's worktree: the commit; empty: nothing to land.
        """
        return self.call(rq.TaskDone(
            agent=agent or self.name(), task=task, result=result, force=force, landed=landed,
        ))

    def task_fail(
        self, task: str, reason: str = "", blocked: Sequence[str] = (), *,
        agent: str | None = None, log_tail: str = "", force: bool = False,
        unlanded: rq.Unlanded | None = None, model_error: bool = False, outcome: str | None = None,
    ) -> rq.Task:
        """The attempt failed: retried after a backoff, or dead past the limit; changes are flagged.

        `blocked`: it met resources that another holds; they join the task, no attempt is counted,
        and it is offered again when they are free. `unlanded`: its work was refused at the merge
        boundary; all of it is flagged, leased or not. `model_error`: not the attempt, but the
        model, its server or the agent's wiring failed; no attempt is counted.

        Args:
            task: The task's id, like `T-3`.
            reason: Why, in words.
            blocked: Resources that another holds.
            agent: Whom it is asked for; default: this client's own agent.
            log_tail: The last lines of the agent's log.
            force: A person overrides whose it is; this is noted.
            unlanded: Its work was refused at the merge boundary, and lies there.
            model_error: The model, its server or the agent's wiring failed, not the attempt: it is
                not counted.
            outcome: The code of what was refused, for the task's blackboard.
        """
        return self.call(rq.TaskFail(
            agent=agent or self.name(), task=task, reason=reason, blocked=listed(blocked),
            log_tail=log_tail, force=force, unlanded=unlanded, model_error=model_error,
            outcome=outcome, cwd=here(),
        ))

    def task_outcome(
        self, task: str, outcome: str, *, agent: str | None = None, note: str = "",
    ) -> rq.Judged:
        """The outcome of an attempt, as its checker judges it (`VERIFY_FAILED` and the like). It is
        noted on the task's blackboard, with the remedy. After `backlog.rounds_max` in a row a
        person gets the task.

        Args:
            task: The task's id, like `T-3`.
            outcome: What came of it: the code of a refusal, or a word.
            agent: Whom it is asked for; default: this client's own agent.
            note: A remark for people, in a line.
        """
        return self.call(rq.TaskOutcome(
            agent=agent or self.name(), task=task, outcome=outcome, note=note,
        ))

    def task_retry(self, task: str) -> rq.Task:
        """Put a dead, failed or cancelled task back, with its attempts counted afresh. A cancelled
        one whose partial work is under review waits for the verdict again.

        Args:
            task: The task's id, like `T-3`.
        """
        return self.call(rq.TaskRetry(task=task))

    def task_cancel(self, task: str, *, reason: str = "", force: bool = False) -> rq.Task:
        """Take a task out of the backlog; a claimed one only with `force`.

        Args:
            task: The task's id, like `T-3`.
            reason: Why, in words.
            force: A person overrides whose it is; this is noted.
        """
        return self.call(rq.TaskCancel(task=task, reason=reason, force=force))

    def task_import(
        self, text: str, format: Literal["yaml", "jsonl", "markdown"] | None = None, *,
        name: str = "", known: Sequence[str] = (),
    ) -> rq.Imported:
        """Add many tasks, all or none, from YAML, JSON lines or a Markdown check-list. Resources in
        it begin at the root. Without a `format` the ending of `name` tells it, else the text.

        Args:
            text: The text.
            format: yaml, jsonl or markdown.
            name: Of the file that it was read from.
            known: Tasks of an earlier text: one of the same title is not added again.
        """
        return self.call(rq.TaskImport(
            text=text, format=format, name=name, known=listed(known),
        ))

    def task_export(
        self, *, format: Literal["yaml", "jsonl", "markdown"] = "yaml",
    ) -> rq.Exported:
        """The whole backlog as text that `task_import` reads.

        Args:
            format: yaml, jsonl or markdown.
        """
        return self.call(rq.TaskExport(format=format))

    def verify(self, *, by: str | None = None, afresh: bool = False) -> rq.Verification:
        """Run the command now on what tasks have finished since it last passed (`verify.command`);
        the reply does not wait for its end. `afresh`: begin with the commit that is checked out,
        and take all that was finished until now as being in it.

        Args:
            by: The person who does or did it.
            afresh: Begin with the commit that is checked out.
        """
        return self.call(rq.Verify(by=by, afresh=afresh))

    def verification_list(self, *, limit: int = 20) -> rq.VerificationList:
        """The last verifications, the newest first, and what is not verified.

        Args:
            limit: How many at most; 1 or more. A page's own bound holds, too.
        """
        return self.call(rq.Verifications(limit=limit))

    def task_worktree(
        self, task: str, worktree: str, *, agent: str | None = None,
    ) -> rq.WorkedIn:
        """The agent works on its task in this linked worktree: what is there now is what its leases
        start from, and what is compared when they end.

        Args:
            task: The task's id, like `T-3`.
            worktree: The linked worktree, as an absolute path.
            agent: Whom it is asked for; default: this client's own agent.
        """
        return self.call(rq.TaskWorktree(
            agent=agent or self.name(), task=task, worktree=worktree,
        ))

    def land_check(
        self, task: str, changes: Sequence[rq.LandChange], *, agent: str | None = None,
        began_with: Sequence[rq.LandRight] = (), moved: Sequence[str] = (),
        misfits: Sequence[str] = (), dirty: Sequence[str] = (), target: str = "",
    ) -> rq.Lawful:
        """May these changes of a task land? Refused: NOT_HOLDER, STALE_TOKEN, VERSION_CHANGED, …

        `moved` are paths that the target has changed since the branch began; `dirty` paths that
        hold uncommitted changes where the target is checked out. Changes nothing.

        Args:
            task: The task's id, like `T-3`.
            changes: What is changed, one by one.
            agent: Whom it is asked for; default: this client's own agent.
            began_with: The leases that the attempt began with.
            moved: Paths that the target has changed since the branch began.
            misfits: What does not fit together with what landed meanwhile.
            dirty: Paths with uncommitted changes where the target is checked out.
            target: The branch that it is to land on, for the sentence.
        """
        return self.call(rq.LandCheck(
            agent=agent or self.name(), task=task, changes=listed(changes),
            began_with=listed(began_with), moved=listed(moved), misfits=listed(misfits),
            dirty=listed(dirty), target=target,
        ))

    def land(
        self, task: str, changes: Sequence[rq.LandChange], target: str, before: str, after: str, *,
        agent: str | None = None, began_with: Sequence[rq.LandRight] = (),
        moved: Sequence[str] = (), misfits: Sequence[str] = (), dirty: Sequence[str] = (),
    ) -> rq.Landed:
        """Move `target` (a branch, in full) from commit `before` to commit `after`, if that may
        land.

        The leases are judged and the branch is moved in one transaction, and only if it still is at
        `before`: refused VERSION_CHANGED with `target_moved` when it is not. For the launch, which
        acts for the agent; the files of a worktree are its business.

        Args:
            task: The task's id, like `T-3`.
            changes: What is changed, one by one.
            target: The branch that it lands on, in full (`refs/heads/main`).
            before: The commit that the target is at before, in full.
            after: The commit that the target is moved to, in full.
            agent: Whom it is asked for; default: this client's own agent.
            began_with: The leases that the attempt began with.
            moved: Paths that the target has changed since the branch began.
            misfits: What does not fit together with what landed meanwhile.
            dirty: Paths with uncommitted changes where the target is checked out.
        """
        return self.call(rq.Land(
            agent=agent or self.name(), task=task, changes=listed(changes), target=target,
            before=before, after=after, began_with=listed(began_with), moved=listed(moved),
            misfits=listed(misfits), dirty=listed(dirty),
        ))

    def land_back(
        self, task: str, target: str, before: str, after: str, *, agent: str | None = None,
        why: str = "",
    ) -> rq.Landed:
        """The worktree could not follow: move `target` back from `after` to `before`, if nobody has
        built on it. Refused: VERSION_CHANGED.

        Args:
            task: The task's id, like `T-3`.
            target: The branch that it lands on, in full (`refs/heads/main`).
            before: The commit that the target is at before, in full.
            after: The commit that the target was moved to, in full.
            agent: Whom it is asked for; default: this client's own agent.
            why: Why, in words.
        """
        return self.call(rq.LandBack(
            agent=agent or self.name(), task=task, target=target, before=before, after=after,
            why=why,
        ))

    def land_queue(
        self, task: str, target: str, *, agent: str | None = None, turn: bool = False,
    ) -> rq.Landing:
        """Note that the work of a task waits to land, or (`turn`) that its turn has come. For the
        launch, which orders its own queue; a task leaves it when its claim ends.

        Args:
            task: The task's id, like `T-3`.
            target: The branch that it lands on, in full (`refs/heads/main`).
            agent: Whom it is asked for; default: this client's own agent.
            turn: It lands now.
        """
        return self.call(rq.LandQueue(
            agent=agent or self.name(), task=task, target=target, turn=turn,
        ))

    def landings(self, *, skip: int = 0, limit: int = 200) -> rq.LandingList:
        """What lands now and what waits to land, in order.

        Args:
            skip: Leave out so many of them at the beginning.
            limit: How many at most; 1 or more. A page's own bound holds, too.
        """
        return self.call(rq.Landings(skip=skip, limit=limit))

    claim = task_claim

    done = task_done

    fail = task_fail
