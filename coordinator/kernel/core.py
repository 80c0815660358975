"""What every use case has at hand, and who asks.

The service keeps only the calls that hooks have announced, the verdicts that are being carried out,
and the deadlocks that took long to find.
"""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from coordinator.archive.index import ArchiveIndex
from coordinator.files.blobs import BlobFolder
from coordinator.files.canonical import Tree
from coordinator.files.ignore import Ignore
from coordinator.files.state import StateDir
from coordinator.kernel.hooks import Slice
from coordinator.looking.file_regions import FileRegions
from coordinator.looking.working_trees import WorkingTrees
from coordinator.rules.landing import STATE_DIR
from coordinator.settings import Settings
from coordinator.store.rows import AgentRow
from coordinator.words import file_names
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from coordinator.words.texts import one_line

if TYPE_CHECKING:
    from coordinator.kernel.leasing.deadlocks import Deadlock
    from coordinator.store.ledger import View

T = TypeVar("T")
#: Announced calls that are remembered: they are made within a moment.
CALLERS_MAX = 512


class Actor(msgspec.Struct, frozen=True, gc=False):
    """The sender of a request: a registered agent that showed its token, or the operator, a person.
    """

    row: AgentRow | None = None
    """The agent's, as it was when its token was read."""

    @property
    def agent(self) -> str | None:
        """The agent's name; None for a person."""
        return self.row.agent if self.row is not None else None

    @property
    def operator(self) -> bool:
        """A person at the keyboard, who may act for any agent."""
        return self.row is None


OPERATOR = Actor()


class ChangeJudge(Protocol):
    """Tells what a change of a file breaks elsewhere. For a worker: it may wait."""

    def note(self, paths: Iterable[str]) -> None:
        """These files were changed, as far as is seen."""

    def note_all(self) -> None:
        """More was changed than was seen."""

    def judge(self, path: str, before: bytes, after: bytes, held: Collection[str],
              seconds: float | None = None) -> Any:
        """Judge what a change breaks. A text says why that is unknown."""

    def refuse(self, outcome: Any, held: Collection[str]) -> Refusal | None:
        """Why a change with this judgement may not be written; None if it may."""

    def close(self) -> None:
        """End what it has started."""


class Presence(Protocol):
    """What the daemon sees of those who ask. A process is told by a mark, a text that stays right
    over restarts. `look_at` reads outside of transactions, `is_connected` also within."""

    def mark(self, pid: int) -> str:
        """The mark of a process; empty if it is not seen."""

    def look_at(self, mark: str) -> bool | None:
        """Whether this process has ended; None if that cannot be seen."""

    def is_connected(self, token_hash: str | None) -> bool:
        """Whether a connection is open that has acted with this token."""

    def has_acted(self, token_hash: str | None) -> bool:
        """Whether the process that registered with this token has acted with it itself."""


class Unseen:
    """Nothing is seen: there is no daemon."""

    def mark(self, pid: int) -> str:
        """No mark."""
        return ""

    def look_at(self, mark: str) -> bool | None:
        """Nothing is known."""
        return None

    def is_connected(self, token_hash: str | None) -> bool:
        """No connection."""
        return False

    def has_acted(self, token_hash: str | None) -> bool:
        """No act."""
        return False


@dataclass(slots=True)
class Service:
    """The repository's facts: its files, its archive, its settings, and the seal for tokens."""

    settings: Settings
    tree: Tree
    ignore: Ignore
    archive: ArchiveIndex
    secret: bytes
    #: Ids of tool calls that hooks have announced -> whose they are. Only the newest.
    callers: dict[str, str] = field(default_factory=dict)
    #: Tasks whose branches are being moved just now: their leases do not end meanwhile.
    landing: set[str] = field(default_factory=set)
    #: Large contents, beside the database.
    blobs: BlobFolder = field(init=False, repr=False)
    #: Reviews whose verdict is being carried out now, in this process.
    at_work: set[str] = field(default_factory=set)
    #: Divides files for commits of regions, by a process of its own.
    regions: FileRegions = field(default_factory=FileRegions)
    #: Judges what changes break elsewhere; None if nothing does that.
    impact: ChangeJudge | None = None
    #: The capabilities beside the kernel, in the order in which they hear of things.
    slices: Sequence[Slice] = ()
    #: Waits until everything written and renamed so far is recorded. None if nothing watches. Call
    #: it in a thread. See `daemon.watch_bridge` for its arguments.
    wait_for_watcher: Callable[..., object] | None = None
    #: Agents whose hooks are gone, so that they may write without being asked -> why.
    unguarded: Mapping[str, str] = field(default_factory=dict)
    #: Begins to close what has expired, if nothing does yet. Returns whether that continues.
    tend: Callable[[], bool] = lambda: False
    #: What the daemon knows of itself; None if there is no daemon.
    health: Callable[[rq.Health], rq.HealthReply] | None = None
    #: What is seen of the processes and connections of those who ask.
    presence: Presence = field(default_factory=Unseen)
    #: Long deadlocks and when they were detected (ms). Other members that ask are told of them.
    deadlocks: list[tuple[int, Deadlock]] = field(default_factory=list)
    #: What the working trees change and have not landed. It runs git: for a thread.
    trees: WorkingTrees = field(init=False, repr=False)
    _sealing: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        # Taking in the key is half of a seal's work, and the same for all.
        self._sealing = hashlib.blake2b(key=self.secret, digest_size=16)
        self.blobs = BlobFolder(StateDir(self.tree.root).blobs,
                                lambda: self.settings.review.kept_bytes_max)
        self.trees = WorkingTrees(self.tree, self.regions,
                                  lambda: self.settings.review.file_bytes_max)

    @property
    def root(self) -> str:
        """The repository's root, a real path."""
        return str(self.tree.root)

    @property
    def fold_case(self) -> bool:
        """Whether the disk takes `A` and `a` for one name."""
        return self.tree.fold_case

    def where(self, worktree: str | None, path: str) -> str:
        """The absolute path of a repo-relative one, in the worktree that a lease was taken in."""
        return posixpath.join(worktree or self.root, path)

    def is_launched_worktree(self, worktree: str | None) -> bool:
        """Whether a worktree is one that a launch made: what is done there has to land."""
        place = posixpath.join(self.root, STATE_DIR, "worktrees") + "/"
        return worktree is not None and posixpath.normpath(worktree).startswith(place)

    def announce(self, call: str, holder: str) -> None:
        """A hook says that this holder is about to make this call, to a tool of coord's own."""
        self.callers[call] = holder
        while len(self.callers) > CALLERS_MAX:
            del self.callers[next(iter(self.callers))]

    def seal(self, fencing_token: int) -> str:
        """The secret lease token that goes with a fencing token. Nowhere stored: made from the
        daemon's secret, so it survives restarts and cannot be read from the database."""
        seal = self._sealing.copy()
        seal.update(b"%d" % fencing_token)
        sealed: str = seal.hexdigest()
        return sealed


@lru_cache(maxsize=1024)
def token_hash(token: str) -> str:
    """How an agent's token is stored."""
    return hashlib.sha256(token.encode()).hexdigest()


def owner(view: View, agent: str) -> str:
    """The session that an agent works in. For a sub-agent it is its parent's."""
    row = view.agent(agent)
    return row.parent if row is not None and row.parent else agent


def family(view: View, agent: str) -> set[str]:
    """An agent, and the one whose sub-agent it is."""
    return {agent, owner(view, agent)}


def split_page(rows: list[T], limit: int) -> tuple[list[T], bool]:
    """At most `limit` of the rows, of which one more was read, and whether others follow."""
    return rows[:limit], len(rows) > limit


def check_at_rest(service: Service, tasks: Iterable[str | None]) -> None:
    """Whether none of these tasks is landing just now: its leases must not end in between.

    Raises:
        Refusal: LOCKED.
    """
    busy = sorted(service.landing.intersection(task for task in tasks if task is not None))
    if busy:
        raise Refusal(
            Code.LOCKED, f"{busy[0]} is landing just now, under these leases; nothing was changed.",
            next="Repeat it in a moment.", conflicts=[], retry_after_s=1.0,
        )


def check_wait(service: Service, wait_s: float) -> None:
    """Check that a request waits no longer than any may (seconds).

    Raises:
        Refusal: INVALID.
    """
    most = service.settings.leases.wait_max_s
    if not 0 <= wait_s <= most:
        raise Refusal(Code.INVALID, f"`wait_s` must be between 0 and {most:g}. Nothing was done.",
                      next="Repeat with a number in that range.", field="wait_s")


def check_give(give_s: float) -> None:
    """Check that something is given for a possible time (seconds).

    Raises:
        Refusal: INVALID.
    """
    if not 0.1 <= give_s <= 86_400:
        raise Refusal(Code.INVALID, "`give_s` must be between 0.1 and 86400. Nothing was done.",
                      next="Repeat with a number in that range.", field="give_s")


def ms(seconds: float) -> int:
    """Seconds as whole milliseconds."""
    return round(seconds * 1000)


def listed(names: Sequence[str], most: int = 3) -> str:
    """`a`, `a and b`, `a, b and 4 more`; each name once, for copies of one file in several working
    trees have the same. Names of files may hold anything."""
    names = list(dict.fromkeys(names))
    names = [one_line(file_names.shown(name)) for name in names[:most]] + list(names[most:])
    if len(names) > most:
        return ", ".join(names[:most]) + f" and {len(names) - most} more"
    first = ", ".join(names[:-1])
    return f"{first} and {names[-1]}" if first else "".join(names)


def last_before(view: View, instant: str) -> int:
    """The last event before an instant (UTC), as far as the clock was never put back."""
    low, high = 0, int(view.value("event_last") or 0)
    while low < high:
        middle = (low + high) // 2
        asked_at = view.value("event_at_from", middle + 1)
        if asked_at is not None and asked_at < instant:
            low = middle + 1
        else:
            high = middle
    return low
