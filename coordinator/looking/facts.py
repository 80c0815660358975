"""What a decision needs to know of the disk, and what a look has reported. Data only.

A transaction never touches a disk. It asks a `Looked` for facts. A fact that is missing, or older
than the last end of a right to the same resource, raises `Unready`. Whoever runs the transaction
then looks, outside of it, and runs it again. So nobody waits for another's disk work, and the
process that looks need not be the one that decides.

A refused look is a fact, too: a decision that asks for it receives the refusal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from coordinator.rules.edits import Edit
from coordinator.words.refusals import Refusal
from coordinator.words.resource_names import Link, Located

F = TypeVar("F")


class Need(msgspec.Struct, frozen=True, gc=False, tag=True):
    """One thing to look at. Equal needs are one."""


class Place(Need, frozen=True):
    """What a text means (`files.canonical.Tree.resolve`); a `Located`."""

    text: str
    cwd: str | None = None
    literal: bool = False
    link: Link = "followed"


class Whole(Need, frozen=True):
    """A `Place`, and if it is a file all that a grant or a note of its content wants to know: what
    is looked at before a request is decided. Its facts stand under their own needs."""

    text: str
    cwd: str | None = None
    literal: bool = False
    ignored: bool = False
    """Also whether git ignores it."""
    link: Link = "followed"

    @property
    def place(self) -> Place:
        """The need that is told of where it lies."""
        return Place(self.text, self.cwd, self.literal, self.link)


class Content(Need, frozen=True):
    """What is at an absolute path; a `Bytes`."""

    path: str


class Below(Need, frozen=True):
    """The files that a directory or glob stands for, with their contents; a `Listing`.

    `root` is the working tree's; `name`, `kind` and `scope` are the resource's.
    """

    root: str
    name: str
    kind: str
    scope: str
    files_max: int


class Identity(Need, frozen=True):
    """Which file is at an absolute path (`files.identity`); text, None for no file."""

    path: str


class Twins(Need, frozen=True):
    """The other names of a file that has several, relative to the working tree; a list of them.

    `path` is absolute.
    """

    path: str


class Ignored(Need, frozen=True):
    """Whether git ignores this path (relative to the root), or the directory that it may be; a
    bool."""

    name: str
    is_dir: bool = False


class Committed(Need, frozen=True):
    """What the last commit has of the file at an absolute path, in its own working tree; a `Bytes`
    (hash None: nothing)."""

    path: str


class Part(Need, frozen=True):
    """One region of the file at an absolute path, with all that it contains; a `Bytes` (hash None:
    there is none of that name). Of `<header>`, and of a file that is not divided: the whole file.
    `of`: of this content, which is kept, in place of what the file is now.
    """

    path: str
    name: str
    of: str | None = None


class Names(Need, frozen=True):
    """The regions of the file at an absolute path, or of the content `of` that is kept; a list,
    empty where it is not divided."""

    path: str
    of: str | None = None


class Proposed(Need, frozen=True):
    """What a tool's edits would change of the file that a text means; a `Parts`."""

    text: str
    cwd: str | None
    edits: tuple[Edit, ...]


class Between(Need, frozen=True):
    """What differs between a content that is kept and the file at an absolute path, whatever the
    order of its regions; a `Parts`."""

    path: str
    before: str


class Overlaid(Need, frozen=True):
    """A content that is kept, with these regions as they are in the file at an absolute path now;
    a `Bytes`, kept."""

    path: str
    before: str
    names: tuple[str, ...]


class Rewound(Need, frozen=True):
    """The file at an absolute path with these regions as they were: (name, name of the content that
    is kept, None: it was not there), what was leased last before the rest. A `Bytes`, kept. Of
    contents that are kept, too: `gone`: what it had last, for where it is not there any more;
    `wholes`: what it had when each of these was so (None: not kept), for where one is gone, or all
    of it is another; `of`: what is to be changed so, in place of what is there. `others`: the names
    of regions that others have leased meanwhile, where that is known."""

    path: str
    parts: tuple[tuple[str, str | None], ...]
    gone: str | None = None
    wholes: tuple[str | None, ...] = ()
    of: str | None = None
    others: tuple[str, ...] | None = None

    @property
    def first(self) -> str | None:
        """The first of `wholes` that is kept."""
        return next((whole for whole in reversed(self.wholes) if whole is not None), None)

    @property
    def last(self) -> str | None:
        """The last one."""
        return next((whole for whole in self.wholes if whole is not None), None)


#: Needs for which a file has to be divided.
OF_REGIONS = (Part, Names, Proposed, Between, Overlaid, Rewound)
AnyNeed = (Place | Whole | Content | Below | Identity | Twins | Ignored | Committed | Part | Names
           | Proposed | Between | Overlaid | Rewound)


class Bytes(msgspec.Struct, frozen=True, gc=False):
    """What is at a path: its hash (None: no file there; `unreadable`: it may not be read), and its
    bytes unless it is absent, too large to be kept, or kept already."""

    hash: str | None
    data: bytes | None = None
    size: int = 0
    kept: bool = False
    """The bytes are kept already: in the database, or in a file beside it."""
    mode: int | None = None
    """The file's permission bits."""


class Linked(msgspec.Struct, frozen=True, gc=False):
    """A file that has another name somewhere: its identity, its path, and those of its other names
    that are in the same working tree (relative to it)."""

    inode: str
    path: str
    others: list[str] = []


class Listing(msgspec.Struct, frozen=True, gc=False):
    """Files below a directory: path (relative to the working tree) -> hash."""

    files: dict[str, str]
    linked: list[Linked] = []
    unkept: list[str] = []
    """Paths of those whose bytes could not be kept."""


class Parts(msgspec.Struct, frozen=True, gc=False):
    """Regions of one file, by name. None: the whole file, for single regions cannot be told.
    `hash`: the content that this was told of; None: there is no file. `outward`: others may see
    what changes, for it is not within bodies of functions alone. `unplaced`: what an edit would
    replace is not there, or it is there more than once: where it would change the file, nobody can
    tell."""

    names: list[str] | None
    hash: str | None = None
    outward: bool = False
    unplaced: bool = False


Fact = Located | Bytes | Listing | Parts | str | bool | list[str] | Refusal | None


class Lapsed(msgspec.Struct, frozen=True):
    """One holder's leases of one task (or of none) that have ended and were not closed yet."""

    holder: str
    task: str | None


class Unready(Exception):
    """The decision cannot be made yet: these must be looked at, or closed, before."""

    def __init__(self, needs: Iterable[AnyNeed] = (), lapsed: Iterable[Lapsed] = (),
                 work: Mapping[str, Callable[[], Any]] | None = None) -> None:
        super().__init__("not looked at yet")
        self.needs = list(needs)
        self.lapsed = list(lapsed)
        self.work = dict(work or {})
        """What else is to be done before, by a name of it: git, say."""


class Looked(msgspec.Struct):
    """The facts that one request goes by."""

    facts: dict[AnyNeed, tuple[Fact, int]] = {}
    """Need -> what was found, and the log's sequence number when the look began."""
    oldest: int = 2**62
    """The smallest of these numbers."""
    done: dict[str, Any] | None = None
    """What was done before, by its name: what it gave, or its refusal."""

    def add(self, need: AnyNeed, fact: Fact, seq: int) -> None:
        """Take in what was found."""
        self.facts[need] = fact, seq
        if seq < self.oldest:
            self.oldest = seq

    def fresh(self, since: int) -> None:
        """Ask that all was looked at since the log's number `since`.

        Raises:
            Unready: what was not.
        """
        if since > self.oldest:
            stale = [need for need, (_, seq) in self.facts.items() if seq < since]
            if stale:
                raise Unready(stale)

    def after(self, name: str, work: Callable[[], F]) -> F:
        """What `work` gives, which is done outside of any transaction, once.

        Raises:
            Unready: it was not done yet; Refusal: what it met.
        """
        if self.done is None or name not in self.done:
            raise Unready(work={name: work})
        refusal: F | Refusal = self.done[name]
        if isinstance(refusal, Refusal):
            raise Refusal(refusal.code, refusal.message, next=refusal.next, **refusal.facts)
        return refusal

    def has(self, need: AnyNeed) -> bool:
        """Whether there is anything known of it."""
        return need in self.facts

    def require(self, needs: Iterable[AnyNeed]) -> None:
        """Ask for several at once: one look instead of many.

        Raises:
            Unready: one was not looked at.
        """
        missing = [need for need in needs if need not in self.facts]
        if missing:
            raise Unready(missing)

    def place(self, text: str, cwd: str | None = None, literal: bool = False) -> Located:
        """What a text means.

        Raises:
            Unready; Refusal: what the look met.
        """
        return self.located(Place(text, cwd, literal))

    def located(self, need: Place) -> Located:
        """What a text means.

        Raises:
            Unready; Refusal: what the look met.
        """
        fact = self.facts.get(need)
        found_located = fact[0] if fact is not None else None
        if not isinstance(found_located, Located):
            found_located = self._get(need)
            assert isinstance(found_located, Located)
        return found_located

    def content(self, path: str) -> Bytes:
        """What is at an absolute path.

        Raises:
            Unready; Refusal: what the look met.
        """
        return self._of(Bytes, Content(path))

    def below(self, need: Below) -> Listing:
        """The files that a directory or glob stands for.

        Raises:
            Unready; Refusal: LIMIT: there are too many.
        """
        return self._of(Listing, need)

    def identity(self, path: str) -> str | None:
        """Which file is at an absolute path.

        Raises:
            Unready.
        """
        text = self._get(Identity(path))
        assert text is None or isinstance(text, str)
        return text

    def twins(self, path: str) -> list[str]:
        """The other names of the file at an absolute path.

        Raises:
            Unready; Refusal: LIMIT.
        """
        return self._of(list, Twins(path))

    def part(self, path: str, name: str, of: str | None = None) -> Bytes:
        """A region of the file at an absolute path; `of`: as it was in this content.

        Raises:
            Unready; Refusal: what the look met.
        """
        return self._of(Bytes, Part(path, name, of))

    def names(self, path: str, of: str | None = None) -> list[str]:
        """The regions of the file at an absolute path; `of`: as it was in this content.

        Raises:
            Unready; Refusal: what the look met.
        """
        return self._of(list, Names(path, of))

    def parts(self, need: Proposed | Between) -> Parts:
        """What would change, or differs.

        Raises:
            Unready; Refusal: what the look met.
        """
        return self._of(Parts, need)

    def made(self, need: Rewound | Overlaid) -> Bytes:
        """A file with some of its regions as they were, or as they are.

        Raises:
            Unready; Refusal: what the look met.
        """
        return self._of(Bytes, need)

    def committed(self, path: str) -> Bytes:
        """What the last commit has of a file.

        Raises:
            Unready; Refusal: what the look met.
        """
        return self._of(Bytes, Committed(path))

    def ignored(self, name: str, *, is_dir: bool = False) -> bool:
        """Whether git ignores this path; `is_dir`: as that of a directory.

        Raises:
            Unready.
        """
        return bool(self._get(Ignored(name, is_dir)))

    def _of(self, kind: type[F], need: AnyNeed) -> F:
        found = self._get(need)
        assert isinstance(found, kind), f"{type(found).__name__} for {need}"
        return found

    def _get(self, need: AnyNeed) -> Fact:
        known = self.facts.get(need)
        if known is None:
            raise Unready([need])
        fact = known[0]
        if isinstance(fact, Refusal):
            # A copy: what is raised carries a traceback, and a fact may be asked for again.
            raise Refusal(fact.code, fact.message, next=fact.next, **fact.facts)
        return fact


class Ends:
    """When rights last ended, by resource: a look from before may have seen another's last writes,
    or not yet. In memory only: after a restart there is no look that is older.

    Numbers are the log's, and only rise. `floor`: of all that is not remembered it is only known
    that it ended before.
    """

    __slots__ = ("_files", "_floor", "_last", "_last_wide", "_wide")

    #: Scopes that are remembered; of older ones only that all of them ended before.
    MOST = 4096

    def __init__(self, floor: int = 0) -> None:
        self._files: dict[str, int] = {}
        self._wide: dict[str, int] = {}  # directories, globs, regions
        self._last = self._last_wide = self._floor = floor

    @property
    def last(self) -> int:
        """The newest of these numbers."""
        return self._last

    def note(self, kind: str, scope: str, seq: int) -> None:
        """A right to this ended with the event `seq`."""
        if kind == "file":
            files = self._files
        else:
            files = self._wide
            self._last_wide = seq
        if scope in files:
            del files[scope]  # the newest stand last
        files[scope] = self._last = seq
        if len(files) > self.MOST:
            self._floor = max(self._floor, files.pop(next(iter(files))))

    def since(self, kind: str, scope: str, seen: int) -> int:
        """How young a look at this has to be, where the look at hand began at `seen`: the number
        of an event after it that ended a right to what overlaps this, or 0. Never too small."""
        if self._last <= seen:
            return 0
        latest = self._files.get(scope, 0) if kind == "file" else _latest(self._files, scope, seen)
        if self._last_wide > seen:
            latest = max(latest, _latest(self._wide, scope, seen))
        if self._floor > latest:
            latest = self._floor
        return latest if latest > seen else 0


def _latest(ended: dict[str, int], scope: str, seen: int) -> int:
    """The newest of these after `seen` that overlaps; they are in the order of their numbers."""
    for other in reversed(ended):
        seq = ended[other]
        if seq <= seen:
            break
        if other.startswith(scope) or scope.startswith(other):
            return seq
    return 0
