"""`coord launch`: agents at work on the backlog, seen live; `coord logs`: what they said."""

from __future__ import annotations

import os
import select
import shlex
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Annotated, Literal

from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from coordinator import profiles
from coordinator.cli.app import complain, out, people_only, print_json, say, seconds
from coordinator.cli.trust import heed
from coordinator.client.locating import locate_root
from coordinator.commands.lists import bar, in_line, span
from coordinator.commands.signatures import Argument, AsJson, Option, command
from coordinator.files.git import Git
from coordinator.files.roots import checkout
from coordinator.launch.attempt import Limits
from coordinator.launch.launcher import AGENTS_MAX, Landing, Launcher
from coordinator.launch.report import Report
from coordinator.rules.backlog import told_state
from coordinator.settings import load
from coordinator.words.refusals import Code, Exit, Refusal
from coordinator.words.texts import counted

#: How often the table is drawn; the backlog is asked for at a quarter of that.
FRAME_S = 0.25


@command("launch")
def launch(
    tasks: Annotated[
        str, Argument("A .yaml, .jsonl or .md file; `-`: the backlog as it is.")
    ] = "-",
    agents: Annotated[int | None, Option("How many at once (default 3).", "-n")] = None,
    agent: Annotated[list[str] | None, Option(
        "The profile (default shell); several, with how many of each.",
        "-a", metavar="PROFILE[:N]")] = None,
    command: Annotated[str | None, Option("The command, for the shell profile.", "-c")] = None,
    timeout: Annotated[str | None, Option("For one attempt (default 1h).")] = None,
    stall: Annotated[str | None, Option("Silence that ends an agent (launch.stall_s: 8m).")] = None,
    ttl: Annotated[str | None, Option("Silence that ends its leases (launch.ttl_s: 10m).")] = None,
    grace: Annotated[str | None, Option("Between SIGTERM and SIGKILL (default 10s).")] = None,
    isolation: Annotated[Literal["none", "worktree"], Option(
        "`worktree`: each agent works in a git worktree of its own, and its work lands on your "
        "branch when its leases allow it.")] = "none",
    verify: Annotated[str | None, Option(
        "With worktrees: run on what would land; if it fails, that does not land.",
        metavar="COMMAND")] = None,
    model: Annotated[str | None, Option("Passed on to the agent.")] = None,
    max_turns: Annotated[int | None, Option("Passed on to the agent.", least=1)] = None,
    budget_usd: Annotated[float | None, Option("Per task; passed on to the agent.")] = None,
    wait: Annotated[bool, Option("Stay while reviews wait for a verdict.")] = False,
    resume: Annotated[
        bool, Option("Go on with what an earlier launch left, as each launch does.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Run N agents on the backlog. Ctrl-C: finish what runs; again: stop now."""
    people_only("launching", "Add tasks instead (`coord task add`): the launch that runs you takes "
                "them up.")
    root = locate_root()
    _check_place(root)
    if not agent and command is None:
        raise Refusal(
            Code.INVALID, "It is not said which agents are to work. Nothing was started.",
            next="Add `--agent claude-code` (`coord agents profiles` lists them), or a program of "
                 "your own: --command 'my-agent --prompt-file {prompt_file}'.",
        )
    wanted = _wanted(agent or ["shell"], agents)
    for name in wanted:
        heed(root, name)
    chosen = {name: (profiles.load(name, root), count) for name, count in wanted.items()}
    if command is not None:
        name = "shell" if "shell" in chosen else next(iter(chosen))
        chosen[name] = chosen[name][0].with_command(command), chosen[name][1]
    given = load(root).settings.launch
    limits = Limits(
        ttl_s=_or(ttl, given.ttl_s, "--ttl"),
        timeout_s=_or(timeout, given.task_timeout_s, "--timeout"),
        stall_s=_or(stall, given.stall_s, "--stall"), grace_s=_or(grace, given.grace_s, "--grace"),
    )
    live = sys.stdout.isatty() and not as_json
    screen = _Screen(live=live, quiet=as_json)
    launcher = Launcher(
        root,
        chosen,
        limits,
        say=screen.say,
        expects_verdicts=(lambda: not launcher.draining.is_set()) if wait else lambda: False,
        landing=Landing(isolation == "worktree", verify),
        options=_options(model, max_turns, budget_usd),
    )
    launcher.prepare(None if tasks == "-" else Path(tasks))
    _on_signals(launcher, screen)
    if live:
        screen.say("`coord web` shows all of this in a browser, and takes your verdicts there.")
    launcher.start()
    screen.follow(launcher)
    made = launcher.report()
    if as_json:
        print_json(made)
    else:
        _tell(made)
    return Exit.OK if made.complete else Exit.INCOMPLETE


def _check_place(root: Path) -> None:
    """
    Raises:
        Refusal: INVALID: it is typed in a linked worktree; agents would work on another branch.
    """
    here = checkout(str(Path.cwd()))
    if here is not None and here.linked and Path(here.top) != root:
        raise Refusal(
            Code.INVALID, f"{here.top} is a linked worktree, and a launch works in the main one, "
            f"{root}, on the branch there. Nothing was started.",
            next=f"`cd {shlex.quote(str(root))}`, and repeat; `coord run` starts one agent here.")


def _wanted(given: list[str], number: int | None) -> dict[str, int]:
    """How many agents of each profile: `claude-code:2`, `codex:1`. Without numbers they share the
    whole number evenly, and the first ones get the remainder."""
    counts: dict[str, int] = {}
    names = dict.fromkeys(name.rpartition(":")[0] or name for name in given)
    if len(names) != len(given):
        raise Refusal(Code.INVALID, "Each profile is named once: `--agent claude-code:2`.")
    for text in given:
        name, _, count = text.rpartition(":")
        if name:
            counts[name] = _read_count(text, count)
    rest = [name for name in names if name not in counts]
    if not counts:
        return _shared(rest, max(3, len(rest)) if number is None else number)
    counts |= dict.fromkeys(rest, 1)
    if number is not None and number != sum(counts.values()):
        raise Refusal(
            Code.INVALID, f"--agents {number} is not what --agent adds up to "
            f"({sum(counts.values())}).", next="Leave --agents out.",
        )
    return {name: counts[name] for name in names}


def _read_count(text: str, count: str) -> int:
    if not count.isascii() or not count.isdigit() or not 1 <= int(count) <= AGENTS_MAX:
        raise Refusal(Code.INVALID,
                      f"--agent {text}: how many has to be a number from 1 to "
                      f"{AGENTS_MAX}.", next="For example: --agent claude-code:2")
    return int(count)


def _shared(names: list[str], number: int) -> dict[str, int]:
    if 0 < number < len(names):
        raise Refusal(Code.INVALID, f"{len(names)} profiles cannot share {number} agents.",
                      next=f"--agents {len(names)}, or fewer profiles.")
    each, over = divmod(number, len(names))
    return {name: each + (n < over) for n, name in enumerate(names)}


def _options(model: str | None, max_turns: int | None, budget_usd: float | None) -> dict[str, str]:
    given = {"model": model, "max_turns": max_turns, "budget_usd": budget_usd}
    return {name: f"{value:g}" if isinstance(value, float) else str(value)
            for name, value in given.items() if value is not None}


def _or(text: str | None, default: float, option: str) -> float:
    value = seconds(text, option)
    if value is not None and not 0 < value < 1e7:
        raise Refusal(Code.INVALID, f"{option} {text!r} is not a possible duration.",
                      next="Write 45, 45s, 30m, 2h or 1h30m.")
    return default if value is None else value


def _on_signals(launcher: Launcher, screen: _Screen) -> None:
    def interrupted(number: int, frame: FrameType | None) -> None:
        if launcher.draining.is_set():
            screen.later("Stopping now; unfinished work is flagged for review.")
            launcher.stop()
        else:
            screen.later("No new tasks; what runs is finished. Once more stops at once.")
            launcher.drain()

    def hung_up(number: int, frame: FrameType | None) -> None:
        screen.unheard()
        launcher.drain()  # nor can a person press Ctrl-C there

    screen.nobody_listens = launcher.drain
    signal.signal(signal.SIGINT, interrupted)
    signal.signal(signal.SIGTERM, interrupted)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # `nohup` has it ignored
        signal.signal(signal.SIGHUP, hung_up)


class _Screen:
    """Lines as they come; on a terminal, below them a table that is drawn anew."""

    def __init__(self, *, live: bool, quiet: bool) -> None:
        self._quiet = quiet
        self._console = out()
        self._live = Live(console=self._console, auto_refresh=False, transient=True) if live \
            else None
        self._pending: list[str] = []
        self._counts: dict[str, int] = {}
        self._counted_at = 0.0
        #: Called when the terminal was closed, or when the reader of the output has ended.
        self.nobody_listens: Callable[[], None] = lambda: None

    def unheard(self) -> bool:
        """Send output without a reader to the null device. Returns whether there was any. A failed
        write would end the launch and leave its agents behind. A full disk may have room again, so
        it does not count."""
        lost = [number for number in (1, 2) if _is_lost(number)]
        if lost:
            nowhere = os.open(os.devnull, os.O_RDWR)
            for number in lost:
                os.dup2(nowhere, number)
            os.close(nowhere)
        return bool(lost)

    def _failed(self) -> None:
        if self.unheard():
            self.nobody_listens()

    def say(self, line: str) -> None:
        """Print a line for the record."""
        try:
            self._say(line)
        except OSError:
            self._failed()

    def _say(self, line: str) -> None:
        if self._quiet:
            complain(in_line(line))
        elif self._live is not None:
            self._live.console.print(Text(in_line(line)))
        else:
            say(in_line(line))
            sys.stdout.flush()

    def later(self, line: str) -> None:
        """From a signal handler: print the line at the next turn, because a lock may be held now.
        """
        self._pending.append(line)

    def follow(self, launcher: Launcher) -> None:
        """Show the agents until the launch is over."""
        if self._live is None:
            while not launcher.wait(FRAME_S):
                self._flush()
        else:
            with self._live:
                while not launcher.wait(FRAME_S):
                    self._flush()
                    self._draw(self._live, self._table(launcher))
                self._draw(self._live, Text(""))
        self._flush()

    def _draw(self, live: Live, what: RenderableType) -> None:
        try:
            live.update(what, refresh=True)
        except OSError:
            self._failed()

    def _flush(self) -> None:
        while self._pending:
            self.say(self._pending.pop(0))

    def _table(self, launcher: Launcher) -> RenderableType:
        now = time.monotonic()
        if now - self._counted_at > 4 * FRAME_S:
            self._counted_at = now
            try:
                self._counts = launcher.counts()
            except Refusal as refusal:
                self._pending.append(refusal.message)
        table = Table(box=None, padding=(0, 1, 0, 0), expand=True, show_header=False)
        table.add_column(no_wrap=True, max_width=16)
        table.add_column(no_wrap=True, max_width=7)
        table.add_column(no_wrap=True, justify="right", max_width=7)
        table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
        for worker in launcher.workers:
            task = worker.task
            line = worker.last_line or worker.title if task else worker.doing
            table.add_row(worker.agent, task or "-", span(now - worker.since) if task else "",
                          Text(in_line(line), style="" if task else "dim"))
        done, total = self._counts.get("done", 0), sum(self._counts.values())
        rest = ", ".join(f"{n} {state}" for state, n in sorted(self._counts.items())
                         if state != "done" and n)
        ending = "  (finishing)" if launcher.draining.is_set() else ""
        return Group(table, Text(f"{bar(done, total, 24)} done  {rest}{ending}"))


def _tell(made: Report) -> None:
    parts = ", ".join(f"{n} {told_state(state)}"
                      for state, n in sorted(made.tasks.items())) or "no tasks"
    gained = ""
    if made.speedup >= 1.1:  # below, there was too little to do, or too little of it was finished
        gained = (f" (one after the other: {made.serial_s:.1f} s, so {made.speedup:.1f} times as "
                  "fast)")
    say(f"\n{parts}; {made.wall_s:.1f} s with {counted(made.agents, 'agent')}{gained}")
    if made.cost_usd is not None or made.tokens_out is not None:
        _tell_cost(made)
    say(", ".join((counted(made.conflicts, "conflict"), counted(made.redirects, "redirect"),
                   counted(made.reviews, "review"))))
    if made.unleased:
        say(f"changed meanwhile without a lease: {_some(made.unleased)} "
            "(`coord explain FILE` tells)")
    if made.target is not None:
        _tell_landed(made)
    if made.by_others:
        say(f"done by others meanwhile: {_some(made.by_others)}")
    idle = _list_idle(made)
    if idle:
        say(f"done without a change to their files: {_some(idle)}")
    for line in made.open[:20]:
        say("  " + in_line(line))
    if len(made.open) > 20:
        say(f"  … and {len(made.open) - 20} more")
    for line in made.problems:
        complain("  " + in_line(line))
    if made.unverified:
        say(f"not verified yet: {_some(made.unverified)} (what breaks the command is opened "
            "again: `coord verify` tells)")
    _tell_next_step(made)


def _list_idle(made: Report) -> list[str]:
    return list(dict.fromkeys(attempt.task for attempt in made.attempts
                          if attempt.outcome == "done" and attempt.changed is False))


def _tell_cost(made: Report) -> None:
    cost = f"{made.cost_usd:.2f} USD, " if made.cost_usd is not None else ""
    say(f"as the agents tell: {cost}{made.tokens_in or 0:,} tokens in, "
        f"{made.tokens_out or 0:,} out")


def _tell_next_step(made: Report) -> None:
    """Print the next command, if there is one."""
    if not made.tasks and made.given_up:
        say(f"given up before: {_some(made.given_up)}")
        say("next: coord dead list, then coord task retry TASK")
    elif not made.tasks:
        say("next: coord launch FILE, with tasks that are not in the backlog yet"
            if Path("tasks.yaml").exists() else
            "next: coord task template > tasks.yaml, then coord launch tasks.yaml")
    elif made.tasks.get("review") or made.barred:
        say("next: coord review list")
    elif made.tasks.get("dead"):
        say("next: coord logs TASK, then coord task retry TASK")
    elif made.tasks.get("blocked"):
        say("next: coord dead list, then coord task retry TASK")
    elif any(made.tasks.get(state) for state in ("ready", "pending", "failed")):
        say("next: coord launch --resume, with the same options, goes on with what is left")


def _some(tasks: Sequence[str], most: int = 20) -> str:
    more = len(tasks) - most
    return ", ".join(tasks[:most]) + (f" and {more} more" if more > 0 else "")


def _tell_landed(made: Report) -> None:
    paths = {path for landed_work in made.landed for path in landed_work.paths}
    say(f"landed on {made.target}: {counted(len(made.landed), 'task')}, "
        f"{counted(len(paths), 'file')}")
    for kept in made.not_landed[:20]:
        say(in_line(f"  not landed: {kept.task}, on {kept.branch} in {kept.worktree}"))
        say(in_line(f"    {kept.why}"))
    for first in {kept_work.worktree: kept_work for kept_work in made.not_landed[:20]}.values():
        place = shlex.quote(first.worktree)
        if Git(Path(first.worktree)).maybe("status", "--porcelain"):  # a merge would not take that
            say(f"  look: git -C {place} status (not all of it is committed there); `coord review "
                "list` has what waits for a verdict")
        else:
            keep, drop = "", ""
            if first.review is not None:
                keep = f", then coord review keep {first.review}"
                drop = f"coord review revert {first.review}, then "
            say(f"  look: git log -p {made.target}..{first.branch}; take it: git merge "
                f"{first.branch}{keep}; drop it: {drop}git worktree remove --force {place} and "
                f"git branch -D {first.branch}")


def _is_lost(number: int) -> bool:
    """Whether writing to this descriptor fails because the terminal was closed or the pipe has no
    reader."""
    poll = select.poll()
    poll.register(number, select.POLLOUT)
    return any(events & (select.POLLHUP | select.POLLERR | select.POLLNVAL)
               for _, events in poll.poll(0))
