"""Observers of watchdog that look only where something can be leased.

watchdog watches every directory below the root: `.git` with its objects, coord's own database at
each commit, `node_modules`. That wastes kernel watches, of which there may be only 8,192, and time.
These observers skip what a `skip` function names. The one for inotify uses parts of watchdog 7 that
are not promised. If they are missing, watchdog's own observer is used, which watches too much and
reports the same.
"""

# Paths are plain strings here, as watchdog gives them.

from __future__ import annotations

import errno
import os
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver, ObservedWatch
from watchdog.observers.polling import PollingObserverVFS

#: Whether a directory (absolute path) is passed over, with all that is below.
Skip = Callable[[str], bool]
#: Told when the kernel has no watch left for a directory.
Lost = Callable[[OSError], None]
#: Gets a file that was `created`, `modified` or `deleted`: (which of these, absolute path).
Heard = Callable[[str, bytes], None]

#: The prefix of the names of marks (see `_Order`): no file has a NUL in its name.
_MARK = "\0came out "

#: The kernel's errors if watches, instances or memory for them have run out.
EXHAUSTED = frozenset({errno.ENOSPC, errno.EMFILE, errno.ENFILE, errno.ENOMEM})


def polling_observer(skip: Skip, interval_s: float) -> BaseObserver:
    """An observer that compares the tree with its earlier state, every `interval_s` seconds."""

    def entries(directory: str | None) -> Iterator[os.DirEntry[str]]:
        with os.scandir(directory) as scan:
            kept = [
                entry for entry in scan
                if not (entry.is_dir(follow_symlinks=False) and skip(entry.path))
            ]
        return iter(kept)

    return PollingObserverVFS(os.lstat, entries, polling_interval=interval_s)


def native_observer(skip: Skip, lost: Lost, heard: Heard | None = None) -> BaseObserver:
    """The kernel's notification, without a timer. Changes of single files may go to `heard` alone,
    and not as an event to handlers: there they come at once, from another thread.

    Raises:
        OSError: the kernel has no more instances of it.
    """
    # It says so when a directory was moved before its first watch was there: that is no fault.
    warnings.filterwarnings("ignore", "Callback with id", RuntimeWarning)
    return _pruned(skip, lost, heard) if _pruned is not None else Observer()


def extend(observer: BaseObserver) -> None:
    """Watch directories that were passed over before and no longer are."""
    for emitter in list(observer.emitters):
        group = getattr(emitter, "_inotify", None)
        more = getattr(group, "watch_missing", None)
        if more is not None:
            more()


_pruned: Callable[[Skip, Lost, Heard | None], BaseObserver] | None = None

try:
    from watchdog.observers.inotify import InotifyEmitter, InotifyObserver, InotifyWatchGroup
    from watchdog.observers.inotify_c import InotifyConstants, InotifyEvent, WatchDescriptor
    from watchdog.observers.inotify_move_event_grouper import PathedInotifyEvent
except (ImportError, OSError, AttributeError):  # not Linux, or an older watchdog
    pass
else:

    #: The change of one file, by the kernel's flag for it. A directory has another flag, too.
    _OF_A_FILE: dict[int, str] = {
        InotifyConstants.IN_CREATE: "created", InotifyConstants.IN_MODIFY: "modified",
        InotifyConstants.IN_DELETE: "deleted",
    }

    class _Order:
        """Whether watchdog's queues and threads hold events that others must not overtake. After
        each of them a mark is sent, and comes out behind it."""

        def __init__(self) -> None:
            self.sent = 0
            self.came_out = 0

        def mark(self) -> PathedInotifyEvent:
            """The next mark: it looks like a file of a name that no file has."""
            self.sent += 1
            looks = InotifyEvent(WatchDescriptor(0), InotifyConstants.IN_CREATE, 0, b"")
            return PathedInotifyEvent(looks, os.fsencode(f"{_MARK}{self.sent}"))

    class _Handler(FileSystemEventHandler):
        """Hands on all but marks."""

        def __init__(self, order: _Order, handler: FileSystemEventHandler) -> None:
            self._order = order
            self._handler = handler

        def dispatch(self, event: FileSystemEvent) -> None:
            path = os.fsdecode(event.src_path)
            if path.startswith(_MARK):
                self._order.came_out = int(path[len(_MARK):])
            else:
                self._handler.dispatch(event)

    class _Group(InotifyWatchGroup):
        """The watches below one directory, without those that `skip` names."""

        def __init__(self, skip: Skip, lost: Lost, heard: Heard | None, order: _Order, *args: Any,
                     **more: Any) -> None:
            self._skip = skip
            self._lost = lost
            self._heard = heard
            self._order = order
            super().__init__(*args, **more)

        def on_event(self, event: InotifyEvent) -> None:
            """Like watchdog's own, which hands each event on through two queues and threads. That
            takes 0.1 ms of the interpreter, twice for each of 20,000 files that a checkout writes.
            A file's event is handed on directly if it can overtake nothing."""
            what, order = _OF_A_FILE.get(event.mask), self._order
            if (what is None or self._heard is None or not event.name
                    or order.sent != order.came_out):
                super().on_event(event)
                self._move_event_grouper.put_event(order.mark())
                return
            with self._lock:
                directory = self._active_callbacks_by_watch.get(event.wd)
                is_active = self.is_active and directory is not None
            if is_active and directory is not None:
                self._heard(what, directory + b"/" + event.name)

        def on_queue_overflow(self) -> None:
            super().on_queue_overflow()  # marks are lost together with the events before them
            self._move_event_grouper.put_event(self._order.mark())

        def _add_all_callbacks(self, path: bytes) -> None:
            self._watch_below(path, again=True)

        def watch_missing(self) -> None:
            """Add watches for directories that have none."""
            with self._lock:
                if self.is_active:
                    self._watch_below(self.path, again=False)

        def _watch_below(self, path: bytes, *, again: bool) -> None:
            if path != self.path and self._skip(os.fsdecode(path)):
                return
            todo = [path]
            while todo:
                directory = todo.pop()
                if again or directory not in self._active_callbacks_by_path:
                    self._watch(directory)
                try:
                    with os.scandir(directory) as entries:
                        todo += [
                            entry.path for entry in entries
                            if entry.is_dir(follow_symlinks=False)
                            and not self._skip(os.fsdecode(entry.path))
                        ]
                except OSError:
                    continue  # gone again, or closed to us

        def _watch(self, directory: bytes) -> None:
            """Like `_add_callback`, which is silent if the kernel has no watch left."""
            try:
                wd = self._inotify_fd.add_callback(
                    directory, self.event_mask, self._callback, self._id
                )
            except OSError as no:
                if directory == self.path:
                    raise
                if no.errno in EXHAUSTED:
                    self._lost(no)
                return
            self._active_callbacks_by_path[directory] = wd
            self._active_callbacks_by_watch[wd] = directory

    class _Emitter(InotifyEmitter):
        def __init__(self, skip: Skip, lost: Lost, heard: Heard | None, order: _Order, *args: Any,
                     **more: Any) -> None:
            super().__init__(*args, **more)
            self._make = partial(_Group, skip, lost, heard, order)

        def on_thread_start(self) -> None:
            self._inotify = self._make(
                self._inotify_fd,
                os.fsencode(self.watch.path),
                is_recursive=self.watch.is_recursive,
                event_mask=self.get_event_mask_from_filter(),
                follow_symlink=False,
            )

    class _Observer(InotifyObserver):
        def __init__(self, skip: Skip, lost: Lost, heard: Heard | None) -> None:
            super().__init__()
            self._order = _Order()
            # Declared as a class, only ever called: a partial will do.
            # It is called, never looked at:
            self._emitter_class = partial(  # type: ignore[assignment]
                _Emitter, skip, lost, heard, self._order
            )

        def schedule(self, event_handler: FileSystemEventHandler, *args: Any,
                     **more: Any) -> ObservedWatch:
            return super().schedule(_Handler(self._order, event_handler), *args, **more)

    _pruned = _Observer
