"""The folder in which each git command of a shell command runs, where the words make it certain.
Pure.

A repository below the root is another repository, so it matters where a `git stash` runs. An
uncertain folder is left out. The command then counts as one in the folder in which the whole
command begins, which refuses more. Folders are only names here; the disk is not looked at.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from typing import NamedTuple

from coordinator.rules import git_commands
from coordinator.rules.shell_words import (
    KEYWORDS,
    lines_of,
    program_words,
    separates,
    tokens_of,
)

#: Characters of words that only the shell can expand.
_UNKNOWN = frozenset("$`*?{~[")
#: Words that begin what may run never, later, or several times.
_STRUCTURES = frozenset({"for", "case", "select", "function", "fi", "done", "esac"}) | KEYWORDS
_ENTERS = frozenset({"cd", "pushd", "popd"})
#: Commands that may enter any folder in the shell itself.
_MAY_ENTER = frozenset({"eval", "source", "."})
#: Programs that may start another one in another folder.
_START_ELSEWHERE = frozenset({"env", "sudo", "doas", "chroot"})
#: With this in a command, git may work on another repository than its folder's.
_REDIRECTS_GIT = "GIT_"
#: Options of `git clone` and `git init` that take the next word.
_VALUED = frozenset({"-b", "--branch", "-o", "--origin", "-u", "--upload-pack", "--depth", "-c",
                     "--config", "--reference", "--template", "-j", "--jobs", "--filter",
                     "--initial-branch", "--object-format", "--ref-format", "--server-option"})


class Folder(NamedTuple):
    """The folder of a git command, seen from the beginning of the whole command.

    Attributes:
        path: the folder; empty: where the whole begins.
        made: the folder at or above it that the command has made a repository by then, if it has;
            else empty.
    """

    path: str
    made: str = ""


def folders(command: str) -> dict[tuple[str, ...], list[Folder]]:
    """The words of each git command -> the folders that it certainly runs in, in order."""
    if _REDIRECTS_GIT in command:
        return {}
    reader = _Reader()
    for line in lines_of(command):
        reader.read(line)
    return reader.found


class _Reader:
    """Follows a command from its beginning. `_below` is the folder; None: only the shell knows."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, ...], list[Folder]] = {}
        self._below: str | None = ""
        self._made: list[str] = []
        #: An earlier `cd` or `git init` holds only in an unbroken chain of `&&`.
        self._in_doubt = False
        self._structured = False

    def read(self, line: str) -> None:
        words: list[str] = []
        before = ";"
        for token in [*tokens_of(line), None]:
            if token is not None and not separates(token):
                words.append(token)
                continue
            after = ";" if token is None else str(token)
            self._step(before, words, after)
            self._separate(after)
            words, before = [], after

    def _step(self, before: str, words: list[str], after: str) -> None:
        if words and words[0] in _STRUCTURES:
            self._structured = True
        if any("`" in word or "$(" in word for word in words):
            self._structured = True  # tokens of an inner command are among what follows
        called = program_words(words)
        name = called[0] if called else ""
        if name in _MAY_ENTER or (self._structured and _ENTERS.intersection(words)):
            self._below = None
        elif name in _ENTERS:
            self._enter(before, called, after)
        elif name == "git" and not _START_ELSEWHERE.intersection(words):
            self._note(called, after)

    def _enter(self, before: str, called: Sequence[str], after: str) -> None:
        plain = len(called) == 2 and called[0] != "popd" and called[1][:1] not in ("-", "+")
        if (self._below is None or not plain or self._structured or _UNKNOWN & set(called[1])
                or after not in ("&&", ";") or before not in ("&&", ";", "(")):
            self._below = None
            return
        self._below = posixpath.join(self._below, called[1])
        self._in_doubt = self._in_doubt or before == "&&" or bool(self._around(self._below))

    def _note(self, called: Sequence[str], after: str) -> None:
        begins = git_commands.folder(called)
        if self._below is None or begins is None or _UNKNOWN & set(begins) or "\0" in begins:
            return
        where = posixpath.join(self._below, begins)
        self.found.setdefault(tuple(called), []).append(
            Folder(where, self._around(where)))
        made = _repository_made(called, where)
        if made and after == "&&" and not self._structured:
            self._made.append(posixpath.normpath(made))

    def _separate(self, sign: str) -> None:
        if sign == "&&":
            return
        if sign == ";":
            if self._in_doubt:
                self._below = None
            return
        if sign != "(" and self._below != "":
            # A folder entered in parentheses, or before `&`, was entered there alone.
            self._below = self._below if sign in ("|", "||") else None
        if sign != "|":
            self._made.clear()

    def _around(self, where: str) -> str:
        path = posixpath.normpath(where)
        return next((made for made in self._made if f"{path}/".startswith(f"{made}/")), "")


def _repository_made(called: Sequence[str], where: str) -> str:
    """The folder that `git clone` or `git init` makes a repository; empty: it is neither."""
    name, *args = [*git_commands.git_command(called), ""]
    if name not in ("clone", "init") or any(arg.startswith("--separate-git-dir") for arg in args):
        return ""
    plain: list[str] = []
    words = iter(args[:-1])
    for word in words:
        if word in _VALUED:
            next(words, None)
        elif word[:1] != "-":
            plain.append(word)
    if name == "init":
        folder = plain[0] if plain else "."
    elif len(plain) > 1:
        folder = plain[1]
    else:
        folder = posixpath.basename("".join(plain[:1]).rstrip("/")).removesuffix(".git")
    return posixpath.join(where, folder) if folder and not _UNKNOWN & set(folder) else ""
