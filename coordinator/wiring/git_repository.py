"""What git says of a commit or push that is about to happen: which files, and from which commit.

Git runs in the environment that it gave the hook, because its index may be a temporary one. The
module only reads. Paths are relative to the top of the working tree, as text made from the file
system's bytes.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from coordinator.files.git import ANSWERS, clean_environment
from coordinator.regions.outline import FILE_BYTES_MAX
from coordinator.rules import git_listings
from coordinator.words.refusals import Code, Refusal

#: How long git may take (seconds).
TIMEOUT_S = 120.0
#: How old (seconds) a lock of the index is that a git has left.
STALE_S = 60.0
_NOTHING = frozenset("0")


class Push(msgspec.Struct, frozen=True):
    """One line of a pre-push hook's input: a ref, its new value and its value at the remote."""

    ref: str
    local: str
    remote: str


def git(*args: str, cwd: Path | None = None, env: dict[str, str] | None = None) -> bytes:
    """The output of git, run in this environment or in ours.

    Raises:
        Refusal: STORAGE, with what git said.
    """
    try:
        done = subprocess.run(["git", *ANSWERS, *args], cwd=cwd, env=env, capture_output=True,
                              check=False, stdin=subprocess.DEVNULL, timeout=TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as bad:
        raise Refusal(Code.STORAGE, f"git could not be asked: {bad}.",
                      next="Look whether git works here.") from None
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines() or [
            str(done.returncode)]
        why = next((line for line in lines if line.startswith("fatal: ")), lines[-1])
        # git names a command itself, as where another user owns the folder.
        step = lines[-1].strip()
        raise Refusal(
            Code.STORAGE, f"git {args[0]} failed: {why.removeprefix('fatal: ')}.",
            next=f"`{step}`" if step.startswith("git ") else "Look at what git said.",
        )
    return done.stdout


def maybe(*args: str, cwd: Path | None = None) -> str | None:
    """The output of git, without the final newline; None if it fails."""
    try:
        return os.fsdecode(git(*args, cwd=cwd)).removesuffix("\n")
    except Refusal:
        return None


class WorkTree(NamedTuple):
    """A working tree and what belongs to it, as git tells it (`of`).

    Attributes:
        top: its uppermost folder.
        own: where git keeps what is of this working tree alone (MERGE_HEAD, the index).
        common: where git keeps what all working trees of the repository share.
        hooks: where git looks for hooks.
    """

    top: Path
    own: Path
    common: Path
    hooks: Path

    @staticmethod
    def of(place: Path) -> WorkTree | None:
        """The working tree around `place`. None outside of one, or if a newline in its name makes
        the name ambiguous."""
        text = maybe("rev-parse", "--show-toplevel", "--git-dir", "--git-common-dir", "--git-path",
                     "hooks", cwd=place)
        parts = text.split("\n") if text else []
        if len(parts) != 4:
            return None
        top, own, common, hooks = (Path(os.path.realpath(place / part)) for part in parts)
        if top != Path(os.path.realpath(place)):
            # git prints a relative `core.hooksPath` as it is set, but means it from the top.
            again = maybe("rev-parse", "--git-path", "hooks", cwd=top)
            if again is None:
                return None
            hooks = Path(os.path.realpath(top / again))
        return WorkTree(top, own, common, hooks)


def list_stale_locks(place: Path) -> list[Path]:
    """Locks of git's index, of this working tree and linked ones, that are older than any git
    needs: a git that was killed has left them, and each other git fails."""
    tree = WorkTree.of(place)
    if tree is None:
        return []
    result = []
    for path in (tree.common / "index.lock", *tree.common.glob("worktrees/*/index.lock")):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > STALE_S:
                result.append(path)
    return result


def top(cwd: Path | None = None) -> Path | None:
    """The top of the working tree; None outside of one."""
    text = maybe("rev-parse", "--show-toplevel", cwd=cwd)
    return Path(text) if text else None


def staged(place: Path, own: Path | None = None) -> list[str]:
    """Files that the commit would change, delete or rename (both names).

    Of a merge only what differs from every parent: what a branch brings was committed there.

    Args:
        own: `WorkTree.own`, where it is known: git need not be asked whether this is a merge.
    """
    result = git_listings.staged(git("diff", "--cached", "--raw", "-z", "--no-renames",
                                     "--ignore-submodules=none", cwd=place))
    if own is not None:
        merges = (own / "MERGE_HEAD").is_file()
    else:
        merges = maybe("rev-parse", "-q", "--verify", "MERGE_HEAD", cwd=place) is not None
    if not merges:
        return result
    other = _names(git("diff", "--cached", "--name-only", "-z", "--no-renames", "MERGE_HEAD",
                       cwd=place))
    return [path for path in result if path in other]


def unstaged(place: Path) -> list[str]:
    """Files of the working tree that differ from the index."""
    return sorted(_names(git("diff", "--name-only", "-z", "--no-renames", cwd=place)))


def content(place: Path, name: str) -> bytes | None:
    """git's content of a name (`HEAD:PATH`; `:PATH` for the index); None if it has none."""
    try:
        return git("cat-file", "blob", name, cwd=place)
    except Refusal:
        return None


def saved(place: Path, path: str) -> bytes | None:
    """The file in the working tree; None if none can be read."""
    from coordinator.files.beneath import snapshot_real  # only `git commit FILE` asks for it

    try:
        return snapshot_real(str(place), path, FILE_BYTES_MAX).data
    except OSError:
        return None


def pushes(text: str) -> list[Push]:
    """The lines of a pre-push hook's input, without deletions."""
    result = []
    for line in text.splitlines():
        words = line.rsplit(" ", 3)
        if len(words) == 4 and not set(words[1]) <= _NOTHING:
            result.append(Push(words[0], words[1], words[3]))
    return result


def changed(place: Path, push: Push, remote: str, since: str) -> dict[str, int]:
    """The files that the pushed commits changed since an instant -> the last change (Unix seconds).
    """
    has_remote = not set(push.remote) <= _NOTHING and maybe(
        "cat-file", "-e", f"{push.remote}^{{commit}}", cwd=place) is not None
    without = [f"^{push.remote}"] if has_remote else ["--not", f"--remotes={remote}"]
    data = git("log", "-z", "-c", "--no-renames", "--name-only", f"--since={since}",
               "--format=%x01%ct%x00", push.local, *without, "--", cwd=place)
    result: dict[str, int] = {}
    position = 0
    for field in data.split(b"\0"):
        text = field.strip(b"\n")
        if text.startswith(b"\x01"):
            position = int(text[1:])
        elif text:
            name = os.fsdecode(text)
            result[name] = max(result.get(name, 0), position)
    return result


def before(place: Path, commit: str, at_s: int) -> str | None:
    """The last commit up to this one from before an instant (Unix seconds); None if none is."""
    text = maybe("rev-list", "-1", f"--before=@{at_s - 1}", commit, "--", cwd=place)
    return (text or "").strip() or None


def unfinished(place: Path, commit: str, paths: Sequence[str]) -> set[str]:
    """Those of these files that differ between the commit and the working tree at `place`, which
    may be another one than the hook's own."""
    return _names(git("diff", "--name-only", "-z", "--no-renames", commit, "--",
                      *(f":(top,literal){path}" for path in paths), cwd=place,
                      env=clean_environment()))


def _names(raw: bytes) -> set[str]:
    return {os.fsdecode(name) for name in raw.split(b"\0") if name}


def listed(paths: Iterable[str], size: int) -> list[list[str]]:
    """The paths in portions of at most `size`."""
    every = list(paths)
    return [every[position : position + size] for position in range(0, len(every), size)]
