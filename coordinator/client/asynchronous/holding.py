# Made by `make docs` from the list of operations; do not edit.
"""Methods of `AsyncClient`: agents, leases and unlock requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from coordinator.client.asking import AsyncAsking, here, listed
from coordinator.words import requests as rq


class Holding(AsyncAsking):
    """Asking about agents, leases and unlock requests."""

    async def join(self, profile: str, *, session: str = "", call: str = "") -> rq.Joined:
        """The holder that the hooks of an agent's session act for. It is registered if it is new.

        `call` is the id of a tool call that the hooks have announced; then the answer is the agent
        that makes that call, also a sub-agent. `session` is the whole id: an agent that is not this
        session is refused.

        Args:
            profile: The kind of agent: the name of a profile, like `claude-code`.
            session: The id that the agent's program gave to its session.
            call: The id of a tool call that the hooks have announced.
        """
        return await self.call(rq.Join(profile=profile, session=session, call=call))

    async def heartbeat(
        self, progress: str | None = None, ack: int = 0, *, agent: str | None = None,
    ) -> rq.Alive:
        """The agent is alive; with `progress` it moves, and its leases and claims are renewed.

        Args:
            progress: What it is at, in a line: it moves, so its leases and claims are renewed.
                Null: it only lives.
            ack: Notices up to this number have been delivered.
            agent: Whom it is asked for; default: this client's own agent.
        """
        return await self.call(rq.Heartbeat(
            agent=agent or await self.name(), progress=progress, ack=ack,
        ))

    async def leave(
        self, *, agent: str | None = None, clean: bool = True, reason: str = "", log_tail: str = "",
    ) -> rq.Left:
        """The session ends. `clean`: its work is finished and leases are released; otherwise
        partial work is flagged exactly as if they had expired.

        Args:
            agent: Whom it is asked for; default: this client's own agent.
            clean: Its work is finished: leases are released. False: partial work is flagged.
            reason: Why, in words.
            log_tail: The last lines of the agent's log.
        """
        return await self.call(rq.Leave(
            agent=agent or await self.name(), clean=clean, reason=reason, log_tail=log_tail,
        ))

    async def agents(self, *, all: bool = False) -> rq.AgentList:
        """Registered agents; those that left only with `all`.

        Args:
            all: Those that left, too.
        """
        return await self.call(rq.Agents(all=all))

    async def acquire(
        self, *resources: str, agent: str | None = None, mode: rq.Mode = "exclusive",
        ttl: float | None = None, task: str | None = None, description: str = "",
        wait: float = 0.0, priority: int = 0, retry: bool = True, new: bool = False,
        reentrant: bool = False, passing: bool = False,
    ) -> rq.Acquired:
        """Lease every resource, or none. Refused: LOCKED with who, why, excerpts and other work.

        What the agent has already is somebody's: another thread or program may act as the same
        agent. So it is refused, too, but with `reentrant`.

        Args:
            resources: Resources: paths from the root (or from `cwd`), `dir/`, globs, regions
                (`path::Qualified.name`), `key:a:b`, `task:T-3`.
            agent: Whom it is asked for; default: this client's own agent.
            mode: `exclusive`: nobody else; `shared`: with others that share it.
            ttl: How long the lease lasts unless it is renewed (seconds); null: as the settings say.
            task: The task's id, like `T-3`.
            description: What it does or is for, in a line for others to read.
            wait: How long to wait for it at most (seconds); 0: not at all.
            priority: The higher, the earlier; 0 is ordinary.
            retry: Stay in the queue after a refusal; granted when free, told by a notice.
            new: Regions that are not there yet, too: they are about to be added.
            reentrant: What the agent has already is this asker's, and is renewed.
            passing: The asker is gone with the answer: queued only if its agent lives.
        """
        return await self.call(rq.Acquire(
            agent=agent or await self.name(), resources=listed(resources), mode=mode, ttl_s=ttl,
            task=task, description=description, wait_s=wait, priority=priority, retry=retry,
            new=new, reentrant=reentrant, passing=passing, cwd=here(),
        ))

    async def release(
        self, *resources: str, agent: str | None = None, acquisition: str | None = None,
        task: str | None = None, lease_token: str | None = None, force: bool = False,
        keep_shared: bool = False,
    ) -> rq.Released:
        """Give leases back: named by resource, by acquisition, or all of a task's. Owner-checked.
        `keep_shared`: only the right to write; the reply tells them as they are then.

        Args:
            agent: Whom it is asked for; default: this client's own agent.
            resources: Resources: paths from the root (or from `cwd`), `dir/`, globs, regions
                (`path::Qualified.name`), `key:a:b`, `task:T-3`.
            acquisition: The acquisition's id, like `A-3`: all that was asked for at once.
            task: All leases of this task.
            lease_token: The lease's secret; with it only its holder is served.
            force: A person overrides whose it is; this is noted.
            keep_shared: What is named stays leased, shared: others may read it again.
        """
        return await self.call(rq.Release(
            agent=agent or await self.name(), resources=listed(resources),
            acquisition_id=acquisition, task=task, lease_token=lease_token, force=force,
            keep_shared=keep_shared, cwd=here(),
        ))

    async def renew(
        self, *resources: str, agent: str | None = None, acquisition: str | None = None,
        lease_token: str | None = None, ttl: float | None = None,
    ) -> rq.Renewed:
        """Extend leases from now, never past `max_hold`. An expired lease is refused: STALE_TOKEN.

        Args:
            agent: Whom it is asked for; default: this client's own agent.
            resources: Resources: paths from the root (or from `cwd`), `dir/`, globs, regions
                (`path::Qualified.name`), `key:a:b`, `task:T-3`.
            acquisition: The acquisition's id, like `A-3`: all that was asked for at once.
            lease_token: The lease's secret; with it only its holder is served.
            ttl: How long the lease lasts unless it is renewed (seconds); null: as the settings say.
        """
        return await self.call(rq.Renew(
            agent=agent or await self.name(), resources=listed(resources),
            acquisition_id=acquisition, lease_token=lease_token, ttl_s=ttl, cwd=here(),
        ))

    async def withdraw(self, acquisition: str, *, agent: str | None = None) -> rq.Withdrawn:
        """Leave the queue.

        Args:
            acquisition: The acquisition's id, like `A-3`: all that was asked for at once.
            agent: Whom it is asked for; default: this client's own agent.
        """
        return await self.call(rq.Withdraw(
            agent=agent or await self.name(), acquisition_id=acquisition,
        ))

    async def locks(
        self, *, agent: str | None = None, resource: str | None = None, limit: int = 1000,
        after: int = 0, filter: str = "", order: Literal["grant", "folder"] = "grant",
        skip: int = 0,
    ) -> rq.LockList:
        """Live leases and who waits; `resource` narrows both to what overlaps it, `agent` to what
        is its own, and to who waits for that. `skip` and `limit` are a window of the leases.

        Args:
            agent: Only leases of this agent.
            resource: Only what overlaps this resource.
            limit: How many at most; 1 or more. A page's own bound holds, too.
            after: Only what comes after this: the `next` of the page before.
            filter: Only leases with this in resource, holder, task or description, A as a.
            order: As they were granted, or by their folders and names.
            skip: How many are left out at the beginning.
        """
        return await self.call(rq.Locks(
            agent=agent, resource=resource, limit=limit, after=after, filter=filter, order=order,
            skip=skip, cwd=here(),
        ))

    async def request_file(
        self, resource: str, reason: str, *, agent: str | None = None, holder: str | None = None,
        mode: rq.Mode = "exclusive",
    ) -> rq.Unlock:
        """Ask the holder of a resource to release it, and be queued for it. The holder is told with
        its next hook call, and the asker is told the answer in the same way.

        Args:
            resource: A resource: a path from the root, `dir/`, a glob, a region
                (`path::Qualified.name`), `key:a:b` or `task:T-3`.
            reason: Why, in words.
            agent: Whom it is asked for; default: this client's own agent.
            holder: Needed only where several hold parts of it.
            mode: `exclusive`: nobody else; `shared`: with others that share it.
        """
        return await self.call(rq.RequestFile(
            agent=agent or await self.name(), resource=resource, reason=reason, holder=holder,
            mode=mode, cwd=here(),
        ))

    async def request_list(
        self, *, state: Literal["pending", "approved", "narrowed", "coexisting", "rejected",
        "withdrawn", "all"] = "pending", agent: str | None = None, resource: str | None = None,
        limit: int = 200, after: int = 0,
    ) -> rq.UnlockList:
        """Unlock requests in order of arrival; without `state`, what waits for an answer.

        Args:
            state: Only requests in this state.
            agent: Only what it asks or is asked.
            resource: Only what asks for just this (`task:T-3`, a path)
            limit: How many at most; 1 or more. A page's own bound holds, too.
            after: Only what comes after this: the `next` of the page before.
        """
        return await self.call(rq.Requests(
            state=state, agent=agent, resource=resource, limit=limit, after=after,
        ))

    async def request_answer(
        self, request: str, verdict: rq.UnlockVerdict, *, agent: str | None = None,
        keep: Sequence[str] = (), answer: str = "", force: bool = False,
        resource: str | None = None,
    ) -> rq.UnlockAnswered:
        """The holder's answer. `approve` releases its lease and grants to the asker in one
        transaction. `narrow` does the same, except for what the holder keeps. With `coexist` both
        hold it, and write it by turns.

        With `force` a person answers in its place (`agent` is that person's name).

        Args:
            request: The unlock request's id, like `U-3`.
            verdict: What is decided.
            agent: Whom it is asked for; default: this client's own agent.
            keep: Narrow: parts of what it holds, beside what is asked for.
            answer: What the holder says to it.
            force: A person overrides whose it is; this is noted.
            resource: The request has to be for this.
        """
        return await self.call(rq.RequestAnswer(
            agent=agent or await self.name(), request=request, verdict=verdict, keep=listed(keep),
            answer=answer, force=force, resource=resource, cwd=here(),
        ))

    async def request_withdraw(
        self, request: str, *, agent: str | None = None, resource: str | None = None,
    ) -> rq.Unlock:
        """The asker takes the request back, and leaves the queue.

        Args:
            request: The unlock request's id, like `U-3`.
            agent: Whom it is asked for; default: this client's own agent.
            resource: The request has to be for this.
        """
        return await self.call(rq.RequestWithdraw(
            agent=agent or await self.name(), request=request, resource=resource,
        ))

    async def open_session(
        self, *, agent: str | None = None, ends: bool = True, path: str = "", directory: str = "",
    ) -> rq.SessionOpened:
        """A mount namespace for an agent's process, in which what others hold is read-only; kept so
        as long as a process is in it. `ends`: the agent's session ends with its first process.

        Refused (BAD_TRANSITION) where this user can have no namespace, or no keeper runs.

        Args:
            agent: Whom it is asked for; default: this client's own agent.
            ends: The agent's session ends with its first process.
            path: The PATH that its programs are found by: git asks in it (git_guard/turn.py).
            directory: The directory in which it is going to work. Coord's own files are read-only
                there, except a worktree that contains this directory.
        """
        return await self.call(rq.OpenSession(
            agent=agent or await self.name(), ends=ends, path=path, directory=directory,
        ))

    async def join_session(self, pid: int, *, path: str = "") -> rq.SessionJoined:
        """The namespace that a command of an agent, which a person started by itself, may enter;
        made where there is none yet. Nulls: this process of this machine is no agent's, or in one
        already, or there can be none.

        Args:
            pid: The number of a process of this machine.
            path: The PATH that its programs are found by.
        """
        return await self.call(rq.JoinSession(pid=pid, path=path))

    async def agent_of_process(self, pid: int) -> rq.ProcessesAgent:
        """The agent in whose session a process of this machine is, as that agent's hooks have
        shown; null if none is known. `surely`: the session's own program was seen, too; otherwise a
        person may have typed the hook. A program with a token does not need to ask.

        Args:
            pid: The number of a process of this machine.
        """
        return await self.call(rq.AgentOfProcess(pid=pid))
