"""The working tree that has the target checked out follows it, and loses nothing of a person's.

During a landing the working tree's index is locked in git's own way (`index.lock`), so that no
`git add` or `git commit` of a person comes in between. Uncommitted changes are found before the
branch moves; git itself looks again, file by file, before it writes any.

Three steps, in this order: the index, the branch, the files. `git commit` looks at the branch, then
reads the index, and only then takes the lock: one that saw the branch moved must find the index
moved, too, or it would commit the old content on top of the new.

After a crash in the middle the files are brought forward one by one. The old content, the new one,
or a torn beginning of the new one is replaced; anything else is another's, and stays.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

from coordinator.files.beneath import Root
from coordinator.files.git import (
    CHECKOUT_TIMEOUT_S,
    EXECUTABLE,
    NO_MODE,
    Entry,
    Git,
    GitError,
    under_way,
)
from coordinator.words import file_names
from coordinator.words.refusals import Code, Refusal

#: How long to wait for another git in the same working tree (seconds), and how often to look.
LOCK_S, LOCK_TICK_S = 10.0, 0.02
#: The content of the lock file, so that one left by a crash is recognised as ours.
MARK = b"coord: a landing is going on\n"


class CheckoutUpdate:
    """One working tree, its index locked between `with` and its end. For the landing that has the
    turn (`recovery.turn`): there is one at a time, and the turn ends with its process. So a lock
    that says it is ours, found by the one with the turn, is a dead process's."""

    def __init__(self, top: Path) -> None:
        plain = Git(top)
        self.top = top
        self._git_dir = top / plain.text("rev-parse", "--git-dir")
        self._index = top / plain.text("rev-parse", "--git-path", "index")
        self._lock = self._index.with_name(self._index.name + ".lock")
        self._own = self._index.with_name("coord-index")
        self._next = self._index.with_name("coord-index.next")
        self._git = Git(top, self._own)

    def __enter__(self) -> CheckoutUpdate:
        """Lock the index. Waits a little for another holder.

        Raises:
            Refusal: LOCKED: another git has it, or a merge or the like is going on.
        """
        deadline = time.monotonic() + LOCK_S
        pause = threading.Event()
        while True:
            try:
                with self._lock.open("xb") as file:
                    file.write(MARK + f"pid {os.getpid()}\n".encode())
                break
            except FileExistsError:
                if self._is_ours():  # and it is our turn: its process is dead
                    break
                if time.monotonic() > deadline:
                    raise in_use(
                        f"another git has had {self._lock} for {LOCK_S:g} s",
                        f"If no git is running there, remove {self._lock}.",
                    ) from None
                pause.wait(LOCK_TICK_S)
            except OSError as bad:
                raise Refusal(Code.STORAGE, f"{self._lock} cannot be written: {bad.strerror}."
                              ) from None
        try:
            what = under_way(self._git_dir)
            if what:
                raise in_use(f"a {what} is going on in {self.top}", "Finish it there.")
            if self._index.exists():
                shutil.copyfile(self._index, self._own)
            with contextlib.suppress(GitError):  # it says so when files differ; that is no error
                self._git.run("update-index", "-q", "--refresh", timeout_s=CHECKOUT_TIMEOUT_S)
            if self._git.run("ls-files", "-u", "-z"):
                raise in_use(f"the index of {self.top} has unresolved conflicts",
                             "Resolve them there.")
        except GitError as bad:
            self._let_go()
            raise bad.refusal(f"The index of {self.top} cannot be read") from None
        except BaseException:
            self._let_go()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, bad: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._let_go()

    def _let_go(self) -> None:
        for path in (self._own, self._next):
            path.unlink(missing_ok=True)
            path.with_name(path.name + ".lock").unlink(missing_ok=True)
        self._lock.unlink(missing_ok=True)

    def clear_crash(self) -> None:
        """Take away the lock of a landing that died, and no other lock."""
        if self._is_ours():
            self._let_go()

    def _is_ours(self) -> bool:
        try:
            return self._lock.read_bytes().startswith(MARK)
        except OSError:
            return False

    # ------------------------------------------------------------ before the branch moves

    def dirty(self, tip: str, changes: Iterable[Entry]) -> list[str]:
        """Return the paths to be written that have content that is in no commit.

        Raises:
            GitError: git cannot tell.
        """
        differing = set(self._git.names("diff-files", "-z", "--name-only"))
        differing.update(self._git.names("diff-index", "--cached", "-z", "--name-only", tip))
        result: dict[str, None] = {}
        for entry in changes:
            if entry.path in differing:
                result[entry.path] = None
            elif entry.old_mode == NO_MODE:
                in_the_way = self._in_the_way(entry.path)
                if in_the_way is not None:
                    result[in_the_way] = None
        return list(result)

    def _in_the_way(self, path: str) -> str | None:
        """Return the path that blocks a new file: its own, or a file instead of a directory.

        A tracked file that this landing removes does not count.
        """
        parts = path.split("/")
        for end in range(1, len(parts) + 1):
            part = "/".join(parts[:end])
            try:
                mode = os.lstat(self.top / part).st_mode
            except OSError:
                return None
            if (end == len(parts) or not stat.S_ISDIR(mode)) and not self._tracked(part):
                return part
        return None

    def _tracked(self, path: str) -> bool:
        return bool(self._git.run("--literal-pathspecs", "ls-files", "-z", "--", path))

    def rehearse(self, before: str, after: str) -> str | None:
        """Return git's objections to an update from one commit to the other; None if it has none.
        """
        try:
            self._git.run("read-tree", "-n", "-m", "-u", before, after,
                          timeout_s=CHECKOUT_TIMEOUT_S)
        except GitError as bad:
            return "; ".join(bad.lines[:3]) or bad.said
        return None

    def announce(self, before: str, after: str) -> None:
        """Let the index be the new one, before the branch moves. `withdraw` undoes it.

        Raises:
            GitError: git refused; nothing was changed.
        """
        shutil.copyfile(self._own, self._next)
        Git(self.top, self._next).run("read-tree", "-i", "-m", before, after)
        self._next.replace(self._index)

    def withdraw(self) -> None:
        """Restore the old index: the branch did not move, or went back."""
        shutil.copyfile(self._own, self._next)
        self._next.replace(self._index)

    # ------------------------------------------------------------ after it

    def follow(self, before: str, after: str) -> None:
        """Bring files and index from one commit to the other. All others stay as they are.

        Raises:
            GitError: git refused, before it wrote anything; or the disk did.
        """
        self._git.run("read-tree", "-m", "-u", before, after, timeout_s=CHECKOUT_TIMEOUT_S)
        self._own.replace(self._index)

    def repair(self, before: str, after: str) -> list[str]:
        """Do `follow` again after a crash in the middle of it. Return the paths that were changed
        since, which are left as they are.

        Raises:
            GitError: git refused.
        """
        self._go_back(before, after)
        foreign: list[str] = []
        settled: list[bytes] = []
        for entry, state in self._without_torn(before, after):
            if state in ("new", "foreign"):
                # The index has it as landed: a person's content shows as their change to it.
                settled.append(b"%s %s 0\t%s\0" % (
                    entry.new_mode.replace(NO_MODE, "0").encode(), entry.new.encode(),
                    os.fsencode(entry.path)))
            if state == "foreign":
                foreign.append(entry.path)
        if settled:
            self._git.run("update-index", "-z", "--index-info", data=b"".join(settled))
        with contextlib.suppress(GitError):
            self._git.run("update-index", "-q", "--refresh", timeout_s=CHECKOUT_TIMEOUT_S)
        self.follow(before, after)
        return foreign

    def _without_torn(self, before: str, after: str) -> list[tuple[Entry, str]]:
        """Remove our half-written files, and return the state of each changed path."""
        try:
            with Root(os.path.realpath(self.top)) as root:
                states = [(entry, self._state(root, entry, after))
                          for entry in self._git.changes(before, after)]
                for entry, state in states:
                    if state == "torn":
                        with root.above(_text(entry.path)) as (place, name):
                            os.unlink(name, dir_fd=place)
        except OSError as bad:
            raise GitError(("read-tree",), 1, f"{bad.filename}: {bad.strerror}") from None
        return states

    def undo(self, before: str, after: str) -> None:
        """After a crash before the branch moved, without written files: put the index back.

        Raises:
            GitError: git refused.
        """
        self._go_back(before, after)
        self._own.replace(self._index)

    def _go_back(self, before: str, after: str) -> None:
        """Restore our own index, whether or not the new one had been announced."""
        self._git.run("read-tree", "-i", "-m", after, before)
        with contextlib.suppress(GitError):
            self._git.run("update-index", "-q", "--refresh", timeout_s=CHECKOUT_TIMEOUT_S)

    def _state(self, root: Root, entry: Entry, after: str) -> str:
        """Return `old`, `new`, `absent`, `torn` (a beginning of the new), or `foreign`."""
        content = root.snapshot(_text(entry.path), sys.maxsize)
        if content.kind == "absent":
            return "new" if entry.new_mode == NO_MODE else "absent"
        if content.data is None:
            return "foreign" if entry.new_mode != NO_MODE or entry.old_mode == NO_MODE else "old"
        data, is_file = content.data, content.kind == "file"
        if entry.old == entry.new and is_file:  # only the executable bit changes
            executable = bool(content.mode & stat.S_IXUSR)
            return "new" if executable == (entry.new_mode == EXECUTABLE) else "old"
        if not is_file:
            now = self._git.run("hash-object", "--stdin", data=data).decode().strip()
        else:
            now = self._git.run("hash-object", "--stdin", "--path", entry.path,
                                data=data).decode().strip()
        if now == entry.new:
            return "new"
        if now == entry.old:
            return "old"
        if entry.new_mode == NO_MODE:
            return "foreign"
        wanted = self._git.run("cat-file", "--filters", f"{after}:{entry.path}")
        return "torn" if wanted.startswith(data) else "foreign"


def _text(path: str) -> str:
    """Return a path of git's as `files.beneath` takes it."""
    return file_names.from_bytes(os.fsencode(path))


def in_use(why: str, step: str) -> Refusal:
    """Return LOCKED: a person is at work there, and nothing was done."""
    return Refusal(Code.LOCKED, f"Nothing can land now: {why}.", next=step, resource="git:index",
                   conflicts=[])
