"""The looking itself: resolve, list, stat, read, hash, deflate, within budgets of files, bytes and
seconds. The only module that reads the disk for a decision.

Runs in the coordinator's loop for small needs (`in_passing`), and in a process of its own for all
others (`daemon.look_worker`). Changes nothing, and decides nothing. It asks the database only
whether some bytes are kept already.
"""

from __future__ import annotations

import errno
import os
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from coordinator.files.beneath import Root, snapshot_real
from coordinator.files.blobs import FILE_FROM, BlobFolder
from coordinator.files.canonical import Tree
from coordinator.files.content import Content as Found
from coordinator.files.content import digest
from coordinator.files.git import Git, GitError
from coordinator.files.identity import identity
from coordinator.files.ignore import Ignore, manifest
from coordinator.looking.facts import (
    OF_REGIONS,
    AnyNeed,
    Below,
    Bytes,
    Committed,
    Content,
    Fact,
    Identity,
    Ignored,
    Linked,
    Listing,
    Looked,
    Names,
    Part,
    Parts,
    Place,
    Proposed,
    Twins,
    Whole,
)
from coordinator.looking.other_names import names_of
from coordinator.looking.region_looker import RegionLooker
from coordinator.rules.leases import as_resource
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import NAME_PARTS_MAX, Located

#: The limits of a look in passing, in the loop's own time: paths, bytes, characters of a name.
PASSING_PATHS, PASSING_BYTES, PASSING_CHARS = 8, 64 * 1024, 1024
_PLACES = (Whole, Place)
#: How often a large look is compared with the disk again before it is returned, and corrected.
STEADY_TRIES = 3
#: How many regions of one edit are looked at with it.
PARTS_AT_ONCE = 10


@dataclass(frozen=True, slots=True)
class Budget:
    """The limits of one look: files, bytes read, seconds; and the size (bytes) of a kept file."""

    files: int
    bytes: int
    seconds: float
    file_bytes: int


class Looker:
    """Looks, for one repository.

    Args:
        kept: whether the bytes of this hash are kept already.
        blob: gets each content that has to be kept (hash, size, deflated bytes, permission bits),
            as it is read, so that no process needs room for all contents. Without bytes: it is
            kept already, and only the bits are recorded.
        blobs: the folder of large contents, which are kept as files at once.
        content: returns the bytes of this hash, if they are kept.
    """

    def __init__(
        self, tree: Tree, ignore: Ignore, budget: Budget, kept: Callable[[str], bool],
        blob: Callable[[str, int, bytes, int], None], blobs: BlobFolder,
        content: Callable[[str], bytes | None] = lambda digest: None,
    ) -> None:
        self.tree = tree
        self._regions = RegionLooker(self._text, self._keep, content)
        self.ignore = ignore
        self._budget = budget
        self._kept = kept
        self._blob = blob
        self._blobs = blobs
        self._bytes = 0
        self._files = 0
        self._until = 0.0
        self._seen: set[str] = set()

    # ------------------------------------------------------------ in passing

    def in_passing(
        self, needs: Sequence[AnyNeed], looked: Looked, seq: int
    ) -> Sequence[AnyNeed]:
        """Look at a few small things at once. Return the needs that are not small."""
        if len(needs) > PASSING_PATHS:
            return needs
        left: list[AnyNeed] = []
        room = PASSING_BYTES
        if seq < looked.oldest:
            looked.oldest = seq
        for need in needs:
            if isinstance(need, _PLACES):
                room = self._pass_place(need, looked, seq, left, room)
            elif isinstance(need, Content):
                room = self._pass_content(need, looked, seq, left, room)
            elif isinstance(need, Identity):
                looked.add(need, _identity(need.path), seq)
            elif isinstance(need, Ignored):
                looked.add(need, self.ignore.ignored(need.name, need.is_dir), seq)
            elif isinstance(need, Proposed) and _is_absent(need, looked):
                looked.add(need, Parts(None), seq)
            else:
                left.append(need)
        return left

    def _pass_place(self, need: Whole | Place, looked: Looked, seq: int, left: list[AnyNeed],
                    room: int) -> int:
        """Look at one place in passing. Return the bytes that may still be read."""
        text, cwd = need.text, need.cwd
        if len(text) > PASSING_CHARS or (cwd is not None and len(cwd) > PASSING_CHARS):
            left.append(need)
            return room
        place = need if isinstance(need, Place) else need.place
        facts = looked.facts
        try:
            located = self.tree.resolve(text, cwd, literal=need.literal, link=need.link)
        except Refusal as refusal:
            facts[place] = refusal, seq
            return room
        facts[place] = located, seq
        path, kind = located.path, located.resource.kind
        if path is None or isinstance(need, Place) or kind == "dir":
            return room
        if need.ignored:
            name = located.resource.name
            looked.add(Ignored(name), self.ignore.ignored(name), seq)
        if located.links > 1 or kind == "region":
            left.append(need)
        elif not located.there:
            facts[Content(path)] = _ABSENT, seq
        elif located.inode is None:
            return self._pass_content(Content(path), looked, seq, left, room)
        elif located.size > room:
            left.append(need)
        else:
            facts[Content(path)] = self._read_whole(path), seq
            room -= located.size
        return room

    def _pass_content(self, need: Content, looked: Looked, seq: int, left: list[AnyNeed],
                      room: int) -> int:
        try:
            size = os.lstat(need.path).st_size
        except OSError:
            looked.add(need, _ABSENT, seq)
            return room
        if size > room:
            left.append(need)
            return room
        looked.add(need, self._read_whole(need.path), seq)
        return room - size

    def _read_whole(self, path: str) -> Bytes:
        """Return a small file with its bytes."""
        try:
            root = self._root_of(path)
            content = snapshot_real(root, path[len(root) + 1:], PASSING_BYTES)
        except OSError:
            return _UNREADABLE
        if content.name is None:
            return _ABSENT
        return Bytes(content.name, content.data, content.size, mode=content.mode)

    def _root_of(self, path: str) -> str:
        """Return the working tree of an absolute path.

        Raises:
            OSError: no working tree has it.
        """
        text, main = self.tree.worktree_of(path), str(self.tree.root).rstrip("/")
        if text is None and not path.startswith(main + "/"):
            self.tree.worktrees()  # a worktree may have been made since
            text = self.tree.worktree_of(path)
            if text is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return (text or main).rstrip("/")

    def _below(self, path: str) -> str:
        """Return an absolute path relative to its working tree."""
        return path[len(self._root_of(path)) + 1:]

    # ------------------------------------------------------------ in full

    def look(self, needs: Sequence[AnyNeed], looked: Looked, seq: int) -> None:
        """Look at all of these. A look over the budget becomes a refusal of its need."""
        self._until = time.monotonic() + self._budget.seconds
        self._bytes = self._files = 0
        self._seen = set()
        for need in needs:
            if not isinstance(need, Whole):
                looked.add(need, fact := self._look_at(need), seq)
                if isinstance(need, Proposed) and isinstance(fact, Parts) and fact.names:
                    self._parts_of(need, fact.names, looked, seq)
                continue
            located = self._look_at(need.place)
            looked.add(need.place, located, seq)
            if isinstance(located, Located) and located.resource.kind in ("file", "region"):
                self._what_is_there(located, looked, seq, ignored=need.ignored)

    def _what_is_there(self, located: Located, looked: Looked, seq: int, *,
                       ignored: bool) -> None:
        assert located.path is not None, "a file lies somewhere"
        more: list[AnyNeed] = [Content(located.path)]
        if located.resource.kind == "region":
            more += [Names(located.path),
                     Part(located.path, located.resource.name.rpartition("::")[2])]
        if located.links > 1:
            more.append(Twins(located.path))
        if ignored:
            more.append(Ignored(located.resource.name))
        for need in more:
            looked.add(need, self._look_at(need), seq)

    def _look_at(self, need: AnyNeed) -> Fact:
        """Return the fact of a need; if it cannot be had, the reason as a refusal."""
        try:
            return self._fact(need)
        except Refusal as refusal:
            return refusal
        except OSError as bad:
            return Refusal(
                Code.STORAGE, f"The disk could not be looked at ({bad.strerror or bad}); "
                "nothing was changed.",
            )

    def _fact(self, need: AnyNeed) -> Fact:
        self._check_time()
        if isinstance(need, Place):
            if need.cwd is not None and need.cwd.count("/") > 2 * NAME_PARTS_MAX:
                raise Refusal(
                    Code.LIMIT, f"The working directory has more than {2 * NAME_PARTS_MAX} parts. "
                    "Nothing was done.", next="Name the resource from the repository's root.",
                )
            return self.tree.resolve(need.text, need.cwd, literal=need.literal, seen=self._seen,
                                     link=need.link)
        if isinstance(need, Content):
            return self._read(need.path)
        if isinstance(need, Below):
            return self._listing(need)
        if isinstance(need, Identity):
            return _identity(need.path)
        if isinstance(need, Twins):
            return self._twins(need.path)
        if isinstance(need, OF_REGIONS):
            path = need.path if not isinstance(need, Proposed) else self.tree.resolve(
                need.text, need.cwd, literal=True, seen=self._seen).path
            return Parts(None) if path is None else self._regions.fact(need, path)
        if isinstance(need, Committed):
            return self._committed(need.path)
        assert isinstance(need, Ignored)
        return self.ignore.ignored(need.name, need.is_dir)

    def _committed(self, path: str) -> Bytes:
        try:
            root = self._root_of(path)
            data = Git(Path(root)).run("cat-file", "blob", f"HEAD:{path[len(root) + 1:]}")
        except (GitError, OSError):
            return _ABSENT
        return self._keep(data, 0)

    # ------------------------------------------------------------ regions

    def _parts_of(self, need: Proposed, names: Sequence[str], looked: Looked, seq: int) -> None:
        """Look at the present content of the regions that an edit changes: the asker needs it next.
        """
        path = self.tree.resolve(need.text, need.cwd, literal=True, seen=self._seen).path
        if path is None:
            return
        more: list[AnyNeed] = [Identity(path)]
        more += [Part(path, name) for name in names[:PARTS_AT_ONCE]]
        for part in more:
            looked.add(part, self._look_at(part), seq)

    def rest(self) -> None:
        """Use the time while no request waits."""
        self._regions.rest()

    def close(self) -> None:
        """End the process for the grammars, if there is one."""
        self._regions.close()

    def _text(self, path: str) -> tuple[bytes, int] | Bytes:
        """Return a file's bytes and mode; a `Bytes` if it is missing, special, or too large."""
        try:
            root = self._root_of(path)
            content = snapshot_real(root, path[len(root) + 1:], self._budget.file_bytes)
        except OSError:
            return _UNREADABLE
        self._spend(content.size)
        if content.name is None:
            return _ABSENT
        if content.data is None or content.kind != "file":
            return Bytes(content.name, size=content.size, mode=content.mode)
        return content.data, content.mode

    def _keep(self, data: bytes, mode: int) -> Bytes:
        """Return the fact of a file's bytes, or of a part of a file. A large content is kept now; a
        small one is kept by the caller in its transaction."""
        name = digest(data, executable=bool(mode & 0o100))
        if len(data) <= PASSING_BYTES:
            return Bytes(name, data, len(data), False, mode)
        kept = self._hand_on(name, Found(name, len(data), data, "file", mode))
        return Bytes(name, None, len(data), kept, mode)

    def _listing(self, need: Below) -> Listing:
        asked = as_resource(need.name, need.kind, need.scope)
        names = manifest(Path(need.root), asked, self.ignore, min(need.files_max,
                                                                  self._budget.files))
        files: dict[str, Bytes] = {}
        stamps: dict[str, tuple[int, ...]] = {}
        with Root(need.root) as root:
            for name in names:
                self._take_in(root, name, files, stamps)
            for _ in range(STEADY_TRIES):
                moved = [name for name in stamps if _stamp(root, name) != stamps[name]]
                if not moved:
                    break
                for name in moved:
                    files.pop(name, None)
                    self._take_in(root, name, files, stamps)
            linked = self._linked(root, need.root.rstrip("/") + "/", stamps)
        return Listing(
            {name: file.hash for name, file in files.items() if file.hash is not None}, linked,
            [name for name, file in files.items() if not file.kept],
        )

    def _linked(self, root: Root, base: str,
                stamps: dict[str, tuple[int, ...]]) -> list[Linked]:
        """Return the files that have another name somewhere."""
        files = {name: file for name, stamp in stamps.items() if stamp and stamp[3] > 1
                 and (file := root.identity(name)) is not None}
        names = names_of(set(files.values()), base, self._check_time) if files else {}
        return [Linked(file, name, [other for other in names[file] if other != name])
                for name, file in files.items()]

    def _take_in(self, root: Root, name: str, files: dict[str, Bytes],
                 stamps: dict[str, tuple[int, ...]]) -> None:
        self._check_time()
        stamps[name] = _stamp(root, name)
        found = self._read_in(root, name)
        if found.hash is not None:
            files[name] = msgspec.structs.replace(found, data=None)

    def _read(self, path: str) -> Bytes:
        """Return the content at an absolute path."""
        try:
            with Root(self._root_of(path)) as root:
                return self._read_in(root, self._below(path))
        except OSError:
            return _ABSENT

    def _read_in(self, root: Root, name: str) -> Bytes:
        """Return the content at a path of a working tree. Its bytes are passed on, deflated, or
        kept as a file at once, unless they are kept already."""
        try:
            content = self._snapshot(root, name)
        except OSError:
            return _UNREADABLE
        self._spend(content.size)
        if content.name is None:
            return _ABSENT
        kept = content.taken or self._hand_on(content.name, content)
        small = content.data if content.size <= PASSING_BYTES else None
        if content.taken:
            self._blob(content.name, content.size, b"", content.mode)
        return Bytes(content.name, small, content.size, kept, content.mode)

    def _snapshot(self, root: Root, name: str) -> Found:
        try:
            return root.snapshot(name, self._budget.file_bytes, taker=self._blobs.take)
        except OSError as no:
            if no.errno not in _NO_ROOM:
                raise
        return root.snapshot(name, self._budget.file_bytes)

    def _hand_on(self, digest: str, content: Found) -> bool:
        """Have a content kept, and return whether it is."""
        if content.data is None:
            return False
        if self._kept(digest):
            self._blob(digest, content.size, b"", content.mode)
            return True
        if content.size <= FILE_FROM:
            self._blob(digest, content.size, zlib.compress(content.data, 1), content.mode)
            return True
        try:
            self._blobs.put(content.data)
        except OSError:
            return False
        self._blob(digest, content.size, b"", content.mode)
        return True

    def _twins(self, path: str) -> list[str]:
        """Return the file's other names."""
        file = identity(path, os.lstat(path))
        base = (self.tree.worktree_of(path) or str(self.tree.root)).rstrip("/") + "/"
        return [name for name in names_of([file], base, self._check_time)[file]
                if base + name != path]

    def _spend(self, size: int) -> None:
        self._files += 1
        self._bytes += size
        if self._bytes > self._budget.bytes:
            raise Refusal(
                Code.LIMIT, f"More than {self._budget.bytes:,} bytes would have to be read and "
                "kept (look.bytes_max). Nothing was done.",
                next="Lease a smaller part of it.", limit=self._budget.bytes,
            )

    def _check_time(self) -> None:
        if time.monotonic() > self._until:
            raise Refusal(
                Code.LIMIT, f"Looking at the files took longer than {self._budget.seconds:g} s "
                "(look.seconds_max). Nothing was done.",
                next="Lease a smaller part of it.", limit=self._budget.seconds,
            )


#: Errors of keeping a large content, as opposed to reading it.
_NO_ROOM = frozenset({errno.EDQUOT, errno.ENOSPC, errno.EFBIG, errno.EROFS, errno.EACCES})
_ABSENT = Bytes(None)
_UNREADABLE = Bytes("unreadable")


def _is_absent(need: Proposed, looked: Looked) -> bool:
    """Whether the earlier look found no file that an edit could be divided in."""
    fact, _ = looked.facts.get(Place(need.text, need.cwd, True), (None, 0))
    return isinstance(fact, Located) and not fact.there


def _identity(path: str) -> str | None:
    try:
        return identity(path, os.lstat(path))
    except OSError:
        return None


def _stamp(root: Root, name: str) -> tuple[int, ...]:
    """Return a mark that changes with a file's state; empty if the file is not there."""
    try:
        status = root.stat(name)
    except OSError:
        return ()
    if status is None:
        return ()
    return (status.st_mtime_ns, status.st_size, status.st_ino, status.st_nlink,
            status.st_ctime_ns, status.st_mode)
