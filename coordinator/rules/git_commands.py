"""What a git command changes, by its words. Pure."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Sequence
from typing import NamedTuple

#: git options that take a value and come before the subcommand.
_GIT_VALUED = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env",
                         "--super-prefix", "--attr-source"})
#: git options that name a repository, or its working tree, by itself.
_GIT_ELSEWHERE = frozenset({"--git-dir", "--work-tree", "--bare", "--config-env"})
_WHOLE_TREE = frozenset({"merge", "rebase", "pull", "cherry-pick", "revert", "am", "read-tree",
                         "bisect", "sparse-checkout", "filter-branch", "fast-import"})
#: Options by which they end, or report the operation under way, and change no file.
_ONLY_IN_GIT = frozenset({"--abort", "--quit", "--show-current-patch"})
#: Their words that only read.
_ONLY_READING = {"bisect": ["log"], "sparse-checkout": ["list"]}
#: Commands that take files into the index, or out of it.
INDEXING = frozenset({"add", "stage", "rm", "mv", "update-index"})
#: Commands that change only git's data: harmless for others, unless it is shared.
_PLUMBING = frozenset({"add", "stage", "commit", "update-index", "update-ref", "symbolic-ref",
                       "fast-import"})
#: Options of `update-index` that change no content of an entry.
_REFRESHING = frozenset({"--refresh", "--really-refresh"})
#: Commands that may run git's own hooks of commits and pushes.
COMMITS = frozenset({"commit", "push", "merge", "rebase", "cherry-pick", "revert", "am", "pull"})
#: Options, of the commands checked beforehand, that take the next word, whatever it is.
_VALUED_SHORT = {"commit": "mFCct", "clean": "e", "restore": "s", "stash": "m", "checkout": "bB",
                 "switch": "cC", "branch": "u"}
_VALUED = {
    "clean": ("--exclude",), "restore": ("--source", "--conflict"), "stash": ("--message",),
    "checkout": ("--orphan", "--conflict"),
    "commit": ("--message", "--file", "--author", "--date", "--template", "--cleanup", "--fixup",
               "--squash", "--trailer", "--reuse-message", "--reedit-message"),
    "add": ("--chmod",), "stage": ("--chmod",),
}
_FROM_FILE = "--pathspec-from-file"
#: Commands that can print what they would do -> whether `-n` means that, too.
_TELLING = {"add": True, "stage": True, "mv": True, "rm": True, "clean": True, "commit": False}
#: The spellings of the last commit; empty: none is given.
_HEADS = ("", "HEAD", "@")
#: Options by which they ask the user file by file.
_ASKING = {"commit": ("p", ("--patch", "--interactive")),
           "add": ("pie", ("--patch", "--interactive", "--edit"))}
#: `apply` with these changes nothing, unless `--apply` says so. With `--cached` it changes the
#: index alone, as `add -p` does through it: the commit is looked at then.
_TELLS_OF_A_PATCH = frozenset({"--check", "--stat", "--numstat", "--summary"})
#: Options end after this.
_ENDS = ("--", "--end-of-options")
_EVERYTHING = frozenset({".", "./", ":/", ":", "*", ":(top)"})


def git_command(words: Sequence[str]) -> list[str]:
    """The subcommand and what follows it, of words that begin with `git`."""
    rest = list(words[1:])
    while rest and rest[0].startswith("-"):
        rest = rest[2:] if rest[0] in _GIT_VALUED else rest[1:]
    return rest


def folder(words: Sequence[str]) -> str | None:
    """The folder where its options (`-C`) make git begin, seen from the caller, for words that
    begin with `git`; empty: the caller's own. None: they name another repository or working tree.
    """
    position, text = 1, ""
    while position < len(words) and words[position].startswith("-"):
        option = words[position]
        if option.partition("=")[0] in _GIT_ELSEWHERE or _sets_worktree(words, position):
            return None
        if option == "-C" and position + 1 < len(words):
            text = posixpath.join(text, words[position + 1])
        position += 2 if option in _GIT_VALUED else 1
    return text


def _sets_worktree(words: Sequence[str], position: int) -> bool:
    """Whether the option here is a setting that moves git's files elsewhere."""
    return words[position] == "-c" and "".join(words[position + 1 : position
                                                     + 2]).lower().startswith(
        "core.worktree")


class _Command(NamedTuple):
    """A git command, taken apart. `rest`: the subcommand and what follows it; `plain`: words that
    are no flags; `short`: the letters of all short flags."""

    rest: Sequence[str]
    args: list[str]
    plain: list[str]
    flags: Sequence[str]
    short: str
    names_commit: Callable[[str], bool] | None

    @property
    def after_dashes(self) -> list[str]:
        """The words after `--`."""
        return self.args[self.args.index("--") + 1 :]


def wide(rest: Sequence[str], names_commit: Callable[[str], bool] | None = None) -> bool:
    """Whether this git command changes more of the working tree than the files it names.

    Args:
        rest: the subcommand and what follows it.
        names_commit: whether a word names a commit (else it is a file), where that can be known.
    """
    if not rest or only_tells(rest) or _only_unstages(rest):
        return False
    name, args = rest[0], list(rest[1:])
    plain, flags = split_words(name, args)
    if name in _WHOLE_TREE:
        return plain[:1] != _ONLY_READING.get(name) and not _ONLY_IN_GIT.intersection(flags)
    short = "".join(word[1:] for word in flags if not word.startswith("--"))
    is_wide = _WIDE.get(name)
    return is_wide is not None and is_wide(
        _Command(rest, args, plain, flags, short, names_commit))


def _moves_head(command: _Command) -> bool:
    moved = moved_ref(command.rest)
    return moved is not None and moved.ref in ("", "HEAD")


def _renames_branch(command: _Command) -> bool:
    return len(command.plain) < 2 and (
        "m" in command.short or "M" in command.short or "--move" in command.flags)


def _stashes_all(command: _Command) -> bool:
    plain, named = command.plain, list_stashed(command.args)
    if named:
        return any(word in _EVERYTHING or word.rstrip("/").endswith("/.") for word in named)
    return not plain or plain[0] not in ("list", "show", "create", "store")


def _resets_all(command: _Command) -> bool:
    if any(flag in command.flags for flag in ("--hard", "--merge", "--keep")):
        return True
    plain, names_commit = command.plain, command.names_commit
    return len(plain) == 1 and "--" not in command.args and plain[0] not in ("HEAD", "@") and (
        names_commit is not None and names_commit(plain[0]))


def _cleans_all(command: _Command) -> bool:
    return _cleans(command.flags) and (
        not command.plain or bool(_EVERYTHING.intersection(command.plain)))


def _checks_out_all(command: _Command) -> bool:
    plain, names_commit = command.plain, command.names_commit
    if "--" in command.args:
        return not command.after_dashes or bool(_EVERYTHING.intersection(command.after_dashes))
    if _begins_a_branch(command.args):
        return True  # as `switch` does
    if _EVERYTHING.intersection(plain):
        return True
    return len(plain) < 2 and (not plain or names_commit is None or names_commit(plain[0]))


def _restores_all(command: _Command) -> bool:
    return (not command.plain or bool(_EVERYTHING.intersection(command.plain))
            or names_from(command.rest) is not None)


def _adds_all(command: _Command) -> bool:
    if command.plain:
        return bool(_EVERYTHING.intersection(command.plain))
    return bool({"A", "u"}.intersection(command.short)) or any(
        _is_short_for(flag, full) for flag in command.flags for full in ("--all", "--update"))


def _commits_all(command: _Command) -> bool:
    return "a" in command.short or any(_is_short_for(flag, "--all") for flag in command.flags)


def changes_files(flags: Sequence[str]) -> bool:
    """Whether `git apply` with these options writes files."""
    return "--cached" not in flags and (
        "--apply" in flags or not _TELLS_OF_A_PATCH.intersection(flags))


#: Subcommand -> whether it changes more than the files it names.
_WIDE: dict[str, Callable[[_Command], bool]] = {
    "symbolic-ref": _moves_head, "update-ref": _moves_head, "branch": _renames_branch,
    "fetch": lambda command: "--update-head-ok" in command.flags or "u" in command.short,
    "update-index": lambda command: not {"--stdin", "--index-info"}.isdisjoint(command.flags),
    # A new branch counts, too: others' next commits would be on it.
    "switch": lambda command: True,
    "submodule": lambda command: command.plain[:1] in (["update"], ["foreach"], ["deinit"]),
    "stash": _stashes_all, "reset": _resets_all, "clean": _cleans_all,
    "checkout": _checks_out_all, "restore": _restores_all, "add": _adds_all, "stage": _adds_all,
    "commit": _commits_all, "apply": lambda command: changes_files(command.flags),
}


class BroughtBack(NamedTuple):
    """Files that get a commit's content (empty: the index's), as they are written. `tree`: in the
    working tree, too."""

    commit: str
    files: tuple[str, ...]
    tree: bool


def brought_back(rest: Sequence[str], names_commit: Callable[[str], bool]) -> BroughtBack | None:
    """The changes of a `checkout`, `restore` or `reset` of named files. None if it changes nothing,
    or only takes out of the index what was added to it."""
    name, args = rest[0], list(rest[1:])
    before, named = split_end(args)
    plain = [word for word in before if not word.startswith("-")]
    if name == "restore":
        change = _of_restore(args)
    elif name == "reset" or (name == "checkout" and not _begins_a_branch(args)):
        commit = plain[0] if plain and ("--" in args or names_commit(plain[0])) else ""
        change = BroughtBack(commit, (*(plain[1:] if commit else plain), *named),
                             name == "checkout")
    else:
        return None
    only_index = not change.tree and change.commit in _HEADS
    return change if change.files and not only_index else None


def split_end(args: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words before `--`, and those behind it."""
    end = args.index("--") if "--" in args else len(args)
    return list(args[:end]), list(args[end + 1 :])


def _of_restore(args: Sequence[str]) -> BroughtBack:
    source, files, staged, tree = "", list[str](), False, False
    before, named = split_end(args)
    words = iter(before)
    for word in words:
        if word in ("-s", "--source"):
            source = next(words, "")
        elif word.startswith("--"):
            source = word.partition("=")[2] if word.startswith("--source=") else source
            staged = staged or (len(word) > len("--s") and "--staged".startswith(word))
            tree = tree or _is_short_for(word, "--worktree")
        elif word.startswith("-s"):
            source = word[2:]
        elif word.startswith("-"):
            staged, tree = staged or "S" in word, tree or "W" in word
        else:
            files.append(word)
    return BroughtBack(source or ("HEAD" if staged else ""), (*files, *named),
                       tree or not staged)


class MovedRef(NamedTuple):
    """The ref that `update-ref` or `symbolic-ref` writes. `ref`: empty if it is read from the
    input. `to`: the new value; empty if it is unknown, or if the ref is removed."""

    ref: str
    to: str = ""


def moved_ref(rest: Sequence[str]) -> MovedRef | None:
    """The ref that the command writes, if any."""
    name, args = rest[0], list(rest[1:])
    if "--stdin" in args:
        return MovedRef("")
    plain, skip = [], False
    for word in args:
        if skip or word.startswith("-"):
            skip = not skip and word == "-m"
        else:
            plain.append(word)
    if not plain:
        return None
    if "-d" in args or "--delete" in args:
        return MovedRef(plain[0])
    if len(plain) < 2:
        return None
    return MovedRef(plain[0], plain[1] if name == "update-ref" else "")


def indexed(rest: Sequence[str]) -> list[str]:
    """The words of `update-index`, as they are written: files, and words that are none. None of
    them if it changes no entry's content."""
    args = list(rest[1:])
    if _REFRESHING.intersection(args):
        return []
    return [word.split(",", 2)[-1] for word in args if not word.startswith("-")]


def either(rest: Sequence[str]) -> str | None:
    """The word of a `checkout` that is a commit or a file: git alone can tell."""
    if rest[:1] != ["checkout"] or "--" in rest or _begins_a_branch(rest[1:]):
        return None
    plain = [word for word in rest[1:] if not word.startswith("-")]
    return plain[0] if plain and plain[0] not in _EVERYTHING else None


def _begins_a_branch(args: Sequence[str]) -> bool:
    """Whether `checkout` makes a branch."""
    return "--orphan" in args or any(
        word[:1] == "-" and word[:2] != "--" and ("b" in word or "B" in word) for word in args)


def stays_in_git(rest: Sequence[str]) -> bool:
    """Whether it changes nothing but git's own files, whatever it is given."""
    if not rest:
        return False
    name, args = rest[0], rest[1:]
    if name == "read-tree":
        return not any(word.startswith("-") and not word.startswith("--") and "u" in word
                       for word in args)
    if name == "rm":
        return "--cached" in args
    if name == "reset":
        return not any(word in args for word in ("--hard", "--merge", "--keep"))
    return name in _PLUMBING


def only_tells(rest: Sequence[str]) -> bool:
    """Whether it changes nothing, and only tells what it would change."""
    name, tells = "".join(rest[:1]), False
    for word in split_words(name, rest[1:])[1]:
        if word == "--no-dry-run":
            tells = False
        elif name in _TELLING and (word == "--dry-run" or (
                word[:1] == "-" and word[:2] != "--" and "n" in word and _TELLING[name])):
            tells = True
    return tells


def _only_unstages(rest: Sequence[str]) -> bool:
    """Whether it only takes out of the index what was added to it."""
    if rest[:1] != ["restore"] or names_from(rest) is not None:
        return False
    found_brought_back = _of_restore(rest[1:])
    return not found_brought_back.tree and found_brought_back.commit in _HEADS


def written(name: str, args: Sequence[str]) -> list[str]:
    """Files that a git command plainly names to be written, or taken from all in the index."""
    plain, flags = split_words(name, args)
    if only_tells([name, *args]):
        return []
    if name in ("mv", "rm") or (name == "clean" and _cleans(flags)):
        return plain
    if name == "restore":
        restored = _of_restore(args)
        return list(restored.files) if restored.tree else []
    if name == "stash":
        return list_stashed(args)
    if name == "checkout" and "--" in args:
        return list(args[args.index("--") + 1 :])
    if name == "checkout" and not _begins_a_branch(args):
        return plain[1:]  # the first one may be a commit: `either`
    return []


def list_stashed(args: Sequence[str]) -> list[str]:
    """The files that these words after `stash` name to be put aside; none: all, or it puts nothing
    aside."""
    plain, _ = split_words("stash", args)
    if plain[:1] == ["push"]:
        return plain[1:]
    return list(args[args.index("--") + 1 :]) if "--" in args[:1] or (
        "--" in args and args[0].startswith("-")) else []


def named(rest: Sequence[str]) -> list[str]:
    """The words of a command that are neither options nor their values."""
    return split_words(rest[0], rest[1:])[0]


def asks_the_user(rest: Sequence[str]) -> bool:
    """Whether `add` or `commit` lets the user choose, so that the choice is not known beforehand.
    """
    name, args = rest[0], rest[1:]
    letters, words = _ASKING.get("add" if name == "stage" else name, ("", ()))
    for word in _options(name, args):
        if any(_is_short_for(word, full) for full in words):
            return True
        if word[:1] == "-" and word[:2] != "--":
            for letter in word[1:]:
                if letter in letters:
                    return True
                if letter in _VALUED_SHORT.get(name, "") or letter in "uS":
                    break
    return False


def names_from(rest: Sequence[str]) -> str | None:
    """The file that lists what the command takes; None if there is none."""
    text, args = None, list(_options(rest[0], rest[1:]))
    for position, word in enumerate(args):
        option, given, value = word.partition("=")
        if _is_short_for(option, _FROM_FILE):
            text = value if given else "".join(args[position + 1 : position + 2])
    return text


def with_options(rest: Sequence[str], ours: Sequence[str]) -> list[str]:
    """The command with our options after all others: of two that say the opposite, git means the
    last one."""
    end = 1 + len(_options(rest[0], rest[1:]))
    return [*rest[:end], *ours, *rest[end:]]


def _cleans(flags: Sequence[str]) -> bool:
    """Whether `clean` with these options removes anything."""
    return any(_is_short_for(word, "--force") if word.startswith("--") else "f" in word
               for word in flags)


def split_words(name: str, args: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words that are no options, nor their values; and the options, without these."""
    before = _options(name, args)
    plain, flags, taken = list[str](), list[str](), False
    for word in before:
        if taken:
            taken = False
        elif word == "-" or not word.startswith("-"):
            plain.append(word)
        else:
            flags.append(_without_value(name, word))
            taken = _takes_the_next(name, word)
    return [*plain, *args[len(before) + 1 :]], flags


def _without_value(name: str, word: str) -> str:
    if word.startswith("--"):
        return word.partition("=")[0]
    for position, letter in enumerate(word[1:], 2):
        if letter in _VALUED_SHORT.get(name, "") or (name == "commit" and letter in "uS"):
            return word[:position]
    return word


def _options(name: str, args: Sequence[str]) -> Sequence[str]:
    """The words before the one that ends the options."""
    taken = False
    for position, word in enumerate(args):
        if taken:
            taken = False
        elif word in _ENDS:
            return args[:position]
        else:
            taken = _takes_the_next(name, word)
    return args


def _takes_the_next(name: str, word: str) -> bool:
    if word.startswith("--"):
        return any(_is_short_for(word, full) for full in (*_VALUED.get(name, ()), _FROM_FILE))
    if not word.startswith("-"):
        return False
    for position, letter in enumerate(word[1:], 2):
        if letter in _VALUED_SHORT.get(name, ""):
            return position == len(word)
        if name == "commit" and letter in "uS":
            return False  # the rest is its value
    return False


def _is_short_for(word: str, option: str) -> bool:
    """Whether it is this option, or the beginning of its name, which git takes for it."""
    return len(word) > 2 and option.startswith(word)
