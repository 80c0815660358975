"""Observers of watchdog that look only where something can be leased.

watchdog watches every directory below the root: `.git` with its objects, coord's own database at
each commit, `node_modules`. That wastes kernel watches, of which there may be only 8,192, and time.
The observers here pass over what a `skip` function names. The one for inotify leans on parts of
watchdog 7 that are not promised; where they are missing, watchdog's own observer is used, which
watches too much and reports the same.
"""

# Paths are plain strings here, as watchdog gives them.

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver
from watchdog.observers.polling import PollingObserverVFS

#: Whether a directory (absolute path) is passed over, with all that is below.
Skip = Callable[[str], bool]
#: Told when the kernel has no watch left for a directory.
Lost = Callable[[OSError], None]

#: What the kernel says when watches, instances or memory for them have run out.
EXHAUSTED = frozenset({errno.ENOSPC, errno.EMFILE, errno.ENFILE, errno.ENOMEM})


def polling_observer(skip: Skip, interval_s: float) -> BaseObserver:
    """An observer that compares the tree with what it was, every `interval_s` seconds."""

    def entries(directory: str | None) -> Iterator[os.DirEntry[str]]:
        with os.scandir(directory) as found:
            kept = [
                entry for entry in found
                if not (entry.is_dir(follow_symlinks=False) and skip(entry.path))
            ]
        return iter(kept)

    return PollingObserverVFS(os.lstat, entries, polling_interval=interval_s)


def native_observer(skip: Skip, lost: Lost) -> BaseObserver:
    """The kernel's notification, without a timer.

    Raises:
        OSError: the kernel has no more instances of it.
    """
    return _pruned(skip, lost) if _pruned is not None else Observer()


def extend(observer: BaseObserver) -> None:
    """Watch directories that were passed over before and no longer are."""
    for emitter in list(observer.emitters):
        group = getattr(emitter, "_inotify", None)
        more = getattr(group, "watch_missing", None)
        if more is not None:
            more()


_pruned: Callable[[Skip, Lost], BaseObserver] | None = None

try:
    from watchdog.observers.inotify import InotifyEmitter, InotifyObserver, InotifyWatchGroup
except (ImportError, OSError, AttributeError):  # not Linux, or an older watchdog
    pass
else:

    class _Group(InotifyWatchGroup):
        """The watches below one directory, without those that `skip` names."""

        def __init__(self, skip: Skip, lost: Lost, *args: Any, **more: Any) -> None:
            self._skip = skip
            self._lost = lost
            super().__init__(*args, **more)

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
            """As `_add_callback`, which says nothing when the kernel has no watch left."""
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
        def __init__(self, skip: Skip, lost: Lost, *args: Any, **more: Any) -> None:
            super().__init__(*args, **more)
            self._make = partial(_Group, skip, lost)

        def on_thread_start(self) -> None:
            self._inotify = self._make(
                self._inotify_fd,
                os.fsencode(self.watch.path),
                is_recursive=self.watch.is_recursive,
                event_mask=self.get_event_mask_from_filter(),
                follow_symlink=False,
            )

    class _Observer(InotifyObserver):
        def __init__(self, skip: Skip, lost: Lost) -> None:
            super().__init__()
            # Declared as a class, only ever called: a partial will do.
            self._emitter_class = partial(_Emitter, skip, lost)  # type: ignore[assignment]

    _pruned = _Observer
