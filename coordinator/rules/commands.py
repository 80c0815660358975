"""What a shell command obviously does, told from its words. Pure; a guess, never a proof.

No reading of a command tells all that it writes (`python -c …`, scripts): the session that it runs
in and the comparison after it do. This tells two things that are better said before it runs: that
it touches the whole work tree (`git stash`), and which files it plainly names as its targets
(`sed -i f`). Where git asks by itself, the first is left to that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from coordinator.rules.shell_words import simple_commands

_UNKNOWN = frozenset("$`*?[{~")
#: git options that take a value and come before the subcommand.
_GIT_VALUED = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace"})
_WHOLE_TREE = frozenset({"merge", "rebase", "pull", "cherry-pick", "revert", "am",
                         "read-tree", "bisect", "sparse-checkout", "filter-branch"})
_COMMITS = frozenset({"commit", "push", "merge", "rebase", "cherry-pick", "revert", "am", "pull"})
_EVERYTHING = frozenset({".", "./", ":/", ":", "*", ":(top)"})
#: A size, as `truncate -s` takes it.
_SIZE = re.compile(r"[+\-<>/%]?[0-9]+(?:[KMGTPEZYRQ](?:i?B)?)?")


def git_wide(command: str) -> str | None:
    """The first git command in it that changes the whole work tree or index, as it is written;
    None if there is none."""
    for words in simple_commands(command):
        if words and words[0] == "git" and wide(git_command(words)):
            return " ".join(words)
    return None


def commits(command: str) -> bool:
    """Whether a git command in it may run git's own commit and push hooks."""
    return any(words and words[0] == "git" and git_command(words)[:1]
               and git_command(words)[0] in _COMMITS for words in simple_commands(command))


def targets(command: str) -> tuple[str, ...]:
    """Files that it plainly names to be written, moved or deleted, in order. Names with `$`,
    wildcards or a tilde are left out: only the shell knows them."""
    found: dict[str, None] = {}
    below = ""
    for words in simple_commands(command):
        if words[:1] == ["cd"]:
            if len(words) != 2 or _UNKNOWN & set(words[1]) or words[1] == "-":
                break  # from here on, relative names mean nothing to us
            below = words[1] if words[1][:1] == "/" else f"{below}{words[1]}"
            below = below.rstrip("/") + "/"
            continue
        for path in (*_redirected(words), *_written(_bare(words))):
            if path and not _UNKNOWN & set(path) and not path.startswith("-"):
                found.setdefault(path if path[:1] == "/" else below + path)
    return tuple(found)


def git_command(words: Sequence[str]) -> list[str]:
    """The subcommand and what follows it, of words that begin with `git`."""
    rest = list(words[1:])
    while rest and rest[0].startswith("-"):
        rest = rest[2:] if rest[0] in _GIT_VALUED else rest[1:]
    return rest


def wide(rest: Sequence[str], names_commit: Callable[[str], bool] | None = None) -> bool:
    """Whether this git command changes more of the working tree than the files it names.

    Args:
        rest: the subcommand and what follows it.
        names_commit: whether a word names a commit (else it is a file), where that can be known.
    """
    if not rest:
        return False
    name, args = rest[0], _bare(rest[1:])
    plain = [word for word in args if not word.startswith("-")]
    flags = [word for word in args if word.startswith("-")]
    short = "".join(word[1:] for word in flags if not word.startswith("--"))
    if name in _WHOLE_TREE:
        return "--abort" not in flags
    if name == "switch":
        made = "c" in short or "C" in short or "--create" in flags or "--orphan" in flags
        return not made or len(plain) > 1
    if name == "submodule":
        return plain[:1] in (["update"], ["foreach"], ["deinit"])
    if name == "stash":
        if "--" in args and (not plain or plain[0] == "push" or args[0].startswith("-")):
            named = args[args.index("--") + 1 :]
            return not named or any(word in _EVERYTHING or word.rstrip("/").endswith("/.")
                                    for word in named)
        return not plain or plain[0] not in ("list", "show", "create", "store")
    if name == "reset":
        if any(flag in flags for flag in ("--hard", "--merge", "--keep")):
            return True
        return len(plain) == 1 and "--" not in args and plain[0] not in ("HEAD", "@") and (
            names_commit is not None and names_commit(plain[0]))
    if name == "clean":
        return "f" in short or "--force" in flags
    if name == "checkout":
        if "--" in args:
            return not args[args.index("--") + 1 :] or bool(
                _EVERYTHING.intersection(args[args.index("--") + 1 :])
            )
        if "b" in short or "B" in short or "--orphan" in flags:
            return len(plain) > 1  # it begins elsewhere than here
        if _EVERYTHING.intersection(plain):
            return True
        return len(plain) < 2 and (not plain or names_commit is None or names_commit(plain[0]))
    if name == "restore":
        return not plain or bool(_EVERYTHING.intersection(plain))
    if name == "add":
        return bool({"-A", "--all", "-u", "--update"}.intersection(flags)
                    or _EVERYTHING.intersection(plain))
    if name == "commit":
        return "--all" in flags or any(
            flag.startswith("-") and not flag.startswith("--") and "a" in flag.split("m")[0]
            for flag in flags
        )
    if name == "apply":
        return "--check" not in flags and "--stat" not in flags
    return False


def _redirected(words: Sequence[str]) -> Iterator[str]:
    for at, word in enumerate(words[:-1]):
        if word in (">", ">>", ">|", "&>", "&>>", ">&") and not words[at + 1].isdigit():
            yield words[at + 1]


def _bare(words: Sequence[str]) -> list[str]:
    """Without redirections."""
    out: list[str] = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word in (">", ">>", ">|", "&>", "&>>", ">&", "<", "<<", "<<<"):
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
        rest = git_command(words)
        return _git_written(rest[0], rest[1:]) if rest else []
    return []


def _git_written(name: str, args: list[str]) -> list[str]:
    plain = [a for a in args if not a.startswith("-")]
    if name in ("mv", "rm"):
        return plain
    if name == "restore":
        return plain
    if name in ("checkout", "stash") and "--" in args:
        return args[args.index("--") + 1 :]
    return []


#: What a read-only file answers to whoever would write it.
_STOPPED = ("Read-only file system", "Device or resource busy", "EROFS", "EBUSY")
_WORD = re.compile(r"""[^\s'"`,;:()<>|&\[\]]+""")
_NAMES_A_FILE = re.compile(r"[^/]*/|\w.*\.\w+$")


def not_writable(output: str) -> list[str] | None:
    """The files that a command's output says were not writable, as far as they look like names;
    None: it says nothing of the kind."""
    lines = [line for line in output.splitlines() if any(sign in line for sign in _STOPPED)]
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
