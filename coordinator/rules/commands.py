"""What a shell command obviously does, told from its words. Pure; a guess, never a proof.

No reading of a command tells all that it writes (`python -c …`, scripts): the session that it runs
in and the comparison after it do. This tells two things that are better said before it runs: that
it touches the whole work tree (`git stash`), and which files it plainly names as its targets
(`sed -i f`). Where git asks by itself, the first is left to that.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from coordinator.rules import git_commands
from coordinator.rules.shell_words import redirects, simple_commands

_UNKNOWN = frozenset("$`*?[{~")
#: Redirections that write.
_TO_FILE = frozenset({">", ">>", ">|", "&>", "&>>", ">&"})
#: A size, as `truncate -s` takes it.
_SIZE = re.compile(r"[+\-<>/%]?[0-9]+(?:[KMGTPEZYRQ](?:i?B)?)?")


class Either(NamedTuple):
    """A word of `git checkout` that is a commit or a file, and where it is said: seen from where
    the whole command begins; with a slash at its end, or empty."""

    folder: str
    word: str

    @property
    def path(self) -> str:
        """The file, if it is one."""
        return posixpath.join(self.folder, self.word)


def git_wide(command: str, files: Collection[Either] = ()) -> str | None:
    """The first git command in it that changes the whole work tree or index, as it is written but
    for where its output goes; None if there is none.

    Args:
        files: of what `either` gives, what is known to be a file. Of all others nobody knows.
    """
    for below, words in _placed(command):
        if words[:1] != ["git"]:
            continue
        bare = _bare(words)
        known = _either(below, bare) in files
        if git_commands.wide(git_commands.git_command(bare),
                             (lambda word: False) if known else None):
            return " ".join(words if "<" in words else bare)
    return None


def either(command: str) -> list[Either]:
    """What its `git checkout`s name that may be a commit or a file, each once; but for what only
    the shell knows, or git's patterns."""
    if "checkout" not in command:  # most are not read a second time for it
        return []
    found = (_either(below, _bare(words)) for below, words in _placed(command)
             if words[:1] == ["git"])
    return list(dict.fromkeys(one for one in found if one is not None))


def _either(below: str | None, words: Sequence[str]) -> Either | None:
    word = git_commands.either(git_commands.git_command(words))
    begins = git_commands.folder(words)
    if word is None or word[:1] == ":" or below is None or begins is None:
        return None
    found = Either(posixpath.join(below, begins, ""), word)
    return None if _UNKNOWN & set(found.path) or "\0" in found.path else found


def _placed(command: str) -> Iterator[tuple[str | None, list[str]]]:
    """Its simple commands, each with the folder that it runs in, seen from where the whole begins
    (with a slash at its end, or empty); None: only the shell knows."""
    below: str | None = ""
    for words in simple_commands(command):
        if words[:1] and words[0] in ("cd", "pushd", "popd") and below is not None:
            # (`popd` and `cd -` lead back to where only the shell knows; so does `pushd +1`.)
            if (len(words) != 2 or words[0] == "popd" or _UNKNOWN & set(words[1])
                    or words[1][:1] in ("-", "+")):
                below = None  # from here on, relative names mean nothing to us
            else:
                below = posixpath.join(below, words[1], "")
        yield below, words


def commits(command: str) -> bool:
    """Whether a git command in it may run git's own commit and push hooks."""
    gits = [git_commands.git_command(words) for words in simple_commands(command)
            if words[:1] == ["git"]]
    return any(rest and rest[0] in git_commands.COMMITS for rest in gits)


def targets(command: str) -> tuple[str, ...]:
    """Files that it plainly names to be written, moved or deleted, in order. Names with `$`,
    wildcards or a tilde are left out: only the shell knows them."""
    found: dict[str, None] = {}
    for below, words in _placed(command):
        if below is None:
            break
        begins = git_commands.folder(words) if words[:1] == ["git"] else ""
        written = (posixpath.join(begins or "", path) if path else path
                   for path in _written(_bare(words)))
        for path in (*_redirected(words), *written):
            if path and not _UNKNOWN & set(path) and not path.startswith("-"):
                found.setdefault(posixpath.join(below, path))
    return tuple(found)


def _redirected(words: Sequence[str]) -> Iterator[str]:
    for at, word in enumerate(words[:-1]):
        if redirects(word) and word in _TO_FILE and not words[at + 1].isdigit():
            yield words[at + 1]


def _bare(words: Sequence[str]) -> list[str]:
    """Without redirections."""
    out: list[str] = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif redirects(word):
            skip = True
        else:
            out.append(word)
    return out


def _written(words: Sequence[str]) -> list[str]:
    if not words:
        return []
    name, args = words[0], list(words[1:])
    if "--" in args:
        cut = args.index("--")
        plain, after = [a for a in args[:cut] if not a.startswith("-")], args[cut + 1 :]
    else:
        plain, after = [a for a in args if not a.startswith("-")], []
    if name in ("rm", "mv", "touch", "tee", "unlink", "rmdir", "shred"):
        return plain + after
    if name in ("cp", "ln", "install", "rsync"):
        return (plain + after)[-1:] if len(plain + after) > 1 else []
    if name == "truncate":
        return [a for a in plain if not _SIZE.fullmatch(a)]
    if name in ("sed", "perl", "ruby"):
        inplace = any(a.startswith("--in-place") or (a[:1] == "-" and a[:2] != "--" and "i" in a)
                      for a in args)
        scripted = any(a in ("-e", "-f", "--expression", "--file") or a.startswith("-e")
                       for a in args)
        if not inplace:
            return []
        return [a for a in plain if not a.startswith(("s/", "s|", "s#"))] if scripted else plain[1:]
    if name == "dd":
        return [a[3:] for a in args if a.startswith("of=")]
    if name == "git":
        rest = git_commands.git_command(words)
        return git_commands.written(rest[0], rest[1:]) if rest else []
    return []


#: What a read-only file answers to whoever would write it. (zsh begins such words small.)
_STOPPED = ("read-only file system", "device or resource busy", "erofs", "ebusy")
_WORD = re.compile(r"""[^\s'"`,;:()<>|&\[\]]+""")
_NAMES_A_FILE = re.compile(r"[^/]*/|\w.*\.\w+$")


def not_writable(output: str) -> list[str] | None:
    """The files that a command's output says were not writable, as far as they look like names;
    None: it says nothing of the kind."""
    lines = [line for line in output.splitlines()
             if any(sign in line.lower() for sign in _STOPPED)]
    if not lines:
        return None
    return [word for line in lines for word in _WORD.findall(line)
            if _NAMES_A_FILE.match(word)]


def words(text: str) -> list[str]:
    """What may be names of files in a command."""
    return _WORD.findall(text)


def may_mean(word: str, path: str) -> bool:
    """Whether a word of a command may name this file (relative to the root), from wherever it was
    said: it ends in the same names."""
    said = word.removeprefix("./").rstrip("/")
    return bool(said) and (f"/{path}".endswith(f"/{said}") or f"/{said}".endswith(f"/{path}"))
