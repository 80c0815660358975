"""The watcher: sees changes of files that no hook announced, and hands them over in batches.

It runs watchdog's observer and one thread. It only reports what changed: it looks at no lease and
opens no file. It watches the main working tree, without `.git`, `.coord`, what git ignores, and
names that are not UTF-8.

It may miss changes: a flooded kernel drops events, the kernel's watches run out, or a network drive
reports nothing. When the watcher notices that, the owner gets one `overflow`, which means "look at
everything again", and `health` has a sentence about it. At rest it costs nothing unless it polls.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypedDict

from watchdog.events import (
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers.api import BaseObserver

from coordinator.files.canonical import Tree
from coordinator.files.changes import Change, ChangeKind, Changes
from coordinator.files.ignore import BESIDE, BESIDE_ENDS, Ignore, is_private
from coordinator.files.roots import is_prepared
from coordinator.files.watchdog_observers import extend, native_observer, polling_observer

__all__ = ["Change", "Health", "Watcher"]

log = logging.getLogger(__name__)

#: A batch is handed over after so many spans of `debounce_s`, even if changes still come.
ROUNDS_MAX = 5
#: While the order of writers matters, a batch is handed over after so short a quiet (seconds), with
#: at most so many events.
HURRY_S, HURRIED_MAX = 0.02, 100
#: How long (seconds) to wait for the kernel's events where no file can be made to test it.
UNSURE_S = 0.03
#: How long `stop` waits for each thread, in seconds.
STOP_S = 5.0

#: Watchdog's name of an event with one path -> the change's kind.
_OF_ONE_PATH: dict[str, ChangeKind] = {
    "created": "created", "modified": "modified", "deleted": "deleted"
}
#: Kinds of changes that are reported with their time.
_TIMED = ("moved", "deleted")
_WANTED: list[type[FileSystemEvent]] = [
    FileCreatedEvent, FileModifiedEvent, FileDeletedEvent, FileMovedEvent,
    DirCreatedEvent, DirDeletedEvent, DirMovedEvent,
]
_RULES = ".gitignore"


class Health(TypedDict):
    """`mode` is `inotify` (or the system's like), `polling` or `off`; `detail` is a sentence."""

    mode: str
    detail: str
    dropped: int


class _Overheard(logging.Handler):
    """Listens to watchdog's log: only there watchdog reports that the kernel has dropped events."""

    def __init__(self, act: Callable[[], None]) -> None:
        super().__init__(logging.WARNING)
        self._act = act

    def emit(self, record: logging.LogRecord) -> None:
        if "overflow" in str(record.msg).lower():
            self._act()


class Manner(NamedTuple):
    """How a tree is watched.

    Attributes:
        debounce_s: how long it must be quiet before a batch is sent (and at most `ROUNDS_MAX`
            times as long in all).
        queue_max: paths that may be pending; beyond, details are dropped for an `overflow`.
        poll: whether to poll instead of using the kernel's notification.
        poll_s: how often to look when polling.
        native: makes the observer that is tried first; for tests.
    """

    debounce_s: float = 0.2
    queue_max: int = 10_000
    poll: bool = False
    poll_s: float = 2.0
    native: Callable[[], BaseObserver] | None = None


_AS_ALWAYS = Manner()


class Watcher(FileSystemEventHandler):
    """Watches one tree.

    Args:
        on_batch: called from the watcher's own thread with at least one change; an exception of
            it is logged, and the watcher goes on.
        on_renames: called before that, with the renames among them one by one, in their order.
        hurries: whether it is asked for less quiet just now (`HURRY_S`), for it matters who wrote
            first.
        manner: how it watches.
    """

    def __init__(
        self,
        tree: Tree,
        ignore: Ignore,
        on_batch: Callable[[list[Change]], None],
        *,
        on_renames: Callable[[list[Change]], None] = lambda moves: None,
        hurries: Callable[[], bool] = lambda: False,
        manner: Manner = _AS_ALWAYS,
    ) -> None:
        self._tree = tree
        self._root = str(tree.root).rstrip("/") + "/"
        self._ignore = ignore
        self._on_batch = on_batch
        self._on_renames = on_renames
        self._debounce_s = manner.debounce_s
        self._hurries = hurries
        self._queue_max = manner.queue_max
        self._poll = manner.poll
        self._poll_s = manner.poll_s
        self._native = manner.native or (
            lambda: native_observer(self._skips, self._lose, self._hear_file))

        self._lock = threading.Lock()
        self._changes = Changes()
        self._verdicts: dict[tuple[str, bool], bool] = {}
        self._seen = 0
        self._overflow = False
        self._dropped = 0
        self._rules_changed = False
        self._lost: OSError | None = None

        self._wake = threading.Event()
        #: Name of a file that is made for a moment -> set when its event has come.
        self._cookies: dict[str | None, threading.Event] = {}
        #: The next batch is handed over without waiting for quiet.
        self._hurried = threading.Event()
        #: All events that have come are handed over.
        self._handed = threading.Event()
        self._handed.set()
        self._stopping = threading.Event()
        self._observer: BaseObserver | None = None
        self._thread: threading.Thread | None = None
        self._mode, self._detail = "off", "The watcher has not been started."
        self._overheard = _Overheard(self._flood)

    def start(self) -> None:
        """Begin to watch. Never fails: `health` tells how well it watches."""
        if self._thread is not None:
            return
        self._stopping.clear()
        logging.getLogger("watchdog.observers").addHandler(self._overheard)
        self._observe()
        self._thread = threading.Thread(target=self._run, name="coord-watcher", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop watching. Pending changes are not sent any more. It may be called twice."""
        self._stopping.set()
        self._wake.set()
        self._hurried.set()
        thread, self._thread = self._thread, None
        if thread is not None and thread is not threading.current_thread():
            thread.join(STOP_S)
        self._close()
        logging.getLogger("watchdog.observers").removeHandler(self._overheard)
        self._mode, self._detail = "off", "The watcher has been stopped."

    def flush(self, timeout_s: float, *, sure: bool = True) -> None:
        """Hand over at once all changes made until now, and wait until the owner has them. Not for
        `on_batch`. `sure`: also wait for events that the kernel has yet to report."""
        if sure:
            self._catch_up(timeout_s)
        if not self._handed.is_set():
            self._hurried.set()
            self._handed.wait(timeout_s)

    def _catch_up(self, timeout_s: float) -> None:
        """Wait until the kernel has reported all changes made until now. It reports in order, so
        the event of a file that is made now comes last. Watchman calls such a file a cookie."""
        if self._mode != "inotify":
            return
        name, heard = f"{BESIDE}{secrets.token_hex(8)}{BESIDE_ENDS}", threading.Event()
        self._cookies[name] = heard
        try:
            cookie = Path(self._root, name)
            cookie.touch(0o600, exist_ok=False)
            cookie.unlink()
            heard.wait(timeout_s)
        except OSError:  # the root cannot be written
            time.sleep(UNSURE_S)
        finally:
            self._cookies.pop(name, None)

    def health(self) -> Health:
        """How well it watches, for `coord doctor` and the status."""
        return {"mode": self._mode, "detail": self._detail, "dropped": self._dropped}

    # --- observers --------------------------------------------------------------------------

    def _observe(self, refused: OSError | None = None) -> None:
        """Watch by the best means that works. `refused`: why the kernel's notification does not."""
        why = "as configured"
        if not self._poll:
            if refused is None:
                try:
                    self._open(self._native())
                    refused, self._lost = self._lost, None
                except OSError as no:
                    refused = no
            if refused is None:
                self._mode = "inotify"
                self._detail = "The kernel tells of each change."
                return
            self._close()
            why = (
                f"since the kernel has no watches left ({refused.strerror or refused}; "
                "raise fs.inotify.max_user_watches or max_user_instances)"
            )
            log.warning("watching by polling, %s", why)
        try:
            self._open(polling_observer(self._skips, self._poll_s))
        except OSError as no:
            self._close()
            self._mode, self._detail = "off", f"The tree cannot be watched: {no.strerror or no}."
            log.error("%s", self._detail)
            return
        self._mode = "polling"
        self._detail = f"The tree is looked through every {self._poll_s:g} s, {why}."

    def _open(self, observer: BaseObserver) -> None:
        self._observer = observer
        observer.schedule(self, self._root.rstrip("/") or "/", recursive=True, event_filter=_WANTED)
        observer.start()

    def _close(self) -> None:
        observer, self._observer = self._observer, None
        if observer is None:
            return
        observer.stop()
        if observer.is_alive():
            observer.join(STOP_S)

    def _skips(self, directory: str) -> bool:
        """Whether a directory need not be watched. Watchdog's threads call this."""
        if not directory.startswith(self._root):
            return False
        path = directory[len(self._root) :]
        if self._ignore.ignored(path, True) or directory in self._tree.worktrees():
            return True
        return is_prepared(directory)  # it has a coordinator of its own

    def _lose(self, no: OSError) -> None:
        """Note that a directory could not be watched, so changes in it would be missed."""
        with self._lock:
            self._lost = no
            self._seen += 1
        self._ring()

    def _flood(self) -> None:
        with self._lock:
            self._overflow = True
            self._seen += 1
        self._ring()

    # --- events in, from watchdog's threads -------------------------------------------------

    def dispatch(self, event: FileSystemEvent) -> None:
        """Take one raw event from watchdog."""
        self._hear(event.event_type, event.is_directory, event.src_path, event.dest_path)

    def _hear_file(self, kind: str, path: bytes) -> None:
        self._hear(kind, False, path, "")

    def _note_root(self, kind: str) -> None:
        if kind in ("deleted", "moved"):
            self._mode, self._detail = "off", "The root of the tree is gone."

    def _find_time(self, kind: str) -> int | None:
        """When this event came (Unix ms); None for kinds without a time. A deletion that polling
        finds has none either, because polling finds it late."""
        polled = kind == "deleted" and self._mode != "inotify"
        return time.time_ns() // 1_000_000 if kind in _TIMED and not polled else None

    def _note_change(self, kind: str, is_dir: bool, path: str | None, to: str | None,
                     heard_ms: int | None) -> None:
        """Add a change. `path`, `to`: the old and the new name; None if the name is not watched.
        """
        if kind != "moved":
            if path is not None and kind in _OF_ONE_PATH:
                self._changes.add(_OF_ONE_PATH[kind], path, None, is_dir, heard_ms)
        elif path is not None and to is not None:
            self._changes.add("moved", path, to, is_dir, heard_ms)
        elif path is not None:
            self._changes.add("deleted", path, None, is_dir, heard_ms)
        elif to is not None:
            # The old name is not watched, like an editor's temporary file: the bytes are new.
            self._changes.add("created" if is_dir else "modified", to, None, is_dir)

    def _hear(self, kind: str, is_dir: bool, source: bytes | str, target: bytes | str) -> None:
        path = self._relative(source)
        if (cookie := self._cookies.get(path)) is not None:
            cookie.set()
            return
        to = self._relative(target) if target else None
        with self._lock:
            if path == "":
                self._note_root(kind)
                return
            self._seen += 1
            if self._overflow:
                self._dropped += 1
                return
            if kind == "modified" and path is not None and self._changes.knows_written(path):
                return
            heard_ms = self._find_time(kind)
            left = path is not None and not self._ignored(path, is_dir)
            came = bool(to and not self._ignored(to, is_dir))
            self._note_change(kind, is_dir, path if left else None, to if came else None, heard_ms)
            if not left and not came:
                return
            if len(self._changes) > self._queue_max:
                self._dropped += len(self._changes)
                self._changes.clear()
                self._overflow = True
        self._ring()

    def _ring(self) -> None:
        with self._lock:
            self._handed.clear()
            self._wake.set()

    def _relative(self, path: bytes | str) -> str | None:
        """The path from the root (which is `""`); None if it cannot be named."""
        text = path if isinstance(path, str) else path.decode("utf-8", "surrogateescape")
        if not text.isascii() and any("\udc80" <= sign <= "\udcff" for sign in text):
            return None
        if text.startswith(self._root):
            return text[len(self._root) :]
        return "" if text + "/" == self._root else None

    def _ignored(self, path: str, is_dir: bool) -> bool:
        """Whether a path is not reported. Each event asks, so a batch remembers the verdicts."""
        if is_private(path):
            return True
        if path.rpartition("/")[2] == _RULES:
            self._rules_changed = True
            self._verdicts.clear()
        key = (path, is_dir)
        verdict = self._verdicts.get(key)
        if verdict is None:
            if len(self._verdicts) > self._queue_max:
                self._verdicts.clear()
            verdict = self._verdicts[key] = self._ignore.ignored(path, is_dir)
        return verdict

    # --- batches out, from the watcher's thread ---------------------------------------------

    def _run(self) -> None:
        while True:
            self._wake.wait()
            began = self._seen
            for _ in range(ROUNDS_MAX):
                seen = self._seen
                if self._hurried.wait(self._pause(began)) or self._seen == seen:
                    break
            if self._stopping.is_set():
                return
            self._hurried.clear()
            batch, moves = self._take()
            if batch or moves:
                try:
                    if moves:
                        self._on_renames(moves)
                    self._on_batch(batch)
                except Exception:
                    log.exception("the owner of the watcher failed on a batch; the watcher goes on")
            with self._lock:
                if not self._wake.is_set():
                    self._handed.set()

    def _pause(self, began: int) -> float:
        few = self._seen - began < HURRIED_MAX
        return min(HURRY_S, self._debounce_s) if few and self._hurries() else self._debounce_s

    def _take(self) -> tuple[list[Change], list[Change]]:
        with self._lock:
            self._wake.clear()
            self._verdicts.clear()
            moves = self._changes.moves()
            batch = self._changes.take()
            overflow, self._overflow = self._overflow, False
            rules, self._rules_changed = self._rules_changed, False
            lost, self._lost = self._lost, None
        if lost is not None and self._mode == "inotify":
            # Half a view would be worse than a slow one.
            self._close()
            self._observe(lost)
            overflow = True
        elif (rules or overflow) and self._observer is not None:
            extend(self._observer)
        if overflow:
            return [Change("overflow", "")], []
        return self._at_home(batch), [change for change in self._at_home(moves) if change.kind
                                      == "moved"]

    def _at_home(self, batch: list[Change]) -> list[Change]:
        """Leave out what happened in linked worktrees inside this one."""
        foreign = tuple(
            root[len(self._root) :] + "/"
            for root in self._tree.worktrees()
            if root.startswith(self._root)
        )
        if not foreign:
            return batch
        changes = []
        for change in batch:
            left = not f"{change.path}/".startswith(foreign)
            if change.to is None or not f"{change.to}/".startswith(foreign):
                if left:
                    changes.append(change)
                elif change.to is not None:
                    changes.append(Change("created", change.to, None, change.is_dir))
            elif left:
                changes.append(Change("deleted", change.path, None, change.is_dir, change.heard_ms))
        return changes
