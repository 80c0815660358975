"""Compare-and-exchange of one file: write, replace or remove it only if it is what was expected.

One step of the kernel (`renameat2`) takes out what a path holds and puts the wanted content in its
place. Then the two are compared. If what came out is not what was expected, somebody saved it in
that very moment, and it goes back. So nothing is overwritten that was not looked at. The caller
keeps the expected content as a blob beforehand.

Each step uses one name beside the file, which is announced in advance (`Step.aside`). After a crash
at any instant `Exchanger.settle` finds what is half done and finishes it or takes it back. Contents
are named as in `files.content`. The module does not decide whether a file may be written.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial

from coordinator.files import syscalls
from coordinator.files.beneath import Root
from coordinator.files.blobs import BlobFolder
from coordinator.files.content import Content, is_link, snapshot
from coordinator.files.verdict_steps import Outcome, Saved, Source, Step, is_mixed, name_of, pour

#: How long to wait for a program that has the file open for writing (seconds): it is about to close
#: it, or its text is not known yet.
WRITER_S, WRITER_TICK_S = 2.0, 0.01
#: How often a repeatedly saved content is put back before the last one is kept aside.
BACK_MAX = 20
#: Directories without files, one in the other, that are cleared away for a file.
NESTED_MAX = 64


@dataclass(slots=True)
class Exchanger:
    """Carries out steps in one working tree.

    `source` gives the bytes of a content by its name. `saved` gathers what somebody saved in the
    middle of a step and could not stay in its place: it is kept in `blobs`. `after_crash`: these
    steps may have been begun before. `own_links`: paths at which a step takes or puts a link.
    """

    root: Root
    blobs: BlobFolder
    source: Callable[[str], Source]
    after_crash: bool = False
    own_links: frozenset[str] = frozenset()
    saved: list[Saved] = field(default_factory=list)
    _folders: set[str] = field(default_factory=set)

    def run(self, step: Step) -> Outcome:
        """Carry out one step, also one that a crash has cut off."""
        try:
            return self._run(step)
        except _Changed as other:
            outcome = Outcome("changed", str(other))
        except OSError as no:
            barred = no.errno in (errno.ELOOP, errno.ENOTDIR)
            outcome = (Outcome("barred", "a link or a file stands where its directory was")
                       if barred else Outcome("failed", (no.strerror or str(no)).lower()))
        with suppress(OSError):  # if it cannot be tidied now, the next try does
            self.settle(step)
        return outcome

    def sync(self) -> None:
        """Bring to the disk that names were given and taken.

        Raises:
            OSError: the disk refused.
        """
        while self._folders:
            folder = next(iter(self._folders))
            self.root.sync(folder)
            self._folders.discard(folder)

    def settle(self, step: Step) -> None:
        """Remove what a crash in this step has left beside the file, or put it back.

        Raises:
            OSError: the disk refused.
        """
        try:
            with self.root.above(step.path) as (place, name):
                _Beside(self, step.reversed(0), place, name).settle()
                _Beside(self, step, place, name).settle()
        except OSError as no:
            if no.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                raise

    # ------------------------------------------------------------ within

    def _run(self, step: Step) -> Outcome:
        if self.after_crash:  # else nothing can be there yet: the names are new
            self.settle(step)
        now = self._now(step)
        # A directory is no content: one may be where no file has to be.
        if now.name == step.new and now.kind != "special":
            return Outcome("done")
        if now.kind == "special":
            raise _Changed("a pipe, a socket or a device stands there now")
        if now.name != step.old and not (self.after_crash and step.in_place):
            raise _Changed("somebody has changed it since" if now.kind != "absent"
                           else "somebody has deleted it since")
        self._folders.add(step.path.rpartition("/")[0])
        with self.root.above(step.path, make=step.new is not None) as (place, name):
            beside = _Beside(self, step, place, name)
            if step.new is None:
                return beside.remove()
            if step.in_place and now.kind != "symlink" and step.old is not None:
                return beside.write_in_place()
            return beside.create() if step.old is None else beside.replace()

    def _now(self, step: Step) -> Content:
        """The present content; none below a link that is itself the result of another step."""
        try:
            return self.root.snapshot(step.path, 0, strict=True)
        except OSError as no:
            if no.errno != errno.ELOOP or self.root.link_above(step.path) not in self.own_links:
                raise
        return self.root.snapshot(step.path, 0)

    def keep(self, step: Step, place: int, name: bytes) -> None:
        """Keep a saved content as a blob, before it is taken away."""
        content = snapshot(name, 0, place=place, taker=partial(self.blobs.take, forced=True))
        if content.data is not None:  # a link's target, or the nothing of an empty file
            self.blobs.put(content.data, forced=True)
        if content.name is not None:
            self.saved.append(Saved(step.path, content.name, content.size))


class _Changed(Exception):
    """Another change came first."""


@dataclass(slots=True)
class _Beside:
    """One step, in the directory of its file."""

    by: Exchanger
    step: Step
    place: int
    name: bytes
    aside: bytes = b""
    fresh: bytes = b""

    def __post_init__(self) -> None:
        #: Whatever has the name `fresh` is ours and may be torn; `aside` never is.
        self.aside, self.fresh = self.step.beside()

    # ------------------------------------------------------------ the three kinds of steps

    def create(self) -> Outcome:
        """There is nothing yet: nothing may be replaced."""
        self._clear_directory()
        self._write_fresh()
        try:
            syscalls.rename_new(self.place, self.fresh, self.name)
        except FileExistsError:
            self._unlink(self.fresh)
            raise _Changed("somebody has made a file there since") from None
        return Outcome("done")

    def replace(self) -> Outcome:
        """The new content goes in as the old one comes out; then that is compared."""
        self._write_fresh()
        os.rename(self.fresh, self.aside, src_dir_fd=self.place, dst_dir_fd=self.place)
        try:
            syscalls.exchange(self.place, self.aside, self.name)
        except FileNotFoundError:
            self._unlink(self.aside)
            raise _Changed("somebody has deleted it since") from None
        except OSError as no:
            if no.errno not in syscalls.UNSUPPORTED:
                raise
            return self._replace_in_two()
        content, busy = self._came_out()
        if content.name == self.step.old and not busy:
            return self._throw_away(content)
        self._put_back()
        raise _Changed(_writing(busy))

    def _replace_in_two(self) -> Outcome:
        """Replace the file where no two names can be exchanged: the old content comes out first."""
        os.rename(self.aside, self.fresh, src_dir_fd=self.place, dst_dir_fd=self.place)
        content = self._take_out()
        try:
            syscalls.rename_new(self.place, self.fresh, self.name)
        except FileExistsError:
            self._unlink(self.fresh)
            self._unlink(self.aside)
            raise _Changed("somebody has made a file there since") from None
        return self._throw_away(content)

    def remove(self) -> Outcome:
        """The old content comes out, and nothing goes in."""
        return self._throw_away(self._take_out())

    def write_in_place(self) -> Outcome:
        """Give all names of the file the new content. A program that opens it meanwhile waits; one
        that has it open for reading may see some of both."""
        deadline = time.monotonic() + WRITER_S
        while time.monotonic() < deadline:
            with self._opened(os.O_RDWR) as fd, syscalls.Alone(fd) as alone:
                if alone.held is not False:
                    return self._rewrite(fd)
            _pause()
        with self._opened(os.O_RDONLY) as fd:
            if syscalls.has_writer(fd):
                raise _Changed(_writing(True))
        with self._opened(os.O_RDWR) as fd:
            return self._rewrite(fd)

    @contextmanager
    def _opened(self, how: int) -> Iterator[int]:
        flags = how | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        fd = os.open(self.name, flags, dir_fd=self.place)
        try:
            yield fd
        finally:
            os.close(fd)

    def _rewrite(self, fd: int) -> Outcome:
        step = self.step
        assert step.old is not None and step.new is not None
        old, new = self.by.source(step.old), self.by.source(step.new)
        if name_of(fd) != step.old and not (self.by.after_crash and is_mixed(fd, old, new)):
            raise _Changed("somebody has changed it since")
        os.lseek(fd, 0, os.SEEK_SET)
        size = pour(new, fd, step.new)
        os.ftruncate(fd, size)
        os.fchmod(fd, step.mode)
        os.fsync(fd)
        return Outcome("done")

    # ------------------------------------------------------------ what they are made of

    def _write_fresh(self) -> None:
        """The new content, whole and on the disk, beside the file."""
        step = self.step
        assert step.new is not None
        content = self.by.source(step.new)
        if is_link(step.new):
            assert isinstance(content, bytes)
            os.symlink(content, self.fresh, dir_fd=self.place)
            return
        fd = os.open(self.fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
                     | os.O_CLOEXEC, 0o600, dir_fd=self.place)
        try:
            pour(content, fd, step.new)
            os.fchmod(fd, step.mode)
            os.fsync(fd)
        except BaseException:
            with suppress(OSError):
                self._unlink(self.fresh)
            raise
        finally:
            os.close(fd)

    def _take_out(self) -> Content:
        """Rename the file to `aside`, if it has the expected content."""
        try:
            os.rename(self.name, self.aside, src_dir_fd=self.place, dst_dir_fd=self.place)
        except FileNotFoundError:
            raise _Changed("somebody has deleted it since") from None
        content, busy = self._came_out()
        if content.name == self.step.old and not busy:
            return content
        self._put_back()
        self._unlink(self.fresh)
        raise _Changed(_writing(busy))

    def _came_out(self) -> tuple[Content, bool]:
        """The content with the name `aside`, and whether it still has a writer: then its end is
        unknown. No new writer comes, because nobody knows the name."""
        with suppress(OSError):
            fd = os.open(self.aside, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC,
                         dir_fd=self.place)
            try:
                deadline = time.monotonic() + WRITER_S
                while stat.S_ISREG(os.fstat(fd).st_mode) and syscalls.has_writer(fd):
                    if time.monotonic() > deadline:
                        return snapshot(self.aside, 0, place=self.place), True
                    _pause()
            finally:
                os.close(fd)
        return snapshot(self.aside, 0, place=self.place), False

    def _throw_away(self, content: Content) -> Outcome:
        """Remove the name of what came out: it was expected, and is kept as a blob."""
        self._unlink(self.aside)
        return Outcome("done", out=content.stamp[:2] if content.stamp else None,
                       names=content.links - 1)

    def _put_back(self) -> None:
        """Put back what came out, because somebody saved it; also what is saved meanwhile. The last
        save stays."""
        there = self.step.new
        for _ in range(BACK_MAX):
            saved = snapshot(self.aside, 0, place=self.place).name
            try:
                if there is None:
                    syscalls.rename_new(self.place, self.aside, self.name)
                    return
                syscalls.exchange(self.place, self.aside, self.name)
            except FileExistsError:
                break  # newer than what we have
            except FileNotFoundError:
                there = None
                continue
            except OSError as no:
                if no.errno not in syscalls.UNSUPPORTED or there is None:
                    raise
                there = None
                continue
            output = snapshot(self.aside, 0, place=self.place).name
            if output == there:
                if output != self.step.new:
                    self.by.keep(self.step, self.place, self.aside)
                self._unlink(self.aside)
                return
            there = saved
        self.by.keep(self.step, self.place, self.aside)
        self._unlink(self.aside)

    def settle(self) -> None:
        """After a crash: remove what is beside the file, or put it back to its place."""
        self._unlink(self.fresh)
        beside, busy = self._came_out()
        if beside.kind == "absent":
            return
        self.by._folders.add(self.step.path.rpartition("/")[0])
        old, new = self.step.old, self.step.new
        now = snapshot(self.name, 0, place=self.place)
        if now.kind == "absent":
            if beside.name == new and new != old:
                self._unlink(self.aside)  # it never came into its place
            elif new is None and beside.name == old and not busy:
                self._unlink(self.aside)  # it was on its way out
            else:
                with suppress(FileExistsError):
                    syscalls.rename_new(self.place, self.aside, self.name)
                    return
                self.by.keep(self.step, self.place, self.aside)
                self._unlink(self.aside)
        elif beside.name in (old, new) and not busy:
            self._unlink(self.aside)
        elif now.name == new:
            self._put_back()
        else:
            self.by.keep(self.step, self.place, self.aside)
            self._unlink(self.aside)

    def _clear_directory(self) -> None:
        """Remove a directory without files in the place of the file, because git knows no such
        directory."""
        with suppress(FileNotFoundError, NotADirectoryError):
            try:
                _remove_empty(self.place, self.name)
            except OSError as no:
                if no.errno in (errno.ENOTEMPTY, errno.EEXIST):
                    raise _Changed("a directory with other files stands there now") from None
                raise

    def _unlink(self, name: bytes) -> None:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self.place)


def _writing(busy: bool) -> str:
    return ("another program is writing it just now" if busy
            else "somebody has changed it since")


def _pause() -> None:
    threading.Event().wait(WRITER_TICK_S)


def _remove_empty(place: int, name: bytes, deep: int = NESTED_MAX) -> None:
    """Remove a directory in which there are only directories (not deeper than `deep`), if any.

    Raises:
        OSError: ENOTEMPTY; NotADirectoryError.
    """
    fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place)
    try:
        with os.scandir(fd) as entries:
            found_entries = list(entries)
        for entry in found_entries:
            if deep == 0 or not entry.is_dir(follow_symlinks=False):
                raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), name)
        for entry in found_entries:
            _remove_empty(fd, os.fsencode(entry.name), deep - 1)
    finally:
        os.close(fd)
    os.rmdir(name, dir_fd=place)


