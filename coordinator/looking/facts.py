"""The facts that a decision needs of the disk, and the facts that a look has reported. Data only.

A transaction never touches a disk. It asks a `Looked` for facts. A fact that is missing, or older
than the last end of a right to the same resource, raises `Unready`. The caller of the transaction
then looks, outside of it, and runs it again. So no request waits for another's disk work, and the
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
    """A question to the disk. Equal needs are one need."""


class Place(Need, frozen=True):
    """The resource that a text means (`files.canonical.Tree.resolve`); a `Located`."""

    text: str
    cwd: str | None = None
    literal: bool = False
    link: Link = "followed"


class Whole(Need, frozen=True):
    """A `Place`, and for a file everything that a grant or a record of its content needs. It is
    looked at before a request is decided. Its facts are stored under their own needs."""

    text: str
    cwd: str | None = None
    literal: bool = False
    ignored: bool = False
    """Whether to ask also if git ignores it."""
    link: Link = "followed"

    @property
    def place(self) -> Place:
        """The need for its place."""
        return Place(self.text, self.cwd, self.literal, self.link)


class Content(Need, frozen=True):
    """The content at an absolute path; a `Bytes`."""

    path: str


class Below(Need, frozen=True):
    """The files of a directory or glob, with their contents; a `Listing`.

    `root` is the working tree's; `name`, `kind` and `scope` are the resource's.
    """

    root: str
    name: str
    kind: str
    scope: str
    files_max: int


class Identity(Need, frozen=True):
    """The identity of the file at an absolute path (`files.identity`); text, None for no file."""

    path: str


class Twins(Need, frozen=True):
    """The other names of a file with several names, relative to the working tree; a list of them.

    `path` is absolute.
    """

    path: str


class Ignored(Need, frozen=True):
    """Whether git ignores this path (relative to the root), or the directory at it; a bool."""

    name: str
    is_dir: bool = False


class Committed(Need, frozen=True):
    """The last commit's content of the file at an absolute path, in its own working tree; a `Bytes`
    (hash None if the commit has none)."""

    path: str


class Part(Need, frozen=True):
    """One region of the file at an absolute path, with everything inside it; a `Bytes` (hash None
    if no region has this name). `<header>`, and a region of a file that is not divided, are the
    whole file. `of`: a kept content to read instead of the file."""

    path: str
    name: str
    of: str | None = None


class Names(Need, frozen=True):
    """The regions of the file at an absolute path, or of the content `of`; a list (empty:
    undivided)."""

    path: str
    of: str | None = None


class Proposed(Need, frozen=True):
    """The changes that a tool's edits would make to the file that a text means; a `Parts`."""

    text: str
    cwd: str | None
    edits: tuple[Edit, ...]


class Between(Need, frozen=True):
    """The differences of a kept content and an absolute path's file, in any order; a `Parts`."""

    path: str
    before: str


class Overlaid(Need, frozen=True):
    """A kept content with present regions of an absolute path's file; a `Bytes`, kept."""

    path: str
    before: str
    names: tuple[str, ...]


class Rewound(Need, frozen=True):
    """The file at an absolute path with these regions as they were; a `Bytes`, kept. Each part is a
    name, and the name of its kept content, or None for a region that did not exist; the last leased
    part comes first. The other names are of kept contents, too. `gone`: the file's last content, if
    the file is gone. `wholes`: its content with each of these parts (None: not kept), for regions
    that are gone, or a file that was replaced. `of`: a content to change instead of the file.
    `others`: the names of regions that other agents have leased meanwhile, if known."""

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
        """The last of `wholes` that is kept."""
        return next((whole for whole in self.wholes if whole is not None), None)


#: Needs for which a file has to be divided.
OF_REGIONS = (Part, Names, Proposed, Between, Overlaid, Rewound)
AnyNeed = (Place | Whole | Content | Below | Identity | Twins | Ignored | Committed | Part | Names
           | Proposed | Between | Overlaid | Rewound)


class Bytes(msgspec.Struct, frozen=True, gc=False):
    """The content at a path: its hash (None: no file; `unreadable`: it may not be read), and its
    bytes unless it is absent, too large to be kept, or kept already."""

    hash: str | None
    data: bytes | None = None
    size: int = 0
    kept: bool = False
    """Whether the bytes are kept already: in the database, or in a file beside it."""
    mode: int | None = None
    """The file's permission bits."""


class Linked(msgspec.Struct, frozen=True, gc=False):
    """A file with another name somewhere: its identity, its path, and its other names in the same
    working tree (relative to it)."""

    inode: str
    path: str
    others: list[str] = []


class Listing(msgspec.Struct, frozen=True, gc=False):
    """Files below a directory: path (relative to the working tree) -> hash."""

    files: dict[str, str]
    linked: list[Linked] = []
    unkept: list[str] = []
    """Paths of files whose bytes could not be kept."""


class Parts(msgspec.Struct, frozen=True, gc=False):
    """Regions of one file, by name; None for the whole file, if single regions do not describe it.
    `hash`: the content that was examined; None if there is no file. `outward`: other code may see
    the change, because it is not only in bodies of functions. `unplaced`: the text that an edit
    replaces is missing or there more than once, so its place is unknown."""

    names: list[str] | None
    hash: str | None = None
    outward: bool = False
    unplaced: bool = False


Fact = Located | Bytes | Listing | Parts | str | bool | list[str] | Refusal | None


class Lapsed(msgspec.Struct, frozen=True):
    """One holder's leases of one task (or of none) that have ended and are not closed yet."""

    holder: str
    task: str | None


class Unready(Exception):
    """The decision must wait: these needs must be looked at, or these leases closed, before."""

    def __init__(self, needs: Iterable[AnyNeed] = (), lapsed: Iterable[Lapsed] = (),
                 work: Mapping[str, Callable[[], Any]] | None = None) -> None:
        super().__init__("not looked at yet")
        self.needs = list(needs)
        self.lapsed = list(lapsed)
        self.work = dict(work or {})
        """Other work to do before, by its name: git, for example."""


class Looked(msgspec.Struct):
    """The facts that one request decides by."""

    facts: dict[AnyNeed, tuple[Fact, int]] = {}
    """Need -> its fact, and the log's sequence number when the look began."""
    oldest: int = 2**62
    """The smallest of these numbers."""
    done: dict[str, Any] | None = None
    """The work done before, by its name: its result, or its refusal."""

    def add(self, need: AnyNeed, fact: Fact, seq: int) -> None:
        """Add a fact."""
        self.facts[need] = fact, seq
        if seq < self.oldest:
            self.oldest = seq

    def fresh(self, since: int) -> None:
        """Require that everything was looked at since the log's number `since`.

        Raises:
            Unready: with the older needs.
        """
        if since > self.oldest:
            stale = [need for need, (_, seq) in self.facts.items() if seq < since]
            if stale:
                raise Unready(stale)

    def after(self, name: str, work: Callable[[], F]) -> F:
        """Return the result of `work`, which runs outside of any transaction, once.

        Raises:
            Unready: it was not done yet; Refusal: the work's.
        """
        if self.done is None or name not in self.done:
            raise Unready(work={name: work})
        refusal: F | Refusal = self.done[name]
        if isinstance(refusal, Refusal):
            raise Refusal(refusal.code, refusal.message, next=refusal.next, **refusal.facts)
        return refusal

    def has(self, need: AnyNeed) -> bool:
        """Whether there is a fact for it."""
        return need in self.facts

    def require(self, needs: Iterable[AnyNeed]) -> None:
        """Require several facts at once: one look instead of many.

        Raises:
            Unready: with the missing needs.
        """
        missing = [need for need in needs if need not in self.facts]
        if missing:
            raise Unready(missing)

    def place(self, text: str, cwd: str | None = None, literal: bool = False) -> Located:
        """Return the resource that a text means.

        Raises:
            Unready; Refusal: the look's.
        """
        return self.located(Place(text, cwd, literal))

    def located(self, need: Place) -> Located:
        """Return the resource that a text means.

        Raises:
            Unready; Refusal: the look's.
        """
        fact = self.facts.get(need)
        found_located = fact[0] if fact is not None else None
        if not isinstance(found_located, Located):
            found_located = self._get(need)
            assert isinstance(found_located, Located)
        return found_located

    def content(self, path: str) -> Bytes:
        """Return the content at an absolute path.

        Raises:
            Unready; Refusal: the look's.
        """
        return self._of(Bytes, Content(path))

    def below(self, need: Below) -> Listing:
        """Return the files of a directory or glob.

        Raises:
            Unready; Refusal: LIMIT: there are too many.
        """
        return self._of(Listing, need)

    def identity(self, path: str) -> str | None:
        """Return the identity of the file at an absolute path.

        Raises:
            Unready.
        """
        text = self._get(Identity(path))
        assert text is None or isinstance(text, str)
        return text

    def twins(self, path: str) -> list[str]:
        """Return the other names of the file at an absolute path.

        Raises:
            Unready; Refusal: LIMIT.
        """
        return self._of(list, Twins(path))

    def part(self, path: str, name: str, of: str | None = None) -> Bytes:
        """Return a region of the file at an absolute path. `of`: as it was in this content.

        Raises:
            Unready; Refusal: the look's.
        """
        return self._of(Bytes, Part(path, name, of))

    def names(self, path: str, of: str | None = None) -> list[str]:
        """Return the regions of the file at an absolute path. `of`: as they were in this content.

        Raises:
            Unready; Refusal: the look's.
        """
        return self._of(list, Names(path, of))

    def parts(self, need: Proposed | Between) -> Parts:
        """Return the regions that would change, or that differ.

        Raises:
            Unready; Refusal: the look's.
        """
        return self._of(Parts, need)

    def made(self, need: Rewound | Overlaid) -> Bytes:
        """Return a file with some of its regions as they were, or as they are.

        Raises:
            Unready; Refusal: the look's.
        """
        return self._of(Bytes, need)

    def committed(self, path: str) -> Bytes:
        """Return the last commit's content of a file.

        Raises:
            Unready; Refusal: the look's.
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
            # A copy: a raised refusal carries a traceback, and a fact may be asked for again.
            raise Refusal(fact.code, fact.message, next=fact.next, **fact.facts)
        return fact


class Ends:
    """The times when rights last ended, by resource: an earlier look may have missed another's last
    writes. In memory only: after a restart there is no older look.

    Numbers are the log's, and only rise. `floor`: the latest end of all other resources.
    """

    __slots__ = ("_files", "_floor", "_last", "_last_wide", "_wide")

    #: How many scopes are remembered. The others only raise the floor.
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
        """Record that a right to this ended with the event `seq`."""
        if kind == "file":
            files = self._files
        else:
            files = self._wide
            self._last_wide = seq
        if scope in files:
            del files[scope]  # the newest come last
        files[scope] = self._last = seq
        if len(files) > self.MOST:
            self._floor = max(self._floor, files.pop(next(iter(files))))

    def since(self, kind: str, scope: str, seen: int) -> int:
        """Return how recent a look at this has to be, if the present look began at `seen`: the
        number of a later event that ended an overlapping right, or 0. Never too small."""
        if self._last <= seen:
            return 0
        latest = self._files.get(scope, 0) if kind == "file" else _latest(self._files, scope, seen)
        if self._last_wide > seen:
            latest = max(latest, _latest(self._wide, scope, seen))
        if self._floor > latest:
            latest = self._floor
        return latest if latest > seen else 0


def _latest(ended: dict[str, int], scope: str, seen: int) -> int:
    """Return the newest of these after `seen` that overlaps. They are ordered by number."""
    for other in reversed(ended):
        seq = ended[other]
        if seq <= seen:
            break
        if other.startswith(scope) or scope.startswith(other):
            return seq
    return 0
