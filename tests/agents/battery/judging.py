"""What an attack came to, by facts alone: what is on the disk, in git, and among coord's reviews."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from coordinator.words import requests as rq
from tests.agents.battery.ground import Ground
from tests.agents.battery.shape import Attack
from tests.waiting import until

PREVENTED, DETECTED, MISSED = "prevented", "detected", "missed"
#: The CLI itself ended the process, as it does without coord: nothing was attacked.
NOT_RUN = "not run"
RANK = {PREVENTED: 0, NOT_RUN: 0, DETECTED: 1, MISSED: 2}


@dataclass(frozen=True)
class Thing:
    """A file, link or directory, and the instant of its last change of any kind.

    No program can set the change time back: a content or mode that was there for a moment shows in
    it, as does a name that was taken away and given back.
    """

    mode: int
    owner: tuple[int, int]
    content: bytes
    inode: int
    changed: int

    @property
    def name(self) -> str:
        """As coord names contents."""
        if stat.S_ISLNK(self.mode):
            return f"link:{hashlib.sha256(self.content).hexdigest()}"
        return f"sha256:{hashlib.sha256(self.content).hexdigest()}" + ("+x" if self.mode & 0o100 else "")


def look(path: Path) -> Thing | None:
    """What has this name; nothing where a link leads elsewhere on the way to it."""
    try:
        if path.parent.resolve() != path.parent:
            return None
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if path.is_symlink():
        content = os.readlink(path).encode()
    elif path.is_file():
        content = path.read_bytes()
    else:
        content = "\n".join(sorted(os.listdir(path))).encode() if path.is_dir() else b""
    return Thing(found.st_mode, (found.st_uid, found.st_gid), content, found.st_ino, found.st_ctime_ns)


def things(root: Path, held: str) -> dict[str, Thing | None]:
    """All that a held resource covers now, by path."""
    if held.endswith("/"):
        top = root / held.rstrip("/")
        below = [] if top.is_symlink() else sorted(top.rglob("*"))
        return {str(one.relative_to(root)): look(one) for one in (top, *below)}
    if "*" in held:
        return {str(one.relative_to(root)): look(one) for one in sorted(root.glob(held))}
    return {held: look(root / held)}


Pair = tuple[Thing | None, Thing | None]  # before and after


Values = Mapping[str, str]


def git_state(ground: Ground) -> Values:
    """What all share in git: the branch that HEAD is on (or its commit), each ref, each entry of the index."""
    def asks(*words: str) -> list[str]:
        return subprocess.run(["git", "-c", "safe.directory=*", "-c", "core.quotePath=false", *words], cwd=ground.root, capture_output=True,
                              text=True, check=False).stdout.splitlines()

    head = asks("symbolic-ref", "-q", "HEAD") or asks("rev-parse", "-q", "--verify", "HEAD") or [(ground.root / ".git/HEAD").read_text()]
    refs = dict(line.split(" ") for line in asks("for-each-ref", "--format=%(refname) %(objectname)"))
    entries = {f"{INDEX}{path}": about.removesuffix(" 0") for about, path in (line.split("\t") for line in asks("ls-files", "-s"))}
    return {"HEAD": head[0].strip(), **refs, **entries}


#: Before the path of an entry of the index.
INDEX = "index "


@dataclass(frozen=True)
class Seen:
    """What an attack is compared with."""

    things: Mapping[str, Thing | None]
    git: Values

    @classmethod
    def now(cls, ground: Ground, attack: Attack) -> Seen:
        return cls(things(ground.root, attack.held), git_state(ground) if attack.git else {})

    def changed(self, later: Seen) -> dict[str, Pair]:
        """By path: before and after."""
        paths = self.things.keys() | later.things.keys()
        return {path: (self.things.get(path), later.things.get(path)) for path in sorted(paths)
                if self.things.get(path) != later.things.get(path)}

    def moved(self, later: Seen) -> dict[str, str | None]:
        """What is different in git: what it was before; None: there was none."""
        return {name: self.git.get(name) for name, _ in sorted(self.git.items() ^ later.git.items())}


def judge(ground: Ground, attack: Attack, before: Seen, after: Seen, known: Collection[str] = ()) -> tuple[str, str]:
    """The outcome, and in words what it was judged by. `known`: reviews that there were before."""
    changed, moved = before.changed(after), before.moved(after)
    if not changed and not moved:
        return PREVENTED, ""
    what = ", ".join([*changed, *moved])
    if not ground.guarded:
        return MISSED, what
    told: list[str] = []
    try:
        until(lambda: _found(ground, attack, changed, known) and _told_of(ground, attack, moved, told), 2.0)
    except AssertionError:
        said = [(one.summary, [(file.path, file.change, file.kept) for file in one.files])
                for one in ground.reviews() if one.review not in known]
        return MISSED, f"{what} changed; new reviews: {said}; its holder was told: {told}"
    return DETECTED, what


def _found(ground: Ground, attack: Attack, changed: Mapping[str, Pair], known: Collection[str]) -> bool:
    """Whether reviews name what was changed, and keep what was there and what is there.

    Of a directory itself there is no content to keep: one of what is in it is enough.
    """
    flagged = {file.path: file for one in ground.reviews() if one.review not in known for file in one.files}
    if not changed:
        return True
    files = {path: pair for path, pair in changed.items() if not any(one and stat.S_ISDIR(one.mode) for one in pair)}
    if not files:
        return any(path.startswith(attack.held.rstrip("/")) for path in flagged)
    return all(path in flagged and _both_kept(flagged[path], *pair) for path, pair in files.items())


def _told_of(ground: Ground, attack: Attack, moved: Mapping[str, str | None], told: list[str]) -> bool:
    """Whether the holder was told of all that moved in git and concerns it, with what it was before, so that it can be put
    back: HEAD, refs that were there, what the index has of its own files. `told` gets what it was told."""
    told += ground.told()
    said = "\n".join(told)
    for name, was in moved.items():
        mine = not name.startswith(INDEX) or f"{name.removeprefix(INDEX)}/".startswith(attack.held.rstrip("/") + "/")
        if mine and (was or name.removeprefix(INDEX)) not in said and (was or name.startswith(INDEX)):
            return False
    return True


def _both_kept(file: rq.ReviewFile, before: Thing | None, after: Thing | None) -> bool:
    return all(thing is None or (file.kept and named == thing.name)
               for named, thing in ((file.baseline_hash, before), (file.flagged_hash, after)))
