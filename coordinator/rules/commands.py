"""What a shell command obviously does, by its words. Pure. A guess, never a proof.

No reading of a command tells everything that it writes (`python -c …`, scripts). The session and
the comparison afterwards find that. This module finds two things that are better said before the
command runs: that it changes the whole working tree (`git stash`), and which files it plainly names
as its targets (`sed -i f`). Where git itself asks, the first is left to git.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from coordinator.rules import git_commands, git_folders, git_objects
from coordinator.rules.git_folders import Folder
from coordinator.rules.shell_words import redirects, simple_commands
from coordinator.words.resource_names import Link

_UNKNOWN = frozenset("$`*?{~")
#: Redirections that write.
_TO_FILE = frozenset({">", ">>", ">|", "&>", "&>>", ">&"})
#: Letters of options that take a value, in what copies files; and words that do, in the next word.
_VALUED = re.compile("[mogS]")
_VALUED_NEXT = {
    "rsync": ("efBMT", frozenset({
        "exclude", "include", "exclude-from", "include-from", "files-from", "filter", "rsh",
        "rsync-path", "temp-dir", "partial-dir", "backup-dir", "compare-dest", "copy-dest",
        "link-dest", "log-file", "chmod", "chown", "suffix", "bwlimit", "timeout", "max-size",
        "min-size", "out-format", "port"})),
    "sed": ("efl", frozenset({"expression", "file", "line-length"})),
    "perl": ("eE", frozenset()), "ruby": ("e", frozenset()),
    "install": ("mogSt", frozenset({"mode", "owner", "group", "suffix", "target-directory"})),
}
#: Programs that write a file in its place with `-i`.
_IN_PLACE = frozenset({"sed", "perl", "ruby"})
_VALUED_ELSE = ("St", frozenset({"suffix", "target-directory"}))
#: A size, as `truncate -s` takes it.
_SIZE = re.compile(r"[+\-<>/%]?[0-9]+(?:[KMGTPEZYRQ](?:i?B)?)?")


class Either(NamedTuple):
    """A word of `git checkout` that is a commit or a file, and the folder that it is seen from:
    relative to the beginning of the whole command; with a slash at its end, or empty."""

    folder: str
    word: str

    @property
    def path(self) -> str:
        """The file, if it is one."""
        return posixpath.join(self.folder, self.word)


class Target(NamedTuple):
    """A file that a command clearly names for writing. `link`: the meaning of a symlink's name:
    some programs write its target, and some the link itself. `inside`: the known writes inside a
    directory; None: any file in it may be written."""

    path: str
    link: Link = "followed"
    inside: tuple[Target, ...] | None = None

    def seen_from(self, folder: str) -> Target:
        """The target as seen from a folder."""
        inside = None if self.inside is None else tuple(
            target.seen_from(folder) for target in self.inside)
        return Target(posixpath.join(folder, self.path), self.link, inside)

    @property
    def is_known(self) -> bool:
        """Whether its name is complete, without parts that only the shell knows."""
        return bool(self.path) and not _UNKNOWN & set(self.path) and not self.path.startswith("-")


class Wide(NamedTuple):
    """A git command that changes the whole work tree or index: as it is written, without its
    redirections; and where git runs, if that is certain (see `git_folders.Folder`)."""

    said: str
    folder: Folder | None


def git_wide(command: str, files: Collection[Either] = ()) -> list[Wide]:
    """The git commands in it that change the whole work tree or index, in order.

    Args:
        files: those of `either` that are known to be files. The others are unknown.
    """
    wide: list[tuple[tuple[str, ...], str]] = []
    ended: list[Wide] = []
    for below, words in _placed(command):
        if words[:1] != ["git"]:
            continue
        bare = _bare(words)
        is_file = _either(below, bare) in files
        tree = _find_ended_tree(below, bare)
        if tree is not None:
            ended.append(Wide(" ".join(bare), Folder(tree)))
        elif git_commands.wide(_of_folder(below, bare), (lambda word: False) if is_file else None):
            wide.append((tuple(words), " ".join(words if "<" in words else bare)))
    if not wide:
        return ended
    certain = git_folders.folders(command)
    wides = ended
    for called, text in dict.fromkeys(wide):
        folders = certain.get(called, [])
        # A command within a command, as `bash -c` has it, is not among them.
        sure = len(folders) >= sum(other == called for other, _ in wide)
        wides += [Wide(text, folder) for folder in (dict.fromkeys(folders) if sure else (None,))]
    return wides


def _find_ended_tree(below: str | None, words: Sequence[str]) -> str | None:
    """The working tree that it ends, seen from where the whole command begins."""
    tree, begins = git_objects.ended_tree(git_commands.git_command(words)), (
        git_commands.folder(words))
    if tree is None or below is None or begins is None or _UNKNOWN & set(tree):
        return None
    return posixpath.join(below, begins, tree)


def _of_folder(below: str | None, words: Sequence[str]) -> list[str]:
    """A git command; if it adds a folder's content, with the folder's name: `cd src && git add .`
    is `git add src`."""
    rest, begins = git_commands.git_command(words), git_commands.folder(words)
    if rest[:1] not in (["add"], ["stage"]) or below is None or begins is None:
        return rest
    folder = posixpath.normpath(posixpath.join(below, begins))
    if folder.startswith((".", "/")) or _UNKNOWN & set(folder):
        return rest
    return [folder if word in (".", "./") else word for word in rest]


def either(command: str) -> list[Either]:
    """The words of its `git checkout`s that may be a commit or a file, each once. Words with shell
    expansions or git patterns are left out."""
    if "checkout" not in command:  # most are not read a second time for it
        return []
    eithers = (_either(below, _bare(words)) for below, words in _placed(command)
               if words[:1] == ["git"])
    return list(dict.fromkeys(other_either for other_either in eithers if other_either is not None))


def _either(below: str | None, words: Sequence[str]) -> Either | None:
    word = git_commands.either(git_commands.git_command(words))
    begins = git_commands.folder(words)
    if word is None or word[:1] == ":" or below is None or begins is None:
        return None
    found_either = Either(posixpath.join(below, begins, ""), word)
    return None if _UNKNOWN & set(found_either.path) or "\0" in found_either.path else found_either


def _placed(command: str) -> Iterator[tuple[str | None, list[str]]]:
    """Its simple commands, each with its folder, relative to the beginning of the whole command
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


def targets(command: str) -> tuple[Target, ...]:
    """Files that it plainly names to be written, moved or deleted, in order. Names with `$`,
    wildcards or a tilde are left out: only the shell knows them."""
    matches: dict[Target, None] = {}
    for below, words in _placed(command):
        if below is None:
            break
        begins = git_commands.folder(words) if words[:1] == ["git"] else ""
        written = (target.seen_from(begins or "") for target in _written(_bare(words))
                   if target.path)
        for target in (*map(Target, _redirected(words)), *written):
            if target.is_known:
                matches.setdefault(target.seen_from(below))
    return tuple(matches)


def _redirected(words: Sequence[str]) -> Iterator[str]:
    for position, word in enumerate(words[:-1]):
        if redirects(word) and word in _TO_FILE and not words[position + 1].isdigit():
            yield words[position + 1]


def _bare(words: Sequence[str]) -> list[str]:
    """Without redirections."""
    result: list[str] = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif redirects(word):
            skip = True
        else:
            result.append(word)
    return result


def _written(words: Sequence[str]) -> list[Target]:
    list_targets = _PROGRAMS.get(words[0]) if words else None
    return list_targets(words[0], list(words[1:])) if list_targets else []


def _name_all(args: Sequence[str]) -> list[str]:
    """The words that are no options; behind `--`, all."""
    before, behind = git_commands.split_end(args)
    return [word for word in before if not word.startswith("-")] + behind


def _find_removed(_: str, args: list[str]) -> list[Target]:
    return [Target(path, "itself") for path in _name_all(args)]


def _find_touched(_: str, args: list[str]) -> list[Target]:
    return list(map(Target, _name_all(args)))


def _find_put(name: str, args: list[str]) -> list[Target]:
    return _put(name, git_commands.split_end(args)[0], _operands(name, args))


def _find_truncated(_: str, args: list[str]) -> list[Target]:
    return [Target(word) for word in git_commands.split_end(args)[0]
            if not word.startswith("-") and not _SIZE.fullmatch(word)]


def _find_edited(name: str, args: list[str]) -> list[Target]:
    if not any(word.startswith("--in-place") or _has_letter(word, "i") for word in args):
        return []
    has_script = any(word in ("-e", "-f", "--expression", "--file") or word.startswith("-e")
                     for word in args)
    # They put a new file at the name.
    link: Link = "followed" if "--follow-symlinks" in args else "itself"
    return [Target(path, link) for path in _operands(name, args)[0 if has_script else 1 :]]


def _has_letter(word: str, letter: str) -> bool:
    """Whether it is an option, or options, of one letter each, and this is among them."""
    return word[:1] == "-" and word[:2] != "--" and letter in word


def _find_copied(_: str, args: list[str]) -> list[Target]:
    return [Target(word[3:]) for word in args if word.startswith("of=")]


def _find_of_git(name: str, args: list[str]) -> list[Target]:
    rest = git_commands.git_command([name, *args])
    paths = git_commands.written(rest[0], rest[1:]) if rest else []
    targets = [Target(path, "itself") for path in paths]
    if rest[:1] == ["mv"] and len(paths) > 1:
        targets[-1] = _into(paths[-1], paths[:-1], "itself", ["itself"])
    return targets


#: Program -> its written files, by its name and arguments.
_PROGRAMS: dict[str, Callable[[str, list[str]], list[Target]]] = {
    **dict.fromkeys(("rm", "unlink", "rmdir"), _find_removed),
    **dict.fromkeys(("mv", "cp", "ln", "install", "rsync"), _find_put),
    **dict.fromkeys(("touch", "tee", "shred"), _find_touched),
    **dict.fromkeys(_IN_PLACE, _find_edited),
    "truncate": _find_truncated, "dd": _find_copied, "git": _find_of_git,
}


def _put(name: str, args: Sequence[str], named: Sequence[str]) -> list[Target]:
    """The targets of a program with these options, and the sources that `mv` takes away. A link to
    a directory is entered, unless an option forbids it. A link to a file is replaced, except by
    most ways of `cp`."""
    if name == "rsync":
        return _put_by_rsync(args, named)
    options, folder = _read_options(args), _folder(args)
    sources = list(named if folder else named[:-1])
    taken = [Target(source, "itself") for source in sources] if name == "mv" else []
    inside = _list_ways(name, options, "itself")
    if folder is not None:
        into = _into(folder, sources, "entered", inside)
        return [*taken, *([into] if into.inside is None else into.inside)]
    if not sources:
        return [Target(path, "itself") for path in named] if name == "mv" else []
    if options.have("T", "--no-target-directory"):
        return [*taken, *(Target(named[-1], way) for way in inside)]
    replaces = name == "ln" and options.have("n", "--no-dereference")
    ways = _list_ways(name, options, "itself" if replaces else "entered")
    return [*taken, *(_into(named[-1], sources, way, inside) for way in ways)]


def _put_by_rsync(args: Sequence[str], named: Sequence[str]) -> list[Target]:
    if len(named) < 2:
        return []
    is_whole = any(word.startswith(("--del", "--relative")) or _has_letter(word, "R")
                   for word in args) or any(path.endswith("/") for path in named[:-1])
    return [_into(named[-1], ["."] if is_whole else named[:-1], "entered", ["itself"])]


class _Options(NamedTuple):
    """The options of what copies files: those of a letter, and those of a word (`--word`)."""

    letters: frozenset[str]
    words: frozenset[str]

    def have(self, letters: str, *words: str) -> bool:
        """Whether any of these is given."""
        return not self.letters.isdisjoint(letters) or not self.words.isdisjoint(words)


def _read_options(args: Sequence[str]) -> _Options:
    return _Options(
        frozenset("".join(_VALUED.split(word[1:])[0] for word in args if _has_letter(word, ""))),
        frozenset(word.partition("=")[0] for word in args if word[:2] == "--"))


def _list_ways(name: str, options: _Options, link: Link) -> list[Link]:
    """The ways to write a link's name, if most programs do it this way."""
    if name != "cp" or options.have("", "--remove-destination"):
        return [link]
    if options.have("Pda", "--archive", "--no-dereference"):
        return ["followed", link]  # depends on the copied file
    return ["followed"]


def _operands(name: str, args: Sequence[str]) -> list[str]:
    """The words that are no options, nor values of these."""
    letters, full = _VALUED_NEXT.get(name, _VALUED_ELSE)

    def takes_next(word: str) -> bool:
        if word[:2] == "--":
            return word[2:] in full
        for position, letter in enumerate(word[1:], 2):
            if letter in letters or (letter == "i" and name in _IN_PLACE):  # (`-i` takes a suffix)
                return letter in letters and position == len(word)
        return False

    result: list[str] = []
    rest = iter(args)
    for word in rest:
        if word == "--":
            return [*result, *rest]
        if word[:1] != "-" or word == "-":
            result.append(word)
        elif takes_next(word):
            next(rest, None)
    return result


def _into(place: str, sources: Sequence[str], link: Link, inside: Sequence[Link]) -> Target:
    """The target of these sources: this place, or files in it, if it is a directory. A source that
    means its content, `dir/.`, may be put anywhere there."""
    names = [posixpath.basename(source.rstrip("/")) for source in sources]
    if any(name in ("", ".", "..") for name in names):
        return Target(place, link)
    return Target(place, link, tuple(
        there for name in names for how in inside
        if (there := Target(posixpath.join(place, name), how)).is_known))


def _folder(args: Sequence[str]) -> str | None:
    """The target folder that `-t` names."""
    for position, word in enumerate(args):
        if word.startswith("--target-directory="):
            return word.partition("=")[2]
        if word == "--target-directory" or (
                word[:1] == "-" and word[:2] != "--" and _VALUED.split(word)[0].endswith("t")):
            return "".join(args[position + 1 : position + 2]) or None
    return None


#: The errors of a write to a read-only file. zsh begins such words small.
_STOPPED = ("read-only file system", "device or resource busy", "erofs", "ebusy")
_WORD = re.compile(r"""[^\s'"`,;:()<>|&\[\]]+""")
_BETWEEN = re.compile(r"""[\s'"`;<>|&]+""")
#: Words that may have spaces: between quotes, or behind backslashes. Each character is looked at
#: once, however long a command is.
_QUOTED = re.compile(r"""'([^'\n]*)'|"([^"\n]*)\"""")
_UNQUOTED = re.compile(r"""(?:[^\s'"\\]|\\.)+""")
_ESCAPED = re.compile(r"\\(.)")
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
    """The words of a command that may be file names; at the end those with spaces (quoted,
    escaped), and with brackets."""
    matches = _WORD.findall(text)
    names = [single or double for single, double in _QUOTED.findall(text)]
    names += [_ESCAPED.sub(r"\1", word) for word in _UNQUOTED.findall(text) if "\\" in word]
    matches += [name for name in names if any(item.isspace() or item in "[(" for item in name)]
    return matches + [word for word in _BETWEEN.split(text) if "[" in word]


def may_mean(word: str, path: str) -> bool:
    """Whether a word of a command may name this file (relative to the root), from wherever it was
    said: it ends in the same names."""
    text = word.removeprefix("./").rstrip("/")
    return bool(text) and (f"/{path}".endswith(f"/{text}") or f"/{text}".endswith(f"/{path}"))
