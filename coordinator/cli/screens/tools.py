"""A person's own programs for one file of a review: the editor, and git's difftool and mergetool.

The module chooses the program and its input. The program runs in the foreground, in the terminal
that the screen has left for that time. coord reads only its exit code.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from coordinator.words.refusals import Code, Refusal

#: Editors that take the first line as `+N`.
TAKES_A_LINE = frozenset({"vi", "vim", "nvim", "nano", "emacs", "emacsclient", "ne", "joe", "micro",
                          "kak", "mg", "jed"})

#: Git's own shell library for such programs; some versions want the tool made ready apart.
MERGE = """. "$(git --exec-path)/git-mergetool--lib" || exit 127
if type initialize_merge_tool >/dev/null 2>&1; then initialize_merge_tool "$1" || exit 1; fi
run_merge_tool "$1" true"""


def edit(place: Path, line: int | None, where: Path | None = None) -> int:
    """Open a file in `$GIT_EDITOR`, git's `core.editor`, `$VISUAL` or `$EDITOR`; its exit code.

    Args:
        where: the directory that it is opened in, whose repository says which editor (default: the
            file's own).

    Raises:
        Refusal: INVALID: none can be started.
    """
    where = where or place.parent
    if not sys.stdin.isatty() and not _chosen(where):
        raise Refusal(Code.INVALID, "There is no terminal, and no editor of yours is set that does "
                      "without one. Nothing was changed.",
                      next="Set EDITOR to a program that changes the file it is given.")
    command = _ask_version("git", "var", "GIT_EDITOR", at=where) or (
        os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
    try:
        words = shlex.split(command)
    except ValueError as bad:
        raise Refusal(Code.INVALID, f"The editor {command!r} cannot be read as a command: {bad}. "
                      "Nothing was changed.", next="`GIT_EDITOR=nano coord …`") from None
    line_option = [f"+{line}"] if line and words and Path(words[0]).name in TAKES_A_LINE else []
    return _run(["sh", "-c", f'{command} "$@"', command, *line_option, str(place)], where)


def _chosen(where: Path) -> bool:
    """Whether an editor is configured: git's own default would be `vi`."""
    return any(os.environ.get(name) for name in ("GIT_EDITOR", "VISUAL", "EDITOR")) or (
        _ask_version("git", "config", "core.editor", at=where) is not None)


def difftool(place: Path, before: bytes | None, after: bytes | None) -> int:
    """Show both sides in the tool that `git difftool` takes (`diff.tool`, else `merge.tool`)."""
    with _files(place.name, before=before, after=after) as sides:
        code = _run(["git", "difftool", "--no-prompt", "--no-index", "--",
                     str(sides["before"]), str(sides["after"])], _tree(place))
    return 0 if code == 1 else code  # git's word for: they differ


def mergetool(place: Path, before: bytes | None, after: bytes | None) -> int:
    """Take the work out by hand, in the tool of `merge.tool`. The tool gets the present file, the
    work as the common ancestor, and the earlier content. It saves into the file itself."""
    tool = _ask_version("git", "config", "merge.tool", at=place.parent)
    if tool is None:
        raise Refusal(Code.INVALID, "git has no merge tool here. Nothing was changed.",
                      next="`git config --global merge.tool vimdiff` (or another).")
    now = place.read_bytes() if place.is_file() else b""
    with _files(place.name, now=now, work=after, before=before) as sides:
        env = {**os.environ, "TOOL_MODE": "merge", "MERGED": str(place), "LOCAL": str(sides["now"]),
               "BASE": str(sides["work"]), "REMOTE": str(sides["before"]),
               "BACKUP": str(sides["now"].parent / "backup")}
        return _run(["sh", "-c", MERGE, "sh", tool], _tree(place), env)


def _run(words: list[str], where: Path, env: dict[str, str] | None = None) -> int:
    # Ctrl-C is for the program. Ignoring it here would make the program ignore it, too.
    before = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        return subprocess.run(words, cwd=where, env=env, check=False).returncode
    except OSError as bad:
        raise Refusal(Code.INVALID, f"{words[0]} cannot be started: {bad.strerror}. Nothing was "
                      "changed.", next="Set $VISUAL, or install git.") from None
    finally:
        signal.signal(signal.SIGINT, before)


def _ask_version(*words: str, at: Path) -> str | None:
    try:
        done = subprocess.run(words, capture_output=True, text=True, cwd=_tree(at / "x"),
                              check=False)
    except OSError:
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None


def _tree(place: Path) -> Path:
    """Return the nearest existing directory above."""
    return next((path for path in place.parents if path.is_dir()), Path("/"))


@contextmanager
def _files(name: str, **contents: bytes | None) -> Iterator[dict[str, Path]]:
    """Write each side to a file with the original's name, and yield the files."""
    with tempfile.TemporaryDirectory(prefix="coord-review-") as folder:
        result = {}
        for side, data in contents.items():
            result[side] = Path(folder) / side / name
            result[side].parent.mkdir()
            result[side].write_bytes(data or b"")
        yield result
