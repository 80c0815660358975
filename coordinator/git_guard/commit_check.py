"""Deciding whether a commit or a push may happen: it asks the coordinator who holds the files.

A commit is refused for files that others hold. A push is refused for files that its commits changed
while another held them, until that holder has finished: half of an agent's work does not leave the
machine. context_archive/decisions.md has the reasons. The check changes no index, commit or lease.
A person overrides it with COORD_GUARD=off, which is recorded.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import shlex
import sys
from collections.abc import Collection, Mapping, Sequence
from fnmatch import fnmatch
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from coordinator._git_queue import HOLDER
from coordinator.client.client import Client
from coordinator.files import ownership
from coordinator.files.git import under_way
from coordinator.files.roots import STATE_DIR, find_root
from coordinator.git_guard.committer import Committer
from coordinator.wiring import git_repository
from coordinator.wiring.git_repository import Push
from coordinator.words import requests as rq
from coordinator.words.clock import from_iso
from coordinator.words.refusals import Refusal
from coordinator.words.resource_names import HEADER, from_root, kind_of, path_of
from coordinator.words.texts import harmless, quoted

#: The variable and the value with which a person overrides the guard.
SWITCH, OFF = "COORD_GUARD", "off"
#: The variable that tells git's hooks that others' files are hidden from them (commit.py).
IN_VIEW = "COORD_COMMIT_VIEW"
#: The outcome of a forbidden commit.
NOT_MADE = "this commit was not made; the index is as it was."
#: Files asked for at once, and held ones that are listed in words.
PORTION, LISTED_MAX = 500, 20


class Held(NamedTuple):
    """What agents hold.

    Attributes:
        files: of all leases on files and on parts of them, from the root.
        above: directories and globs.
        by_others: whether others than the committer hold anything.
        reviewed: what others have left half done, from the top of the working tree.
    """

    files: list[str]
    above: list[str]
    by_others: bool
    reviewed: set[str]

    def has_above(self, path: str) -> bool:
        """Whether one of the directories or globs has this file."""
        return any(path.startswith(name) if name.endswith("/") else fnmatch(path, name)
                   for name in self.above)


class CommitCheck:
    """One commit or push, in the working tree at `top`."""

    def __init__(self, top: Path, environment: Mapping[str, str]) -> None:
        self._top = top
        self._env = environment
        self.root = find_root(top)

    @property
    def used(self) -> bool:
        """Whether this repository uses coord. Otherwise nothing is leased."""
        return (self.root / STATE_DIR).is_dir()

    def other_user(self) -> str:
        """The user whose coordinator serves here; empty if that is this user. An agent that coord
        has started always counts as this user's."""
        if self._env.get("COORD_AGENT_TOKEN"):
            return ""
        owner = (self.root / STATE_DIR).stat().st_uid
        return "" if owner == os.geteuid() else ownership.name_of(owner)

    def commit(self, own: Path | None = None, outcome: str = NOT_MADE) -> str:
        """Why the commit may not happen; empty if it may.

        Args:
            own: where git keeps what is of this working tree alone, if that is known.
            outcome: what has become of it, in words.

        Raises:
            Refusal: it is unknown.
        """
        if not self.used:
            return ""
        paths = git_repository.staged(self._top, own)
        text = self.commit_of(paths, outcome=outcome, own=own) or self._put_aside(outcome)
        if not text and not self._env.get(IN_VIEW) and not self._env.get(HOLDER.decode()):
            self.tell_overlaps(paths)  # else the script before git has done so
        return text

    def tell_overlaps(self, paths: Sequence[str], branch: str | None = None) -> None:
        """Print what other working trees change, too: of these files, or of all that this tree
        changes. `branch`: of what the tree of that branch changes. Nobody is stopped."""
        request = rq.Overlaps(
            branch=branch, paths=[self._named(path) for path in paths[:PORTION]], unasked=True,
            cwd=None if branch else self._named(paths[0] if paths else ""))
        with contextlib.suppress(Refusal), self._client(
                Committer.of(self._env, self.root)) as client:
            for line in client.call(request).describe():
                sys.stderr.write(harmless(f"coord: {line}\n"))

    def commit_of(self, paths: Sequence[str], saved: Collection[str] = (),
                  outcome: str = NOT_MADE, own: Path | None = None) -> str:
        """Check a commit of these files: the `saved` ones as they are in the working tree, the
        others as the index has them.

        Raises:
            Refusal: it is unknown.
        """
        held = self.find_changed(self._held(paths, "commit"), saved)
        if not held:
            return ""
        names = list(dict.fromkeys(item.path for item in held))
        # git starts a hook at the top, and names the place of the call.
        below = bool(self._env.get("GIT_PREFIX")) or Path.cwd() != self._top
        typed = {name: from_root(name) if below else name for name in names}
        # A commit of files by their names, or of all (`-a`), has an index of its own: nothing of
        # it is staged in the one that stays.
        apart = any(name in saved for name in names) or self._env.get(
            "GIT_INDEX_FILE", "").endswith(".lock")
        doing = under_way(own or Path(git_repository.git("rev-parse", "--absolute-git-dir",
                                                     cwd=self._top).decode().strip()))
        if doing:  # without these it would be half of that, and git would take it for done
            step = f"commit when they are free; or take all of it back: git {doing} --abort"
        else:
            step = _find_step(held, typed, apart)
        text = _describe_holder(outcome, held, f"{step}   (or wait: `coord locks` "
                                "tells)", "git commit …")
        holders = {item.holder for item in held}
        if len(holders) == 1 and Committer.of(self._env, self.root).person:
            (holder,) = holders
            text += f"  If you are {holder}: COORD_AGENT={shlex.quote(holder)} git commit …\n"
        return text

    def index_of(self, paths: Sequence[str], name: str) -> str:
        """Why the git command of this name (`add`, `rm`, …) may not change these index entries;
        empty if it may.

        Raises:
            Refusal: it is unknown.
        """
        held = self._held(paths, name)
        if name in ("add", "stage"):
            held = self.find_changed(held, paths)
        if not held:
            return ""
        text = ("nothing was added: it would take in what others are at work on."
                if name in ("add", "stage") else
                f"git {name} was not run: it would change what the index has of these.")
        return _describe_holder(text, held, f"name your own files: git {name} -- "
                                "FILE…", f"git {name} …")

    def push(self, remote: str, text: str) -> str:
        """Why the push may not happen; empty if it may. `text`: the hook's standard input.

        Raises:
            Refusal: it is unknown.
        """
        if not self.used:
            return ""
        held: dict[tuple[str, str], rq.GuardHeld] = {}
        for push in git_repository.pushes(text):
            for item in self._pushed(push, remote):
                held.setdefault((item.path, item.holder), item)
        if not held:
            return ""
        return _describe_holder(
            "this push was not made. Its commits changed files while others held them, and the "
            "others are still at work on them:", list(held.values()),
            "`coord locks` tells when they are done; push again then.", "git push …",
        )

    def _put_aside(self, outcome: str) -> str:
        """Why the commit may not happen: its hooks might put others' unfinished work aside."""
        if self._env.get(IN_VIEW) or not self._env.get("GIT_INDEX_FILE"):
            return ""  # others' work is not to be seen from there; or no commit is under way
        from coordinator.wiring import git_hooks

        folder = git_repository.maybe("rev-parse", "--git-path", "hooks", cwd=self._top)
        if not folder or not git_hooks.puts_aside(self._top / folder):
            return ""
        unfinished = git_repository.unstaged(self._top)
        held = self._held(unfinished, "commit") if unfinished else []
        if not held:
            return ""
        return _describe_holder(f"{outcome} Its hooks may put aside for a while what others are "
                                "at work on:",
                     held, "coord commit …   (the same hooks, without that)", "git commit …")

    def find_held(self) -> Held:
        """What is held, by anybody.

        Raises:
            Refusal: it is unknown.
        """
        me = self._who().agent
        with self._client() as client:
            leases = client.call(rq.Locks()).items
            reviews = client.call(rq.Reviews()).items
        return Held(
            list(dict.fromkeys(path_of(lease.resource, lease.kind) for lease in leases
                               if lease.kind in ("file", "region"))),
            [lease.resource for lease in leases if lease.kind in ("dir", "glob")],
            any(lease.locked_by != me for lease in leases),
            {os.path.relpath(self.root / file.path, self._top) for review in reviews
             for file in review.files if file.worktree is None and review.agent not in (None, me)})

    def held_by_others(self, paths: Sequence[str]) -> list[rq.GuardHeld]:
        """What others hold of these files.

        Raises:
            Refusal: it is unknown.
        """
        return self._held(paths, "commit", noted=False)

    def is_off(self) -> bool:
        """Whether a person overrides the guard."""
        return self._off() and self._who().person

    # ------------------------------------------------------------ inside

    def _pushed(self, push: Push, remote: str) -> list[rq.GuardHeld]:
        """What others hold of the push, have not finished, and had taken before it was changed."""
        with self._client() as client:
            live = [lease for lease in client.call(rq.Locks()).items
                    if lease.mode != "shared" or lease.agreed_as is not None]
        if not live:
            return []
        first = min(lease.locked_at for lease in live)
        changed = git_repository.changed(self._top, push, remote, first[:19] + "Z")
        guard_helds: list[rq.GuardHeld] = []
        for item in self._held(list(changed), "push", noted=False):
            if changed[item.path] * 1000 + 999 < from_iso(item.since):
                continue
            place = Path(item.worktree) if item.worktree else self._top
            if git_repository.unfinished(place, push.local, [item.path]):
                guard_helds.append(item)
        guard_helds = self._parts_pushed(guard_helds, push)
        if guard_helds and self._off() and self._who().person:
            self._note([self._named(item.path) for item in guard_helds], "push")
            return []
        return guard_helds

    def _parts_pushed(self, held: Sequence[rq.GuardHeld], push: Push) -> list[rq.GuardHeld]:
        """Those of them that are whole files, or regions that were committed since they were held
        and differ in the holder's working tree."""
        if not any("::" in item.resource for item in held):
            return list(held)
        guard_helds = []
        from coordinator.looking.file_regions import FileRegions  # where a region is held

        with contextlib.closing(FileRegions()) as regions:
            for item in held:
                if "::" in item.resource:
                    path, name = item.path, item.resource.rpartition("::")[2]
                    began = git_repository.before(
                        self._top, push.local, from_iso(item.since) // 1000)
                    place = Path(item.worktree) if item.worktree else self._top
                    versions = [
                        None if began is None else git_repository.content(
                            self._top, f"{began}:{path}"),
                        git_repository.content(self._top, f"{push.local}:{path}"),
                        git_repository.saved(place, path)]
                    if not all(data is None or two is None or _concerns(
                            regions.between(path, data, two).names, name)
                            for data, two in pairwise(versions)):
                        continue
                guard_helds.append(item)
        return guard_helds

    def find_changed(self, held: Sequence[rq.GuardHeld],
                     saved: Collection[str] = ()) -> list[rq.GuardHeld]:
        """Those of them whose commit would change what is held. A region that is as in the last
        commit does no harm."""
        if not any("::" in item.resource for item in held):
            return list(held)
        differ: dict[str, list[str] | None] = {}
        from coordinator.looking.file_regions import FileRegions  # where a region is held

        with contextlib.closing(FileRegions()) as regions:
            for path in {item.path for item in held if "::" in item.resource}:
                before = git_repository.content(self._top, f"HEAD:{path}")
                after = (git_repository.saved(self._top, path) if path in saved
                         else git_repository.content(self._top, f":{path}"))
                differ[path] = (None if before is None or after is None
                                else regions.between(path, before, after).names)
        return [item for item in held if "::" not in item.resource
                or _concerns(differ[item.path], item.resource.rpartition("::")[2])]

    def _held(self, paths: Sequence[str], action: str, *,
              noted: bool = True) -> list[rq.GuardHeld]:
        """What others hold of these files. Empty if a person overrides the guard, which is
        recorded."""
        who = self._who()
        named = [self._named(path) for path in paths]
        if noted and self._off() and who.person:
            self._note(named, action)
            return []
        guard_helds: list[rq.GuardHeld] = []
        with self._client(who) as client:
            for portion in git_repository.listed(named, PORTION):
                guard_helds += client.call(rq.GuardCheck(
                    paths=portion, agent=who.agent, profile=who.profile, session=who.session,
                )).items
        for item in guard_helds:
            item.path = os.path.relpath(self.root / item.path, self._top)
        return [item for item in guard_helds if not self._is_inside(item)]

    def _is_inside(self, item: rq.GuardHeld) -> bool:
        """Whether only something in a submodule is held: the commit has but the submodule's own
        last commit."""
        name = self._named(item.path)
        return item.resource.startswith(f"{name}/") and (self._top / item.path / ".git").exists()

    def _named(self, path: str) -> str:
        """The name of a file of this tree, from the root if it lies inside. The coordinator may see
        the tree at another mount."""
        place = self._top / path
        return str(place.relative_to(self.root) if place.is_relative_to(self.root) else place)

    def _who(self) -> Committer:
        """The committer, by its environment, otherwise by the session of this process."""
        committer = Committer.of(self._env, self.root)
        if committer.person:
            with contextlib.suppress(Refusal), self._client() as client:
                return Committer(agent=client.call(rq.AgentOfProcess(pid=os.getpid())).agent)
        return committer

    def _off(self) -> bool:
        return self._env.get(SWITCH, "").lower() == OFF

    def _note(self, paths: Sequence[str], action: str) -> None:
        """Record, if possible, that a person overrides the guard. A failure does not stop the
        commit."""
        try:
            with self._client() as client:
                for portion in git_repository.listed(paths, PORTION):
                    client.call(rq.GuardOverride(paths=portion, by=person(), action=action))
        except Refusal as refusal:
            sys.stderr.write(f"coord: the guard is off; not noted: {refusal.message}\n")

    def _client(self, who: Committer | None = None) -> Client:
        return Client(self.root, agent="", token=who.token if who is not None else None)


def person() -> str:
    """The human at the keyboard."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "operator"


def _concerns(changed: Sequence[str] | None, name: str) -> bool:
    """Whether one of the changed regions is, contains or is a part of this one. None, for unknown
    changes, counts as yes."""
    return changed is None or (name == HEADER and bool(changed)) or any(
        f"{text}.".startswith(f"{name}.") or f"{name}.".startswith(f"{text}.") for text in changed)


def _find_step(held: Sequence[rq.GuardHeld], typed: Mapping[str, str], apart: bool) -> str:
    """The next step of a committer, without what others hold.

    Args:
        typed: the files, each as it is typed here.
        apart: the commit has an index of its own.
    """
    step = ("name your own files: git commit -- FILE…" if apart
            else f"git restore --staged -- {_quoted(list(typed.values()))}")
    regions = {item.path for item in held if kind_of(item.resource) == "region"}
    shared = [path for name, path in typed.items() if name in regions]
    if shared:  # the committer may have a part of it, too
        step += f"; of {_quoted(shared)} your own parts alone: git add -p, then git commit"
    return step


def _describe_holder(what: str, held: Sequence[rq.GuardHeld], step: str, command: str) -> str:
    lines = [f"coord: {what}"]
    # A holder of copies in several working trees is named once.
    held = list({(guard_held.path, guard_held.resource, guard_held.holder): guard_held
                 for guard_held in held}.values())
    for item in held[:LISTED_MAX]:
        description = item.description and quoted(item.description)
        why = " ".join(part for part in (item.task or "", description) if part)
        by_name = "" if item.resource == item.path else f" (as {item.resource})"
        lines.append(f"  {item.path}{by_name}: held by {item.holder} until {item.until[11:16]}Z"
                     + (f": {why}" if why else ""))
    if len(held) > LISTED_MAX:
        lines.append(f"  … and {len(held) - LISTED_MAX} more")
    lines.append(f"  next: {step}")
    lines.append(f"  A person may go on all the same: {SWITCH}={OFF} {command}  (that is noted)")
    return "\n".join(lines) + "\n"


def _quoted(paths: Sequence[str]) -> str:
    shown = " ".join(shlex.quote(path) for path in paths[:LISTED_MAX])
    return shown + (" …" if len(paths) > LISTED_MAX else "")
