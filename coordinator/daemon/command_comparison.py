"""Comparing files before and after an agent's command, to find what it changed without a lease.

Before each command the module notes the files that others hold and what all share in git. The notes
are kept in memory. A restart loses them, but the watcher still sees each write. `rules.versions`
decides whether a difference is a violation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from coordinator.daemon import file_stamps, moved_files
from coordinator.daemon.file_stamps import Folder, Look
from coordinator.daemon.request_router import RequestRouter
from coordinator.daemon.running_calls import CLOCK_MS, WORDS_MAX, RunningCalls
from coordinator.daemon.shared_git import SharedGit, State
from coordinator.dialects.decode import HookCall
from coordinator.files.blobs import FILE_FROM
from coordinator.kernel import repository_files
from coordinator.kernel.leasing.overlapping import holders_of_regions
from coordinator.rules.commands import words as words_of
from coordinator.rules.globs import overlaps
from coordinator.rules.leases import as_resource
from coordinator.rules.versions import Watched, violated
from coordinator.slices.guard import attribution, git_moves, renames, shell_commands
from coordinator.slices.guard.attribution import Running
from coordinator.slices.guard.git_moves import Moved
from coordinator.slices.guard.shell_commands import NO_FILE, UNKNOWN
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import VersionRow
from coordinator.words.clock import iso
from coordinator.words.refusals import Refusal
from coordinator.words.resource_names import path_scope

#: Commands that are compared at once; the oldest are given up.
COMMANDS_MAX = 200
#: When (seconds after a command) it is looked once more whether what it left running has written.
LATER_S = 1.0
#: How many small files are read before a command because nobody has kept their content.
READ_AT_ONCE = 64
#: A working tree (None: the main one), and a file in it.
_Name = tuple[str | None, str]


@dataclass(slots=True, eq=False)
class _Command:
    """A command (or unknown tool) that runs now.

    Attributes:
        began: Unix ms.
        git: what all share in git, as it was before; None: nothing is known of it.
        found: the files that it has changed, once it is over and that is being recorded.
    """

    holder: str
    session: str
    sub: str
    call_id: str
    looks: list[Look]
    folders: list[Folder]
    began: int
    git: State | None
    running: Running
    found: set[str] | None = None


class CommandComparison:
    """One daemon's. Used from the loop's thread."""

    def __init__(self, router: RequestRouter, calls: RunningCalls) -> None:
        self._router = router
        self._calls = calls
        self._git = SharedGit(router.service.tree.root)
        self._commands: list[_Command] = []
        #: Called, in a thread, with files that are different again a moment after a command.
        self.on_late: Callable[[list[str]], None] = lambda paths: None

    def begin(self, heard: HookCall, holder: str, protect: list[shell_commands.Held],
              now_ms: int) -> None:
        """A command is about to run; `protect`: what others hold."""
        service = self._router.service
        most = service.settings.review.file_bytes_max
        seen = [file_stamps.look(holding, most) for holding in protect if holding.kind
                in ("file", "absent")]
        rows = self._router.look(lambda view: file_stamps.folders(service, view, protect))
        below = rows if isinstance(rows, list) else []
        words = words_of(heard.call.command) if heard.call is not None else ()
        self._commands.append(_Command(holder, heard.session, heard.sub, heard.call_id, seen,
                                       below, now_ms, self._git.now(),
                                       Running(holder, True, frozenset(words[:WORDS_MAX]))))
        del self._commands[:-COMMANDS_MAX]
        self._keep_theirs([*seen, *(look for folder in below for look in folder.looks.values())])

    def _keep_theirs(self, looks: Sequence[Look]) -> None:
        """Keep the contents of what others hold, because the command may destroy them, and the
        difference tells whose part of a file it changed. They are read before the command can
        begin, except large ones and a long list."""
        known_looks = [look for look in looks if look.hash not in (None, UNKNOWN, *NO_FILE)]
        rows = self._router.look(lambda view: [
            look for look in known_looks
            if not view.has("blob_has", look.hash)]) if known_looks else []
        if isinstance(rows, list) and rows:
            names = {(item.held.worktree, item.held.name): item.stamp for item in rows}
            small = [name for name, stamp in names.items()
                     if stamp is not None and stamp[1] <= FILE_FROM][:READ_AT_ONCE]
            self._router.engine.task(self._keep(
                self._read(small), [*(names.keys() - small)]))

    def _read(self, names: Sequence[_Name]) -> list[repository_files.Bytes]:
        return [repository_files.look(self._router.service, worktree, name, keep=True)
                for worktree, name in names]

    async def _keep(self, matches: list[repository_files.Bytes], names: Sequence[_Name]) -> None:
        engine = self._router.engine
        more = await engine.do(lambda: self._read(names)) if names else []
        await engine.write(partial(_kept, [*matches, *(more if isinstance(more, list) else ())]))

    def git_had_its_turn(self) -> None:
        """Compare commands from now on: git had the right to its changes so far."""
        now = self._git.now() if self._commands else None
        for command in self._commands:
            command.git = now

    def look_again(self, heard: HookCall, then: Callable[[dict[str, list[str]]], None]) -> None:
        """Record what commands of this session changed that others hold, whatever becomes of this
        call. `then` gets what the session is told, by agent."""
        if not any((command.session, command.sub) == (heard.session, heard.sub)
                   for command in self._commands):
            then({})
        else:
            self._router.engine.task(self._compare_and_record(heard), lambda fields: then(
                fields if isinstance(fields, dict) else {}))

    def covers(self, agent: str, path: str) -> bool:
        """Whether what a command of this agent, which runs still, does to a file is looked at when
        it ends; or was just now."""
        return any(_covers(command, path) for command in self._commands if command.holder == agent)

    async def _compare_and_record(self, heard: HookCall) -> dict[str, list[str]]:
        sentences: dict[str, list[str]] = {}
        commands = [command for command in self._commands
                    if (command.session, command.sub) == (heard.session, heard.sub)]
        try:
            looked_at = self._router.now()
            found_by, moved = await self._compare(heard, commands)
            for agent, breakages in found_by:

                def job(
                    tx: Tx, agent: str = agent,
                    found_breakages: list[shell_commands.Broken] = breakages
                ) -> list[str]:
                    return shell_commands.violation(self._router.service, tx, agent,
                                                    found_breakages)

                rows = await self._router.engine.decide(job)
                if isinstance(rows, list):
                    sentences[agent] = rows
            for old, new in moved.items():
                await self._router.engine.decide(partial(
                    renames.follow, self._router.service, old=old, new=new, by=looked_at))
        finally:
            over = [command for command in commands if command.found is not None]
            self._commands = [command for command in self._commands if command not in over]
        for command in over:
            self._router.engine.task(self._look_later(command))
        for command in commands:
            rows = await self._git_moves(command)
            if rows:
                sentences.setdefault(command.holder, []).extend(rows)
        return sentences

    async def _compare(self, heard: HookCall, commands: list[_Command]
                       ) -> tuple[list[tuple[str, list[shell_commands.Broken]]], dict[str, str]]:
        """What commands of this session changed that others hold, and what they moved, by its old
        name. A command is compared when it ends, and at the session's next call."""
        result: dict[str, dict[tuple[str, str | None], shell_commands.Broken]] = {}
        moved: dict[str, str] = {}
        for command in commands:
            matches: set[str] = set()
            different, elsewhere = await self._router.engine.do(partial(self._followed, command))
            parts = [look.held.name for look in different
                     if look.held.is_part and look.held.worktree is None]
            if parts:
                await self._keep([], [(None, fromkey) for fromkey in dict.fromkeys(parts)])
            moved |= elsewhere
            for item in different:
                broken = self._changed(command, item)
                if broken is not None:  # a leased file below a leased directory is one
                    result.setdefault(command.holder, {}).setdefault(
                        (broken.name, broken.worktree), broken)
                    if broken.worktree is None:
                        matches.add(broken.name)
            ended = heard.moment == "after" and heard.call_id == command.call_id
            if ended or heard.moment in ("stop", "end", "sub stop", "prompt"):
                command.found = matches
        return [(agent, list(found.values())) for agent, found in result.items()], moved

    async def _look_later(self, command: _Command) -> None:
        """Look again a second later, because a process that the command left may write through a
        memory map, which the kernel reports to nobody. Attribution is the same as for the watcher.
        """
        await asyncio.sleep(LATER_S)

        def look() -> None:
            late = [look.held.name for look in self._looked_at(command)
                    if look.held.worktree is None and not look.top]
            if late:
                self.on_late(late)

        await self._router.engine.do(look)

    async def _git_moves(self, command: _Command) -> list[str]:
        """What a command did, without the turn, to what all share in git. Returns what its agent is
        told."""
        before, now = command.git, self._git.now()
        if before is None or now is None or before == now:
            return []
        command.git = now
        if self._router.look(lambda view: git_moves.has_turn(view, command.holder)) is True:
            return []
        moved = await self._router.engine.do(partial(self._git.moved, before, now))
        if not isinstance(moved, Moved) or not (moved.heads or moved.staged):
            return []
        rows = await self._router.engine.write(partial(
            git_moves.tell, agent=command.holder, moved=moved, since=iso(command.began),
            busy=self._calls.busy_since(command.began)))
        return rows if isinstance(rows, list) else []

    def _looked_at(self, command: _Command) -> list[Look]:
        """What has changed of what was looked at before the command. In a thread."""
        command.folders += [made for look in command.looks
                            if (made := file_stamps.made_a_directory(look)) is not None]
        every = [*command.looks]
        for folder in command.folders:
            every += file_stamps.again(self._router.service, folder)
        return [look for look in every if file_stamps.stamp_of(look) != look.stamp]

    def _followed(self, command: _Command) -> tuple[list[Look], dict[str, str]]:
        """What has changed, and where the files are now that are missing from their names. In a
        thread."""
        different = self._looked_at(command)
        return different, moved_files.moved(
            self._router.service, command.looks, command.folders) if different else {}

    def _changed(self, command: _Command, look: Look) -> shell_commands.Broken | None:
        stamp = file_stamps.stamp_of(look)
        if stamp == look.stamp:
            return None
        now = file_stamps.read(look.held.path, self._router.service.settings.review.file_bytes_max)
        seen = Watched(
            before=look.hash, now=now, recorded=self._recorded(look),
            holder_busy=any(self._calls.was_busy(holder, command.began)
                            for holder in self._holders(look.held) - {command.holder}),
        )
        before, look.stamp, look.hash = look.hash, stamp, now
        if not violated(seen) or not self._still_held(look.held):
            return None
        return shell_commands.Broken(look.held.name, look.held.holder, before, look.held.worktree,
                                     now, iso(command.began), self._list_others(command, look.held))

    def _list_others(self, command: _Command, held: shell_commands.Held) -> tuple[str, ...]:
        """Agents whose commands may have changed this file, too."""
        changed = file_stamps.changed_at(held.path)
        if changed is not None and command.began > changed + CLOCK_MS:
            return ()  # it was changed before this command
        first, last = (command.began, self._router.now_ms()) if changed is None else (
            changed - CLOCK_MS, changed + CLOCK_MS)
        calls = self._calls.between(first, last)
        others = self._router.look(lambda view: attribution.list_other_writers(
            view, held.name, command.running, held.holder, calls))
        return tuple(others) if isinstance(others, list) else ()

    def _holders(self, held: shell_commands.Held) -> set[str]:
        """All possible writers of the file. Several may hold regions of it."""
        if held.worktree is not None or held.name.endswith("/"):
            return {held.holder}
        holders = self._router.look(
            lambda view: holders_of_regions(view, held.name, self._router.service.fold_case))
        return {held.holder} | (holders if isinstance(holders, set) else set())

    def _still_held(self, held: shell_commands.Held) -> bool:
        """Once its lease has ended, a file is anybody's to write."""
        return bool(self._router.look(lambda view: view.has("lease_get", held.token)))

    def _recorded(self, look: Look) -> str | None:
        """What the holder is known to have written. A holder with hooks was busy at each write of
        its own. What the watcher attributes to it may be the command's."""
        def reading(view: View) -> str | None:
            holder = view.agent(look.held.holder)
            if look.held.worktree is not None or (holder and holder.hooked_at is not None):
                return look.hash
            version = view.first(VersionRow, "version_get", look.held.name)
            return version.hash if version is not None else look.hash

        message = self._router.look(reading)
        return look.hash if isinstance(message, Refusal) else message


def _kept(contents: Sequence[repository_files.Bytes], tx: Tx) -> None:
    for content in contents:
        repository_files.keep(tx, content)


def _covers(command: _Command, path: str) -> bool:
    if command.found is not None:
        return path in command.found
    return any(f"{path}/".startswith(f"{look.held.name}/") and look.held.worktree is None
               for look in command.looks) or any(
        folder.held.worktree is None and (path in folder.looks or _is_below(folder.held, path))
        for folder in command.folders)


def _is_below(held: shell_commands.Held, path: str) -> bool:
    kind = "glob" if held.kind == "glob" else "dir"
    return overlaps(as_resource(path, "file", path_scope(path)),
                    as_resource(held.name, kind, held.scope))
