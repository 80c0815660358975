"""git's plumbing, as coord asks it: commits, what differs between them, moving a branch.

It runs `git` for one directory, without a person's hooks, without prompts, and without the
environment's words about other repositories. Paths are text as the file system gives them (bytes
that are no UTF-8 as surrogates). It decides nothing.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, TypeVar

import msgspec

from coordinator.words.pickled import Pickled
from coordinator.words.refusals import Code, Refusal

#: How long git may take (seconds); a checkout of a large tree may take its time.
TIMEOUT_S, CHECKOUT_TIMEOUT_S = 120.0, 1800.0
#: Files that are read at the same time.
AT_ONCE = 4
#: Paths that are given to git in one command.
PATHS_AT_ONCE = 200
#: Modes of tree entries: a symlink, a submodule, nothing, an executable file, files.
LINK, SUBMODULE, NO_MODE, EXECUTABLE = "120000", "160000", "000000", "100755"
FILES = frozenset({"100644", "100664", EXECUTABLE})
#: The variables that would make git look at another repository than its working directory's.
ELSEWHERE = frozenset({
    "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE", "GIT_PREFIX", "GIT_GRAFT_FILE",
    "GIT_SHALLOW_FILE", "GIT_IMPLICIT_WORK_TREE", "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_QUARANTINE_PATH", "GIT_LITERAL_PATHSPECS", "GIT_GLOB_PATHSPECS", "GIT_NOGLOB_PATHSPECS",
    "GIT_ICASE_PATHSPECS",
})
#: Fixes the settings of a person on which git's answers depend.
ANSWERS = (
    "-c", "core.quotePath=false", "-c", "core.fsmonitor=false", "-c", "submodule.recurse=false",
    "-c", "diff.relative=false", "-c", "log.showRoot=true", "-c", "log.showSignature=false",
    "-c", "log.follow=false", "-c", "color.ui=false",
)
_SETTINGS = (
    *ANSWERS, "-c", "core.hooksPath=/dev/null", "-c", "core.fsync=all", "-c", "gc.auto=0",
    "-c", "maintenance.auto=false", "-c", "advice.detachedHead=false",
)

#: git reads the list of all worktrees for many commands. It fails if another git has made the
#: folder of one, and has not written into it yet.
_HALF_MADE = re.compile(r"failed to read .*/worktrees/.*/commondir")
HALF_MADE_TRIES, HALF_MADE_S = 20, 0.05

T = TypeVar("T")


#: Signs of it in the git directory.
_UNDER_WAY = {
    "MERGE_HEAD": "merge", "CHERRY_PICK_HEAD": "cherry-pick", "REVERT_HEAD": "revert",
    "rebase-merge": "rebase", "rebase-apply": "rebase",
}


class GitError(Pickled, Exception):
    """git said no. `said` is its last line."""

    def __init__(self, args: Sequence[str], code: int, errors: str) -> None:
        lines = [line for line in errors.strip().splitlines() if line.strip()]
        self.lines = lines
        self.said = lines[-1].strip() if lines else f"exit code {code}"
        self.code = code
        super().__init__(f"git {' '.join(args[:3])}: {self.said}")

    def refusal(self, what: str) -> Refusal:
        """STORAGE: what could not be done, in words, and what git said of it."""
        return Refusal(Code.STORAGE, f"{what}: git said {self.said!r}.",
                       next="Look at what git said; `git fsck` and `git worktree list` help.")


class Entry(msgspec.Struct, frozen=True):
    """A path that differs between two trees: git's modes (`000000`: absent there) and ids."""

    path: str
    old_mode: str
    new_mode: str
    old: str
    new: str

    @property
    def submodule(self) -> bool:
        """Whether it is a submodule on either side."""
        return SUBMODULE in (self.old_mode, self.new_mode)


def under_way(git_dir: Path) -> str:
    """The operation under way in the working tree of this git directory, as git calls it (`merge`);
    empty if there is none."""
    return next((what for sign, what in _UNDER_WAY.items() if (git_dir / sign).exists()), "")


def clean_environment() -> dict[str, str]:
    """The environment without what speaks of another repository."""
    kept = {k: v for k, v in os.environ.items() if k not in ELSEWHERE}
    return kept | {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", "GIT_EDITOR": "true"}


class Git:
    """git in one directory. `index`: on an index of its own; `timeout_s`: how long it may take."""

    def __init__(self, place: Path, index: Path | None = None,
                 timeout_s: float = TIMEOUT_S) -> None:
        self.place, self._timeout_s = place, timeout_s
        self._env = clean_environment()
        if index is not None:
            self._env["GIT_INDEX_FILE"] = str(index)

    def run(self, *args: str, data: bytes | None = None, timeout_s: float | None = None,
            env: dict[str, str] | None = None) -> bytes:
        """The output of git. If a worktree was just being made, git is run again.

        Raises:
            GitError: it failed, could not be started, or took too long.
        """
        for _ in range(HALF_MADE_TRIES):
            try:
                return self._run(args, data, timeout_s, env)
            except GitError as bad:
                if not _HALF_MADE.search("\n".join(bad.lines)):
                    raise
            time.sleep(HALF_MADE_S)
        return self._run(args, data, timeout_s, env)

    def _run(self, args: Sequence[str], data: bytes | None, timeout_s: float | None,
             env: dict[str, str] | None) -> bytes:
        limit_s = self._timeout_s if timeout_s is None else timeout_s
        try:
            done = subprocess.run(
                ["git", *_SETTINGS, *args], cwd=self.place, env=self._env | (env or {}),
                input=data if data is not None else b"", capture_output=True, timeout=limit_s,
                check=False, process_group=0,  # Ctrl-C is for the caller, not for git
            )
        except FileNotFoundError as bad:
            missing = "there is no program called git" if bad.filename == "git" else str(bad)
            raise GitError(args, 127, missing) from None
        except OSError as bad:
            raise GitError(args, 127, str(bad)) from None
        except subprocess.TimeoutExpired:
            raise GitError(args, 124, f"it took longer than {limit_s:g} s") from None
        if done.returncode:
            raise GitError(args, done.returncode, done.stderr.decode("utf-8", "replace"))
        return done.stdout

    def text(self, *args: str) -> str:
        """The output of git, without the final newline."""
        return os.fsdecode(self.run(*args)).removesuffix("\n")

    def maybe(self, *args: str) -> str | None:
        """The output of git; None if it fails."""
        try:
            return self.text(*args)
        except GitError:
            return None

    def names(self, *args: str) -> list[str]:
        """The names in git's output, each with a NUL after it."""
        return [os.fsdecode(name) for name in self.run(*args).split(b"\0") if name]

    # ------------------------------------------------------------ commits

    def branch(self) -> str | None:
        """The checked out branch, in full (`refs/heads/…`); None: detached, or no git."""
        return self.maybe("symbolic-ref", "-q", "HEAD")

    def commit(self, name: str) -> str | None:
        """The id of the commit that `name` means; None if there is none."""
        return self.maybe("rev-parse", "-q", "--verify", f"{name}^{{commit}}")

    def takes_for_file(self, word: str) -> bool:
        """Whether `git checkout WORD` takes this for a file: it is one, and names no commit, nor a
        branch of a remote that git would make a branch of. Also no if that cannot be told."""
        try:
            self.run("rev-parse", "-q", "--verify", f"{word}^{{commit}}")
        except GitError as bad:
            if bad.code != 1:
                return False
        else:
            return False
        if os.path.lexists(self.place / word):
            return True
        try:
            known_names = self.names("--literal-pathspecs", "ls-files", "-z", "--", word)
            return bool(known_names) and not self.text("for-each-ref", f"refs/remotes/*/{word}")
        except GitError:
            return False

    def base(self, name: str, other: str) -> str | None:
        """The common ancestor of two commits; None if they have no history in common."""
        return self.maybe("merge-base", name, other)

    def contains(self, commit: str, earlier: str) -> bool:
        """Whether `earlier` is `commit` or in its history."""
        return self.maybe("merge-base", "--is-ancestor", earlier, commit) is not None

    def changes(self, before: str, after: str) -> list[Entry]:
        """The differences between two commits (or trees), path by path; a rename is two paths.

        Raises:
            GitError: there is no such commit.
        """
        fields = self.names("diff-tree", "-r", "-z", "--no-renames", "--ignore-submodules=none",
                            before, after)
        entries = []
        for about, path in zip(fields[::2], fields[1::2], strict=True):
            old_mode, new_mode, old, new, _ = about.removeprefix(":").split(" ")
            entries.append(Entry(path, old_mode, new_mode, old, new))
        return entries

    def entries(self, commit: str, paths: Sequence[str], *, below: bool = False,
                ) -> dict[str, tuple[str, str]]:
        """The entries of a commit at these paths (relative to the directory that git runs in), or
        the files `below` them: path -> (mode, id). Missing paths are left out.

        Raises:
            GitError: there is no such commit.
        """
        result = {}
        for start in range(0, len(paths), PATHS_AT_ONCE):
            some = paths[start : start + PATHS_AT_ONCE]
            for line in self.names("ls-tree", *(("-r",) if below else ()), "-z", commit, "--",
                                   *some):
                about, _, path = line.partition("\t")
                mode, _, name = about.split(" ")
                result[path] = mode, name
        return result

    def contents(self, files: Sequence[tuple[str, str]], take: Callable[[IO[bytes]], T],
                 ) -> dict[str, T]:
        """The results of `take` for the bytes of each of these (id, path), as the working tree
        would have them, by path.

        One process for each file, a few at a time: git's whole output is one file, so nothing
        depends on a size or on a name's characters. `cat-file --batch --filters` prints the size
        before the filters, and the bytes after them.

        Raises:
            GitError: git cannot read them.
            OSError: what `take` raises.
        """
        def read_content(asked: tuple[str, str]) -> T:
            return self._stream(take, "cat-file", "--filters", f"--path={asked[1]}", asked[0])

        from concurrent.futures import ThreadPoolExecutor  # seldom wanted

        with ThreadPoolExecutor(AT_ONCE) as pool:
            return dict(zip((path for _, path in files), pool.map(read_content, files),
                            strict=True))

    def blob(self, name: str) -> bytes:
        """The bytes of a blob as git has them: of a link, its target.

        Raises:
            GitError: there is none.
        """
        return self.run("cat-file", "blob", name)

    def _stream(self, take: Callable[[IO[bytes]], T], *args: str) -> T:
        with tempfile.TemporaryFile() as errors, self._start(args, errors) as process:
            assert process.stdout is not None
            late = threading.Timer(TIMEOUT_S, process.kill)
            late.start()
            try:
                got = take(process.stdout)
                process.stdout.read()  # should it have stopped early
            except BaseException:
                process.kill()
                raise
            finally:
                late.cancel()
            code = process.wait()
            if code:
                errors.seek(0)
                raise GitError(args, code, errors.read().decode("utf-8", "replace"))
        return got

    def _start(self, args: Sequence[str], errors: IO[bytes]) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                ["git", *_SETTINGS, *args], cwd=self.place, env=self._env,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, process_group=0,
            )
        except OSError as bad:
            raise GitError(args, 127, str(bad)) from None

    def move(self, ref: str, new: str, old: str, why: str) -> bool:
        """Let a branch that is at `old` be at `new`; whether it was at `old`. One step, on disk."""
        try:
            self.run("update-ref", "-m", why, ref, new, old)
        except GitError:
            if self.commit(ref) == old:
                raise
            return False
        return True

    def checked_out_in(self, ref: str) -> str | None:
        """The working tree that has this branch checked out; None if none has."""
        text = self.maybe("for-each-ref", "--format=%(worktreepath)", ref)
        return text or None
