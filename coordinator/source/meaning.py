"""Asking for the meaning of a repository's files: the places that a change of one file breaks.

Owns the first reading of a repository, in pieces, so that a judgement waits for one piece at most.
A file on which the worker fails is recorded as unreadable and skipped from then on.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence
from threading import Event, Thread

import msgspec

from coordinator.meaning.outcomes import Break, Outcome, Versions
from coordinator.source import protocol
from coordinator.source.reader_process import TRIES, NoAnswerError, ReaderProcess, WorkerFailedError

#: The most time (seconds) for a judgement, and for reading one piece.
SECONDS_MAX = 20.0
#: How many times as long the listing of a repository's files may take.
LISTING_TIMES = 3
#: Files in one piece.
PIECE_FILES = 32


class Progress(msgspec.Struct, frozen=True):
    """The progress of reading a repository.

    Attributes:
        state: `failed`: it ended early; `why` says why.
        done, files: files looked at, and how many there are in all; 0 until they are listed.
        read: how many of them were read anew.
    """

    state: str = "not begun"
    done: int = 0
    files: int = 0
    read: int = 0
    why: str = ""


class Meaning(ReaderProcess):
    """The meaning of one repository.

    Args:
        root: the real path of its working tree.
        index: the file of the index, a cache that may be deleted while it is not in use; or
            `:memory:` for an index that lasts as long as the worker.
        forks: `WorkerProcess.forks`.
    """

    def __init__(self, root: str, index: str, seconds: float = SECONDS_MAX,
                 command: Sequence[str] | None = None, *, forks: bool = False) -> None:
        super().__init__(seconds, (root, index), command, forks=forks)
        self._stop = Event()
        self._thread: Thread | None = None
        self._progress = Progress()

    def start(self) -> None:
        """Begin to read the repository, in a thread. `progress` returns its state. Files that have
        not changed since they were read are skipped."""
        if self._thread is None or not self._thread.is_alive():
            self._stop.clear()
            self._thread = Thread(target=self._quietly, name="meaning", daemon=True)
            self._thread.start()

    def progress(self) -> Progress:
        """Return the progress of the reading that `start` or `read_all` has begun."""
        return self._progress

    def is_reading(self) -> bool:
        """Whether the reading that `start` began continues."""
        return self._thread is not None and self._thread.is_alive()

    def read_all(self, told: Callable[[Progress], None] | None = None) -> Progress:
        """Read all changed files, and return when that is done.

        Args:
            told: called after each piece.

        Raises:
            NoAnswerError
        """
        self._progress = Progress("listing")
        try:
            listed = self.ask(protocol.ListFiles(), protocol.Listed, LISTING_TIMES * self.seconds)
            self._progress = Progress("reading", 0, listed.files)
            for piece in _pieces(listed.paths):
                if self._stop.is_set():
                    break
                read = self.update(piece)
                now = self._progress
                self._progress = Progress(
                    "reading", min(now.done + len(piece), now.files), now.files, now.read + read)
                if told is not None:
                    told(self._progress)
        except NoAnswerError as bad:
            self._progress = msgspec.structs.replace(self._progress, state="failed", why=str(bad))
            raise
        state = "stopped" if self._stop.is_set() else "done"
        self._progress = msgspec.structs.replace(self._progress, state=state)
        return self._progress

    def update(self, paths: Collection[str]) -> int:
        """Look at these files again: read changed files, and forget missing ones.

        Returns:
            how many were read.

        Raises:
            NoAnswerError: the disk refused, or there is no worker to be had.
        """
        return sum(self._update_piece(piece) for piece in _pieces(sorted(paths)))

    def judge(self, path: str, old: bytes | None, new: bytes | None,
              held: Collection[str] = ()) -> Outcome:
        """Judge a change of one file (`judging.judge`). Never raises for the file's content:
        without a judgement in time, it is escalated."""
        try:
            question = protocol.JudgeChange(path, old, new, sorted(held))
            return self.ask(question, protocol.Judged).outcome
        except NoAnswerError as bad:
            return Outcome("ESCALATION_REQUIRED", path, note=str(bad))

    def judge_within(self, seconds: float, path: str, old: bytes | None, new: bytes | None,
                     changed: Collection[str] = ()) -> Outcome:
        """Judge a change for a caller that continues without a judgement. `seconds` also covers
        waiting for others' questions, and looking at `changed` files again.

        Raises:
            NoAnswerError
        """
        question = protocol.JudgeChange(path, old, new, changed=sorted(changed))
        return self.ask(question, protocol.Judged, seconds, in_turn=False, tries=1).outcome

    def misfits(self, seconds: float, files: Sequence[Versions]) -> list[Break]:
        """Find uses that fit on both sides of a merge, and not in it (`merged.misfits`).

        Raises:
            NoAnswerError
        """
        return self.ask(protocol.FindMisfits(list(files)), protocol.Misfits, seconds).breaks

    def close(self) -> None:
        """End the worker and the reading at once, for good."""
        self._stop.set()
        super().close()
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()

    def _quietly(self) -> None:
        with contextlib.suppress(NoAnswerError):  # `progress` has the failure
            self.read_all()

    def _update_piece(self, paths: list[str]) -> int:
        for _ in range(1 if len(paths) > 1 else TRIES):
            with contextlib.suppress(WorkerFailedError):
                return self.ask(protocol.UpdateFiles(paths), protocol.Updated, tries=1).read
        if len(paths) > 1:
            return sum(self._update_piece([path]) for path in paths)
        self.ask(protocol.UpdateFiles([], paths), protocol.Updated)
        return 1


def _pieces(paths: Sequence[str]) -> Iterator[list[str]]:
    for position in range(0, len(paths), PIECE_FILES):
        yield list(paths[position:position + PIECE_FILES])
