"""Answering at once whether a commit, or an addition to git's index, touches what others hold.

Agents' git and git's commit hooks ask this first, by sh and a bare interpreter, because the full
check in git_guard/ takes much longer to start. The answer is never "no". If others hold a file of
the commit, or if the question is not simple, the answer is to run the full check, which decides and
explains.

    TOP NUL SUBCOMMAND [PARENT [amends]] NUL <git's list of what it would take in> NUL <exit code>

The module also ends the turn of a git command when its process ends. It watches these processes by
pidfd on Linux, in memory. After a restart a turn ends with its lease, within two minutes.
slices/guard/git_turns.py decides who may have the turn.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from coordinator.daemon.hook_protocol import Answer
from coordinator.daemon.request_router import RequestRouter
from coordinator.daemon.running_calls import ObservationFile
from coordinator.kernel.core import Actor, Service, listed
from coordinator.kernel.use_cases import Steps, Write
from coordinator.rules import git_listings
from coordinator.slices.guard import git_turns
from coordinator.store.ledger import Job, Tx, View
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal

log = logging.getLogger("coord.git")
#: The codes of an answer: nobody else holds a file of it, or the full check has to decide.
FREE, RUN_CHECK = 0, 20
#: How many commits are remembered, to know whose commit a command would replace.
COMMITS_MAX = 1_000
#: Files of one question.
FILES_MAX = 500
#: Command -> reader of git's list; and the exit codes after which the list is complete. 1 means
#: "nothing to commit", or "some of these are ignored".
_READERS: dict[bytes, Callable[[bytes], list[str]]] = {
    b"add": git_listings.added, b"rm": git_listings.added, b"pre-commit": git_listings.staged,
    b"commit": lambda data: git_listings.committed(data)[0],
}
_ENDED = {b"add": (b"0", b"1"), b"rm": (b"0",), b"commit": (b"0", b"1"), b"pre-commit": (b"0",)}
_encode = msgspec.json.Encoder().encode


class GitQuestions:
    """Answers the questions of git. Used in the loop's thread."""

    def __init__(self, router: RequestRouter) -> None:
        self._router = router
        #: Notes which agent commits on top of which commit.
        self.note_commit: Callable[[str, str], None] = lambda parent, agent: None
        #: The agent that committed on top of a commit last.
        self.find_committer: Callable[[str], str | None] = lambda parent: None

    def ask(self, token: str | None, payload: bytes, answer: Callable[[Answer], None],
            caller: int) -> None:
        """Answer a question of git. `caller` is the process that asks."""
        name, parent, amends = [*(
            word.decode("ascii", "replace") for word in b"".join(
                payload.split(b"\0", 2)[1:2]).split(b" ")), "", "", ""][:3]
        paths = self._paths(payload)
        if paths is None:
            answer(Answer(RUN_CHECK))
            return

        def answer_held(value: Any) -> None:
            if isinstance(value, rq.GuardHeldList) and not value.items:
                maker = self.find_committer(parent) if amends else None
                if maker not in (None, value.agent):
                    answer(Answer(RUN_CHECK))
                    return
                if value.agent is not None and parent:
                    self.note_commit(parent, value.agent)
                self._answer_free([] if name in ("add", "rm") else paths, answer)
            elif isinstance(value, rq.GuardHeldList) and value.agent is None:
                self._router.ask("agent_of_process", _encode({"pid": caller}), None,
                                 check_for_agent)
            else:
                answer(Answer(RUN_CHECK))

        def check_for_agent(value: Any) -> None:
            agent = value.agent if isinstance(value, rq.ProcessesAgent) else None
            if agent is None:
                answer(Answer(RUN_CHECK))
            else:
                self._check(paths, agent, None, answer_held)

        self._check(paths, None, token, answer_held)

    def _answer_free(self, paths: list[str], answer: Callable[[Answer], None]) -> None:
        """Answer for files that nobody holds. The full check tells what other trees change, and
        leaves out what waits for a person's verdict, too."""
        service, tree = self._router.service, self._router.service.tree
        if paths and self._router.look(
                lambda view: view.has("reviews_list", "open", 1, None, None, 0, 0)):
            answer(Answer(RUN_CHECK))
            return
        if not paths or tree.alone or service.settings.worktrees.overlap == "ignore":
            answer(Answer(FREE))
            return
        names = [name for path in paths if (name := tree.relative(path))]
        self._router.engine.task(self._router.engine.do(partial(
            service.trees.find_beside, tree.worktree_of(paths[0]), names)),
            lambda value: answer(Answer(RUN_CHECK if value else FREE)))

    def _check(self, paths: list[str], agent: str | None, token: str | None,
               then: Callable[[Any], None]) -> None:
        asked = rq.GuardCheck(paths=paths, agent=agent)
        self._router.ask("guard_check", _encode(asked), token, then)

    def _paths(self, payload: bytes) -> list[str] | None:
        """The absolute paths that git would take in; None if the full check has to read them."""
        head, _, code = payload.rpartition(b"\0")
        top, name, data = [*head.split(b"\0", 2), b"", b""][:3]
        name = name.partition(b" ")[0]
        tree = self._router.service.tree
        root = os.fsdecode(top)
        if root != str(tree.root) and root not in tree.worktrees():
            return None  # the tree of another repository, or of one around this one
        read = _READERS.get(name)
        if read is None or code not in _ENDED[name]:
            return None  # git was interrupted or has failed, so its list is not complete
        try:
            paths = [f"{root}/{file}" for file in read(data)]
            for path in paths:
                path.encode()
        except ValueError:  # a name that is not UTF-8 raises it, too
            return None
        return paths if len(paths) <= FILES_MAX else None


class GitProcesses:
    """Ends the turns of git commands with their processes. Used in the loop's thread.

    Args:
        agent_of: gives the agent in whose session a process is; None if it is in none of them.
        commits: the file that lists who committed on top of what, and when.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, router: RequestRouter,
                 agent_of: Callable[[int], str | None], commits: Path) -> None:
        self._loop = loop
        self._router = router
        self._agent_of = agent_of
        #: Descriptor of a git process -> its agent.
        self._running: dict[int, str] = {}
        self._file = ObservationFile(commits, "the makers of commits")
        #: Parent -> who committed on top of it, and when (UTC): several, in several working trees.
        self._commits = self._file.read(dict[str, dict[str, str]]) or {}
        #: Called when a git process has ended.
        self.on_end: Callable[[], None] = lambda: None

    def take(self, svc: Service, req: rq.GitTurn) -> Steps:
        """See `requests.GitTurn`."""
        agent = self._agent_of(req.pid) or ""
        if agent and (refusal := self._find_replaced(agent, req)) is not None:
            return refusal
        if req.parent is not None:
            self.note_commit(req.parent, agent)
            return rq.GitTurnTaken(agent=agent or None)
        try:
            process = os.pidfd_open(req.pid)
        except (OSError, OverflowError):
            return rq.GitTurnTaken(agent=agent or None)  # the process has ended

        def decide(tx: Tx, actor: Actor) -> Any:
            try:
                tree = git_turns.tree_of(svc, tx, req.top)
            except Refusal:
                return rq.GitTurnTaken(agent=None)  # the tree is not of this repository
            refusal = git_turns.take(svc, tx, agent, [(req.command, tree)])
            return refusal or rq.GitTurnTaken(agent=agent or None)

        taken = yield Write(decide, last=True, needs=git_turns.needs(req.top))
        if isinstance(taken, Refusal) or not agent:
            os.close(process)
        else:
            self._running[process] = agent
            self._loop.add_reader(process, self._ended, process)
        return taken

    def note_commit(self, parent: str, agent: str) -> None:
        """Note that an agent is about to commit on top of this commit; empty: a person is."""
        makers = self._commits.pop(parent, {})
        if agent:
            self._commits[parent] = {**makers, agent: self._router.now()}
        if len(self._commits) > COMMITS_MAX:
            del self._commits[next(iter(self._commits))]
        self._file.write(self._commits)

    def find_committer(self, parent: str) -> str | None:
        """The agent that committed on top of this commit last, if that is known."""
        return next(reversed(self._commits.get(parent, {})), None)

    def runs(self, agent: str) -> bool:
        """Whether a git process of this agent has the turn."""
        return agent in self._running.values()

    def _find_replaced(self, agent: str, req: rq.GitTurn) -> Refusal | None:
        """The refusal of a command that takes another agent's commit out of the branch. An agent
        that began after the commit was made, and whose maker is gone, knows whose it is."""
        made = {maker: made_at for parent in req.replaces
                if agent not in (makers := self._commits.get(parent, {}))
                for maker, made_at in makers.items()}

        def list_makers(view: View) -> list[str]:
            asker = view.agent(agent)
            return sorted(maker for maker, made_at in made.items() if (
                (row := view.agent(maker)) is not None and row.state != "gone")
                or (asker is not None and asker.registered_at <= made_at))

        present = self._router.look(list_makers)
        if not isinstance(present, list) or not present:
            return None
        return Refusal(
            Code.LOCKED, f"`{req.command[:200]}` would replace a commit of {listed(present)}. It "
            "was not run, and nothing was changed.",
            next="Make a commit of your own on top: `git commit`, or `git revert COMMIT`.",
            holders=present)

    def renew(self) -> None:
        """Renew the turns of running processes."""
        for agent in set(self._running.values()):
            self._submit(partial(git_turns.renew, self._router.service, agent=agent))

    def close(self) -> None:
        """Stop watching the processes."""
        for process in list(self._running):
            self._drop(process)

    def _ended(self, process: int) -> None:
        agent = self._running[process]
        self._drop(process)
        self.on_end()
        if agent in self._running.values():
            return  # another git process of the agent still runs

        def job(tx: Tx) -> None:
            git_turns.end(tx, agent)

        self._submit(job)

    def _submit(self, job: Job) -> None:
        self._router.writer.submit(job, lambda value: None)

    def _drop(self, process: int) -> None:
        del self._running[process]
        self._loop.remove_reader(process)
        with contextlib.suppress(OSError):
            os.close(process)
