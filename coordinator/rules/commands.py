"""What a shell command obviously does, told from its words. Pure; a guess, never a proof.

No reading of a command tells all that it writes (`python -c …`, scripts): confinement and the
comparison after it do. This tells two things that are better said before it runs: that it touches
the whole work tree (`git stash`), and which files it plainly names as its targets (`sed -i f`).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Sequence

_SEPARATORS = frozenset({";", "&&", "||", "|", "&", "(", ")", "|&", ";;", "{", "}", "!", "do",
                         "then", "else"})
_PREFIXES = frozenset({"sudo", "env", "command", "nohup", "time", "exec", "builtin", "nice"})
_UNKNOWN = frozenset("$`*?[{~")
#: git options that take a value and come before the subcommand.
_GIT_VALUED = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace"})
_WHOLE_TREE = frozenset({"merge", "rebase", "pull", "cherry-pick", "revert", "am",
                         "read-tree", "bisect", "sparse-checkout", "filter-branch"})
_COMMITS = frozenset({"commit", "push", "merge", "rebase", "cherry-pick", "revert", "am", "pull"})
_READS = frozenset({"cd", "pwd", "ls", "cat", "head", "tail", "grep", "rg", "find", "echo", "true",
                    "wc", "file", "stat", "which", "type", "diff", "du", "cut"})
_GIT_READS = frozenset({"status", "diff", "log", "show", "blame", "ls-files", "rev-parse", "grep"})
_EVERYTHING = frozenset({".", "./", ":/", ":", "*", ":(top)"})
#: Options by which readers write, or run other programs.
_RUNS_OTHERS = {
    "find": ("-exec", "-delete", "-ok", "-fprint", "-fls"),
    "rg": ("--pre", "--hostname-bin"),
    "file": ("-C", "--compile"),
    "git": ("--output", "--open-files-in-pager", "-O", "--ext-diff"),
}
#: One piece of a word, as the shell reads it: quoted, after a backslash, a plain variable, a sign
#: that means nothing to it.
_QUOTED = re.compile(
    r"""'[^']*'|"(?:[^"\\$`]|\\.|\$(?=[A-Za-z_]))*"|\\.|\$(?=[A-Za-z_])|[^\s'"\\$`;&|<>(){}]"""
)
#: A size, as `truncate -s` takes it.
_SIZE = re.compile(r"[+\-<>/%]?[0-9]+(?:[KMGTPEZYRQ](?:i?B)?)?")
_BETWEEN = re.compile(r"&&|\|\||;|\|")
_ESCAPED = re.compile(r"""\\([\\"$`])""")


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


def reads_only(command: str) -> bool:
    """Whether it certainly writes nothing: only well-known reading commands, called by their bare
    names, without redirection, substitution or settings. These run as they are; so `cd` keeps its
    effect on the agent's shell."""
    found = _plain(command)
    return bool(found) and all(_reads(words) for words in found or ())


def _reads(words: Sequence[str]) -> bool:
    """Whether one simple command only reads."""
    name, args = words[0], words[1:]
    if name == "git":
        known, args = args[:1] and args[0] in _GIT_READS, args[1:]
    else:
        known = name in _READS
    if not known:
        return False
    forbidden = _RUNS_OTHERS.get(name, ())
    return not forbidden or not any(
        "$" in word or _may_mean(word, option) for word in args for option in forbidden
    )


def _may_mean(word: str, option: str) -> bool:
    """Whether a word may be this option: a long one cut short or with its value, a letter among
    others, or (for programs with long options after one dash) how it begins."""
    if not option.startswith("--"):
        if len(option) == 2:
            return word[:1] == "-" and word[:2] != "--" and option[1] in word
        return word.startswith(option)
    name = word.split("=", 1)[0]
    return len(name) > 2 and (option.startswith(name) or name.startswith(option))


def _plain(command: str) -> list[list[str]] | None:
    """The words of each simple command, where `;`, `|`, `&&` and `||` between them, quotes and
    plain `$NAME` are all that the shell has to understand; None where there is more."""
    if any(sign < " " and sign != "\t" for sign in command):
        return None
    out: list[list[str]] = [[]]
    at = 0
    word: str | None = None
    while at < len(command):
        sign = command[at]
        quoted = _QUOTED.match(command, at)
        if sign in " \t" or quoted is None:
            if word is not None:
                out[-1].append(word)
                word = None
            if sign in " \t":
                at += 1
                continue
            between = _BETWEEN.match(command, at)
            if between is None or not out[-1]:
                return None
            out.append([])
            at = between.end()
            continue
        piece = quoted[0]
        if piece == "#" and word is None:
            return None
        text = piece[1:-1] if piece[0] in "'\"" else piece[1:] if piece[0] == "\\" else piece
        if piece[0] == '"':
            text = _ESCAPED.sub(r"\1", text)
        word = (word or "") + text
        at = quoted.end()
    if word is not None:
        out[-1].append(word)
    return out if all(out) else None


def simple_commands(command: str) -> Iterator[list[str]]:
    """The words of each simple command, without what stands before its name. What cannot be split
    (an open quote, a here-document) ends the reading."""
    for line in command.replace("\\\n", " ").split("\n"):
        lexer = shlex.shlex(line, posix=True, punctuation_chars="();<>|&")
        lexer.whitespace_split = True
        lexer.commenters = ""
        words: list[str] = []
        try:
            for word in lexer:
                if word in _SEPARATORS:
                    yield _named(words)
                    words = []
                else:
                    words.append(word)
        except ValueError:
            pass
        yield _named(words)


def _named(words: list[str]) -> list[str]:
    at = 0
    while at < len(words) and (
        words[at] in _PREFIXES or ("=" in words[at] and words[at].split("=")[0].isidentifier())
    ):
        at += 1
    if at == len(words):
        return []
    folder, _, name = words[at].rpartition("/")
    return [name if folder.endswith("bin") else words[at], *words[at + 1 :]]


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
