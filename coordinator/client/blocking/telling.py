# Made by scripts/blocking_client.py from coordinator/client/asynchronous/telling.py; do not edit.
"""Methods of `Client`: steps, dead letters and messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from coordinator.client.asking import Asking, json, listed
from coordinator.words import requests as rq


class Telling(Asking):
    """Asking about steps, dead letters and messages."""

    def step_add(
        self, name: str, *, agent: str | None = None, arguments: Any = None,
        resources: Sequence[str] = (), delay: float | None = None, attempts_max: int = 10,
        why: str = "",
    ) -> rq.Step:
        """Put a step that is blocked off: it is on disk before this is answered, and given to
        whoever asks for steps of its name (`step_next`) after a while, again and again until it is
        done, or dead.

        Args:
            name: What is to be done: the name that `step_next` asks for.
            agent: Whom it is asked for; default: this client's own agent.
            arguments: Any JSON: what it is done with.
            resources: What it was refused for.
            delay: Seconds; default: `backlog.backoff_s`, longer each time.
            attempts_max: How often it is tried at most.
            why: Why, in words.
        """
        return self.call(rq.StepAdd(
            agent=agent or self.name(), name=name, arguments=json(arguments, "arguments"),
            resources=listed(resources), delay_s=delay, attempts_max=attempts_max, why=why,
        ))

    def step_next(
        self, names: Sequence[str], *, agent: str | None = None, wait: float = 0.0,
        give: float = 60.0,
    ) -> rq.Step:
        """The next step of one of these names whose time has come.

        Args:
            names: Names of steps that whoever asks can do.
            agent: Whom it is asked for; default: this client's own agent.
            wait: How long to wait for it at most (seconds); 0: not at all.
            give: So many seconds it has for it; then another attempt is due.
        """
        return self.call(rq.StepNext(
            agent=agent or self.name(), names=listed(names), wait_s=wait, give_s=give,
        ))

    def step_done(self, step: str, attempt: int, *, agent: str | None = None) -> rq.Step:
        """A step that you were given is done.

        Args:
            step: The step's id, like `S-3`.
            attempt: Which attempt this answers, from 1, as it was given.
            agent: Whom it is asked for; default: this client's own agent.
        """
        return self.call(rq.StepDone(
            agent=agent or self.name(), step=step, attempt=attempt,
        ))

    def step_fail(
        self, step: str, attempt: int, *, agent: str | None = None, why: str = "",
    ) -> rq.Step:
        """A step that you were given is still blocked, or failed: it is tried again later, at most
        `attempts_max` times; then it is a dead letter.

        Args:
            step: The step's id, like `S-3`.
            attempt: Which attempt this answers, from 1, as it was given.
            agent: Whom it is asked for; default: this client's own agent.
            why: Why, in words.
        """
        return self.call(rq.StepFail(
            agent=agent or self.name(), step=step, attempt=attempt, why=why,
        ))

    def step_list(
        self, *,
        state: Literal["open", "waiting", "given", "done", "dead", "dropped", "all"] = "open",
        kind: Literal["call", "acquire", "propose", "webhook"] | None = None, limit: int = 200,
        after: int = 0,
    ) -> rq.StepList:
        """Steps in their order; without `state`, those that are not closed.

        Args:
            state: Only steps in this state.
            kind: Which kind.
            limit: How many at most; 1 or more. A page's own bound holds, too.
            after: Only what comes after this: the `next` of the page before.
        """
        return self.call(rq.Steps(state=state, kind=kind, limit=limit, after=after))

    def dead_list(
        self, *, kind: str | None = None, after: str | None = None, limit: int = 200,
    ) -> rq.DeadList:
        """What was tried as often as it may be, and is given up until a person acts: tasks, changes
        of keys, steps; the newest first.

        Args:
            kind: Only these: task, change, call, acquire, propose or webhook.
            after: Only what comes after this: the `next` of the page before.
            limit: How many at most; 1 or more. A page's own bound holds, too.
        """
        return self.call(rq.Dead(kind=kind, after=after, limit=limit))

    def dead_show(self, id: str) -> rq.DeadLetter:
        """One dead letter, whole.

        Args:
            id: A dead letter's id: `T-3`, `K-3` or `S-3`.
        """
        return self.call(rq.DeadShow(id=id))

    def dead_retry(self, id: str) -> rq.DeadLetter:
        """Let it be tried again, from its first attempt on.

        Args:
            id: A dead letter's id: `T-3`, `K-3` or `S-3`.
        """
        return self.call(rq.DeadRetry(id=id))

    def dead_drop(self, id: str) -> rq.DeadLetter:
        """Give it up for good. Whoever had asked is told.

        Args:
            id: A dead letter's id: `T-3`, `K-3` or `S-3`.
        """
        return self.call(rq.DeadDrop(id=id))

    def message_send(
        self, to: str, text: str, *, agent: str | None = None, task: str | None = None,
        reply_to: str | None = None,
    ) -> rq.MessageTold:
        """Say something to an agent, to all live agents (`all`), or to a person (`human`). An agent
        hears it once, with its next hook call; a person when he lists messages.

        Args:
            to: An agent's name, `all`, or `human`.
            text: The text.
            agent: Whom it is asked for; default: this client's own agent.
            task: What it is about.
            reply_to: The message that it answers.
        """
        return self.call(rq.MessageSend(
            agent=agent or self.name(), to=to, text=text, task=task, reply_to=reply_to,
        ))

    def message_list(
        self, *, reader: str | None = None, task: str | None = None, thread: str | None = None,
        search: str | None = None, since: float | None = None, unread: bool = False,
        limit: int = 100, before: int | None = None,
    ) -> rq.MessageList:
        """The newest `limit` messages in order. An agent that asks gets its own messages, those to
        it, and all of a task or thread that it names.

        Args:
            reader: Only of and to this agent, or `human`.
            task: Only of this task.
            thread: Only the thread of this message.
            search: All of these words are in it, or in a sender's name.
            since: Sent within these seconds.
            unread: Only what the reader has not been told.
            limit: How many at most; 1 or more. A page's own bound holds, too.
            before: Only older ones than this number.
        """
        return self.call(rq.Messages(
            reader=reader, task=task, thread=thread, search=search, since_s=since, unread=unread,
            limit=limit, before=before,
        ))

    def messages_see(self, up_to: int) -> rq.MessagesSeen:
        """A person has read what was said to people, up to a number.

        Args:
            up_to: The number of the last message that was read.
        """
        return self.call(rq.MessagesSee(up_to=up_to))
