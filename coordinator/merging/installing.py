"""git's settings that make it merge by region: install and remove them without a trace.

Owns `merge.coord.*` in git's configuration and a few marked lines in the attributes of this clone
(`info/attributes`, shared by its worktrees) or of this user, never the project's own
`.gitattributes`. All other lines of those files are left byte by byte.

The command that git runs falls back to `git merge-file`, even if coord or its Python is gone.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from coordinator.files.content import write_atomic
from coordinator.files.git import TIMEOUT_S
from coordinator.merging.driver import CLEAN, CONFLICT
from coordinator.regions.languages import languages
from coordinator.words.refusals import Code, Refusal
from coordinator.words.wrong_values import in_words

NAME = "coord: git's own merge first, then by the regions of the file"
_KEYS = ("name", "driver", "recursive")
_SAYS = ": merge by region; `coord merge-driver remove` takes these lines out\n"
#: The second form follows a last line that had no end. Removing it removes the line end again.
_BEGIN, _BEGIN_JOINED, _END = "# >>> coord" + _SAYS, "\n# +>> coord" + _SAYS, "# <<< coord\n"


@dataclass(frozen=True, slots=True)
class Place:
    """The target of the settings: one repository, or git's settings of the user."""

    directory: Path
    for_user: bool

    @property
    def scope(self) -> str:
        """Return `git config`'s option for it."""
        return "--global" if self.for_user else "--local"

    def attributes(self) -> Path:
        """Return the file of attributes.

        Raises:
            Refusal: INVALID: no repository here.
        """
        if not self.for_user:
            text = self.git("rev-parse", "--git-path", "info/attributes")
            if not text:
                raise Refusal(
                    Code.INVALID, f"{self.directory} is not in a git repository. Nothing was "
                    "changed.", next="Go to one, or use `--global` for all of yours.")
            return self.directory / text
        text = self.git("config", "--global", "--type=path", "core.attributesFile")
        if text:
            return Path(text)
        home = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
        return Path(home) / "git" / "attributes"

    def git(self, *words: str) -> str:
        """Return git's output, without the last line's end; empty if git fails."""
        try:
            done = subprocess.run(["git", *words], cwd=self.directory, capture_output=True,
                                  check=False, stdin=subprocess.DEVNULL, timeout=TIMEOUT_S)
        except (OSError, subprocess.TimeoutExpired) as bad:
            raise Refusal(Code.STORAGE, f"git could not be asked: {bad}.",
                          next="Look whether git works here.") from None
        return os.fsdecode(done.stdout).removesuffix("\n") if done.returncode == 0 else ""

    def must(self, *words: str) -> None:
        """Run a git command that has to succeed.

        Raises:
            Refusal: STORAGE, with git's message.
        """
        done = subprocess.run(["git", *words], cwd=self.directory, capture_output=True, check=False,
                              stdin=subprocess.DEVNULL, timeout=TIMEOUT_S)
        if done.returncode:
            lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise Refusal(
                Code.STORAGE, f"git {words[0]} failed: {lines[-1] if lines else done.returncode}.",
                next="Look at what git said, then repeat.")


def command(python: str = sys.executable) -> str:
    """Return the command that git runs. git quotes the values of `%P` and what follows it."""
    run = shlex.quote(python).replace("%", "%%")
    return (
        f"{run} -P -m coordinator.merging.driver %O %A %B %L %P %S %X %Y; case $? in "
        f"{CLEAN}) exit 0;; {CONFLICT}) exit 1;; esac; "
        "git merge-file -q --marker-size=%L -L ours -L base -L theirs %A %O %B; s=$?; "
        # A file that is no text stays ours and in conflict, as in git itself.
        "if [ $s -gt 127 ]; then exit 1; fi; exit $s"
    )


def install(place: Path, *, for_user: bool) -> list[str]:
    """Install the settings, and return a sentence for each change. Empty if all were there.

    Raises:
        Refusal: INVALID, STORAGE.
    """
    where = Place(place, for_user)
    file = where.attributes()
    result = []
    for key, value in zip(_KEYS, (NAME, command(), "text"), strict=True):
        if where.git("config", where.scope, f"merge.coord.{key}") != value:
            where.must("config", where.scope, "--replace-all", f"merge.coord.{key}", value)
            result.append(f"git config {where.scope} merge.coord.{key}: set")
    patterns = [pattern for row in languages().values() for pattern in row.files]
    lines = "".join(f"{pattern} merge=coord\n" for pattern in dict.fromkeys(patterns))
    if _change(file, lines):
        result.append(f"{file}: {len(dict.fromkeys(patterns))} kinds of files are merged by coord")
    return result


def remove(place: Path, *, for_user: bool) -> list[str]:
    """Remove the settings, and return a sentence for each change. Empty if there were none.

    Raises:
        Refusal: INVALID, STORAGE.
    """
    where = Place(place, for_user)
    file = where.attributes()
    result = []
    if _change(file, ""):
        result.append(f"{file}: coord's lines are out of it")
    names = where.git("config", where.scope, "--name-only", "--get-regexp", r"^merge\.coord\.")
    if names:
        if set(names.split("\n")) <= {f"merge.coord.{key}" for key in _KEYS}:
            where.must("config", where.scope, "--remove-section", "merge.coord")
        else:  # a person has added to it
            for key in _KEYS:
                where.git("config", where.scope, "--unset-all", f"merge.coord.{key}")
        result.append(f"git config {where.scope}: merge.coord is out of it")
        if for_user:
            _without_empty(Path(os.environ.get("GIT_CONFIG_GLOBAL") or Path.home() / ".gitconfig"))
    return result


def _without_empty(file: Path) -> None:
    """Delete an empty configuration. To git it is the same as none."""
    if file.is_file() and not file.is_symlink() and not file.stat().st_size:
        file.unlink()


def _change(path: Path, lines: str) -> bool:
    """Put these lines between the marks, or remove the marks. Return whether anything changed.

    Raises:
        Refusal: STORAGE.
    """
    try:
        before = path.read_bytes().decode("utf-8", "surrogateescape") if path.exists() else ""
        begin = next((text for text in (_BEGIN, _BEGIN_JOINED) if text in before), "")
        head, tail = before, ""
        if begin and _END in before.partition(begin)[2]:
            head, _, rest = before.partition(begin)
            tail = rest.partition(_END)[2]
        else:
            begin = _BEGIN if not head or head.endswith("\n") else _BEGIN_JOINED
        after = head + (begin + lines + _END if lines else "") + tail
        if after == before:
            return False
        if not after:  # to git an empty file is the same as none, and there was none
            path.unlink()
            return True
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = path.stat().st_mode & 0o777 if path.exists() else None
        write_atomic(path.resolve(), after.encode("utf-8", "surrogateescape"), mode)
    except (OSError, UnicodeError) as bad:
        raise Refusal(Code.STORAGE, f"{path} cannot be changed: {in_words(bad)}. It is as it was.",
                      next=f"Give write access to {path.parent}, then repeat.") from None
    return True
