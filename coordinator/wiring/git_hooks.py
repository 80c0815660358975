"""The guard's lines in git's hooks: adding them to a hook, recognising them, and removing them.

A hook that is a shell script keeps its file and gets the lines at its beginning, because some hooks
read `$0`. Any other hook is moved to `coord-kept/` beside it and called from a hook of coord's.
Removing the lines restores the former bytes.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import re
import shlex
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from coordinator.files.content import write_atomic
from coordinator.files.roots import checkout
from coordinator.files.state import StateDir
from coordinator.wiring import git_repository
from coordinator.wiring.git_repository import WorkTree
from coordinator.words.refusals import Code, Refusal

HOOKS = ("pre-commit", "pre-push")
#: Asks whether a commit concerns nobody else, before the whole check is started.
_QUICK = Path(__file__).resolve().parent.parent / "_pre_commit.sh"
#: The guard's program. It may be gone while its Python is there.
_PROGRAM = _QUICK.parent / "git_guard/__main__.py"
#: The folder, beside the hooks, that keeps hooks which are no shell scripts.
KEPT = "coord-kept"
#: Begins the record of a hook that a person has put the guard into.
_BY_HAND = "by hand: "
State = Literal["guarded", "missing", "old", "not executable"]

_BEGIN, _END = b"# >>> coord guard", b"# <<< coord guard\n"
#: The line before coord's lines in a file that is wholly coord's.
_FIRST = b"#!/bin/sh\n"
_WHOLE = b" (the whole file is its)"
_SHELLS = re.compile(
    rb"#! *(?:/usr/bin/env +(?:-S +)?|(?:/[\w.-]+)*/)(?:ba|da|k|a)?sh(?: [^\n]*)?\n"
)


class Hook(msgspec.Struct, frozen=True):
    """One hook file, there or not."""

    path: Path

    @property
    def name(self) -> str:
        """`pre-commit` or `pre-push`."""
        return self.path.name

    @property
    def kept(self) -> Path:
        """The place of the earlier hook, if ours calls it."""
        return self.path.parent / KEPT / self.name

    def state(self) -> State:
        """Whether it guards."""
        now = _bytes(self.path)
        if now is None or _BEGIN not in now:
            return "missing"
        if not os.access(self.path, os.X_OK):
            return "not executable"
        return "guarded" if self._lines(_WHOLE in now) in now else "old"

    def shown(self, *, remove: bool = False) -> str:
        """The changes that `install` (or `remove`) would make, as a unified diff; empty if none."""
        now = _bytes(self.path)
        after = self._removed(now) if remove else self._installed(now)
        old, new = ([] if data is None
                    else data.decode("utf-8", "replace").splitlines(keepends=True)
                    for data in (now, after))
        name = str(self.path)
        lines = difflib.unified_diff(old, new, name if now is not None else "/dev/null",
                                     name if after is not None else "/dev/null")
        return "".join(line if line.endswith("\n") else line + "\n" for line in lines)

    def _removed(self, now: bytes | None) -> bytes | None:
        """The hook without our lines."""
        if now is None or _BEGIN not in now or _END not in now:
            return now
        return _without(now) if _is_more(now) else _bytes(self.kept)

    def _installed(self, now: bytes | None) -> bytes | None:
        """The hook with our lines."""
        if self.state() == "guarded":
            return now
        if now is not None and _BEGIN in now and _END in now:
            begin, end = now.index(_BEGIN), now.index(_END) + len(_END)
            return now[:begin] + self._lines(_WHOLE in now) + now[end:]
        if now is not None and self._is_script(now):
            return self._inserted(now)
        return _FIRST + self._lines(True)

    def install(self) -> bool:
        """Put the lines in; whether anything had to be changed.

        Raises:
            Refusal: STORAGE.
        """
        if self.state() == "guarded":
            return False
        with _writing(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if _BEGIN in (_bytes(self.path) or b""):
                self.remove()
            before = _bytes(self.path)
            if before is not None and self._is_script(before):
                mode = stat.S_IMODE(self.path.stat().st_mode)
                write_atomic(self.path, self._inserted(before), mode)
                return True
            if os.path.lexists(self.path):
                _move(self.path, self.kept)
            write_atomic(self.path, _FIRST + self._lines(True), 0o755)
            return True

    def remove(self) -> bool:
        """Take the lines out; whether there were any.

        Raises:
            Refusal: STORAGE; INVALID where only half of them is there.
        """
        now = _bytes(self.path)
        if now is None or _BEGIN not in now:
            return False
        if now.find(_END, now.index(_BEGIN)) < 0:
            raise Refusal(
                Code.INVALID, f"{self.path} has the beginning of the guard's lines, but not their "
                "end. It was left as it is.", next=f"Take them out by hand: {self.path}.",
            )
        if _WHOLE in now and _is_more(now) and os.path.lexists(self.kept):
            raise Refusal(
                Code.INVALID, f"{self.path} is the guard's, with somebody else's lines in it, and "
                f"the hook that was there before is {self.kept}. Both were left as they are.",
                next=f"Put them together by hand in {self.path}, without the guard's lines.",
            )
        with _writing(self.path):
            if _is_more(now):
                write_atomic(self.path, _without(now), stat.S_IMODE(self.path.stat().st_mode))
            elif os.path.lexists(self.kept):
                _move(self.kept, self.path)
                with contextlib.suppress(OSError):
                    self.kept.parent.rmdir()
            else:
                self.path.unlink()
        return True

    def _is_script(self, before: bytes) -> bool:
        """A shell script that git runs, and whose file is here and not elsewhere."""
        shell = _SHELLS.match(before) is not None or (
            not before.startswith(b"#!") and b"\0" not in before
        )
        return shell and os.access(self.path, os.X_OK) and not self.path.is_symlink()

    def _inserted(self, before: bytes) -> bytes:
        first = _SHELLS.match(before)
        position = first.end() if first is not None else 0
        return before[:position] + self._lines(False) + before[position:]

    def _lines(self, whole: bool) -> bytes:
        python = shlex.quote(sys.executable)
        run = f"{python} -P -m coordinator.git_guard {self.name} \"$@\""
        if self.name == "pre-commit":
            run = f"sh {shlex.quote(str(_QUICK))} {python} \"$0\" 2>/dev/null || {run}"
        lines = [
            _BEGIN.decode() + (_WHOLE.decode() if whole else "")
            + ": refuses what other agents hold; `coord guard remove` takes these lines out",
        ]
        if self.name == "pre-push":  # what git says is wanted twice
            lines.append("coord_told=$(cat; echo .)")
            run = f"printf %s \"${{coord_told%.}}\" | {run}"
        lines += [
            f"if [ -x {python} ] && [ -f {shlex.quote(str(_PROGRAM))} ]; then",
            f"  {run} || exit 1",
            'elif [ "${COORD_GUARD:-}" != off ]; then',
            f"  echo \"coord: the guard's program is gone: \"{python} >&2",
            "  echo \"  next: take coord's lines out of $0, or install coord and type "
            'coord guard install" >&2',
            '  echo "  A person may go on all the same: COORD_GUARD=off git ..." >&2',
            "  exit 1",
            "fi",
        ]
        if self.name == "pre-push":
            lines += [
                'if [ "$coord_told" = . ]; then exec </dev/null; else exec <<COORD_TOLD',
                "${coord_told%??}", "COORD_TOLD", "fi",
            ]
        if whole:
            lines += [
                f"coord_kept=$(dirname -- \"$0\")/{KEPT}/{self.name}",
                'if [ -x "$coord_kept" ]; then exec "$coord_kept" "$@"; fi',
            ]
        return "\n".join(lines).encode() + b"\n" + _END


def puts_aside(folder: Path) -> bool:
    """Whether git's commit hook in this folder may put uncommitted work aside for a while, judged
    by its words: a hook manager, or a script that stashes. The words are in the script that is
    asked first."""
    match = re.search(rb"^aside='(.*)'$", _QUICK.read_bytes(), re.MULTILINE)
    assert match is not None, "it has them"
    words = re.compile(match[1])
    for path in (folder / "pre-commit", folder / KEPT / "pre-commit",
                 folder.parent / "pre-commit"):  # husky's scripts lie above its hooks
        text = _bytes(path)
        if text is not None and words.search(_without(text) if _BEGIN in text else text):
            return True
    return False


def is_of_the_repository(path: Path) -> bool:
    """Whether a hook runs anything but coord's own lines."""
    now = _bytes(path) if os.access(path, os.X_OK) else None
    return now is not None and (
        _WHOLE not in now or (path.parent / KEPT / path.name).exists())


def find_hooks(place: Path, here: WorkTree | None = None) -> list[Hook]:
    """The hooks of the repository at `place`, in git's own folder for them. With a relative
    `core.hooksPath`, each worktree that has the folder counts.

    Args:
        here: the working tree around `place`, where it is known.

    Raises:
        Refusal: INVALID: no git repository, or hooks are switched off.
    """
    here = here or WorkTree.of(place)
    if here is not None and here.own == here.common and not _holds(here.common / "worktrees"):
        return _in([here.hooks])  # it is the only one: git need not be asked for more
    try:
        git_repository.git("rev-parse", "--git-dir", cwd=place)
    except Refusal as refusal:
        if checkout(str(place)) is not None:  # git does not answer there
            raise
        raise Refusal(
            Code.INVALID, f"{place} is not in a git repository, so there are no commits to guard.",
            next="`git init`, or go to the repository.",
        ) from refusal
    folders: list[Path] = []
    top = git_repository.top(place) or place
    for tree in dict.fromkeys([top, *_worktrees(place)]):
        text = git_repository.maybe("rev-parse", "--git-path", "hooks", cwd=tree)
        folder = Path(os.path.realpath(tree / text)) if text else None
        if folder is not None and (tree == top or folder.is_dir()):
            folders.append(folder)
    return _in(folders)


def _in(folders: Iterable[Path]) -> list[Hook]:
    """
    Raises:
        Refusal: INVALID: one is no folder.
    """
    once = dict.fromkeys(folders)
    for folder in once:
        if folder.exists() and not folder.is_dir():
            raise Refusal(
                Code.INVALID, f"git's hooks are switched off: core.hooksPath is {folder}.",
                next="`git config --show-origin core.hooksPath` shows where that is set.",
            )
    return [Hook(folder / name) for folder in once for name in HOOKS]


def _holds(folder: Path) -> bool:
    """Whether anything is in it."""
    try:
        return any(folder.iterdir())
    except OSError:
        return False


def read_recorded(root: Path) -> list[str]:
    """The hooks that `coord init` has put the guard into, absolute or relative to the root."""
    return [text for text in _recorded(root) if not text.startswith(_BY_HAND)]


def record(root: Path, hooks: Sequence[str]) -> None:
    """Record the hooks that init has put the guard into; none: a person wants no guard here."""
    if StateDir(root).path.is_dir():
        write_atomic(StateDir(root).guarded, msgspec.json.encode(list(hooks)), 0o600)


def record_by_hand(root: Path, hooks: Iterable[Hook]) -> None:
    """Record the hooks that a person has put the guard into: their loss is reported, and init does
    not remove them."""
    names = (f"{_BY_HAND}{hook.name}" for hook in hooks)
    record(root, list(dict.fromkeys([*_recorded(root), *names])))


def _recorded(root: Path) -> list[str]:
    try:
        return msgspec.json.decode(StateDir(root).guarded.read_bytes(), type=list[str])
    except (OSError, msgspec.DecodeError):
        return []


def list_watched(root: Path, home: Path) -> list[Path]:
    """The files that decide whether git runs the guard here: its settings and its hooks."""
    tree = WorkTree.of(root)
    if tree is None:
        return [StateDir(root).guarded]
    settings = [tree.common / "config", tree.own / "config.worktree", home / ".gitconfig",
                home / ".config/git/config"]
    return [StateDir(root).guarded, *settings, *(tree.hooks / name for name in HOOKS)]


def find_loss(root: Path) -> str:
    """Why a hook that the guard was put into does not guard any more; empty if all do."""
    names = {Path(text.removeprefix(_BY_HAND)).name for text in _recorded(root)}
    if not names:
        return ""
    try:
        hooks = {hook.name: hook for hook in find_hooks(root)[: len(HOOKS)]}  # of this tree
        states = {name: hook.state() for name, hook in hooks.items()}
    except Refusal as refusal:
        return refusal.message.rstrip(".")
    lost = sorted(name for name in names if states.get(name) not in ("guarded", "old"))
    if not lost:
        return ""
    if states.get(lost[0]) == "not executable":
        return f"{hooks[lost[0]].path} cannot be executed"
    folder = next(iter(hooks.values())).path.parent
    asks = "does not ask" if len(lost) == 1 else "do not ask"
    return f"git runs the hooks of {folder}, where {' and '.join(lost)} {asks} coord"


def describe_loss(why: str) -> str:
    """A loss of the guard in a sentence, with the command that mends it."""
    return (f"git: {why}: commits and pushes of what others hold are unguarded. "
            "`coord guard install` puts it right.")


def shared(place: Path, hooks: list[Hook]) -> str:
    """Why these hooks are not this clone's alone; empty if they are."""
    text = git_repository.maybe("config", "--show-scope", "--get", "core.hooksPath", cwd=place)
    if (text.split()[0] if text else "") in ("global", "system"):
        return "core.hooksPath is set for all repositories"
    for folder in dict.fromkeys(hook.path.parent for hook in hooks):
        if git_repository.maybe("ls-files", "--", str(folder), cwd=place):
            return f"git tracks what is in {folder}"
    return ""


def remarks(place: Path, hooks: list[Hook]) -> list[str]:
    """What a person should know about the place of the hooks."""
    result = []
    text = git_repository.maybe("config", "--show-scope", "--get", "core.hooksPath", cwd=place)
    scope = text.split()[0] if text else ""
    if scope in ("global", "system"):
        result.append("core.hooksPath is set for all repositories: the guard is in all of them, "
                      "and "
                      "does nothing where coord is not used.")
    for folder in dict.fromkeys(hook.path.parent for hook in hooks):
        if folder.name == "_" and folder.parent.name == ".husky":
            result.append(f"husky writes {folder} anew at `npm install`: `coord guard install` "
                          "again "
                          "then; `coord guard check` tells.")
        elif git_repository.maybe("ls-files", "--", *(
            str(hook.path) for hook in hooks if hook.path.parent == folder
        ), cwd=place):
            result.append(f"{folder} is tracked by git: what was put in there is of this machine; "
                          "do "
                          "not commit it.")
    return result


def _worktrees(place: Path) -> list[Path]:
    text = git_repository.maybe("worktree", "list", "--porcelain", cwd=place) or ""
    trees = [Path(line.removeprefix("worktree ")) for line in text.splitlines()
             if line.startswith("worktree ")]
    return [tree for tree in trees if tree.is_dir()]


def _is_more(now: bytes) -> bool:
    """Whether there is anything in a guarded hook but what coord has made."""
    return _WHOLE not in now or _without(now) != _FIRST


def _without(now: bytes) -> bytes:
    """The file without the guard's lines."""
    begin = now.index(_BEGIN)
    return now[:begin] + now[now.index(_END, begin) + len(_END) :]


def _move(source: Path, target: Path) -> None:
    """A relative symlink leads to the same place afterwards."""
    target.parent.mkdir(exist_ok=True)
    if source.is_symlink() and not os.readlink(source).startswith("/"):  # noqa: PTH115
        text = os.readlink(source)  # noqa: PTH115
        deeper = target.parent.name == KEPT
        target.unlink(missing_ok=True)
        target.symlink_to(f"../{text}" if deeper else text.removeprefix("../"))
        source.unlink()
    else:
        source.rename(target)


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as bad:
        raise Refusal(Code.STORAGE, f"{path} cannot be read: {bad.strerror}.",
                      next=f"Give read access to {path}.") from None


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as bad:
        raise Refusal(
            Code.STORAGE, f"{path} cannot be written: {bad.strerror}. Hooks before it are done.",
            next=f"Give write access to {path.parent}, then repeat.",
        ) from None
