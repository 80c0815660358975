"""The words of a shell command, as far as they are known without a shell. Pure; a guess.

The module lists the simple commands one by one, including those in pipes, loops, substitutions and
`bash -c '…'`. Variables and substitutions, which only the shell knows, stay as they were written.
context_archive/decisions.md says why no full grammar is used.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

#: How many characters of a text are read.
TEXT_MAX = 64 * 1024
#: How many levels of commands within commands are read (`bash -c "sh -c '…'"`).
DEPTH_MAX = 5
#: Words of the shell's own before a command.
KEYWORDS = frozenset({"{", "}", "!", "do", "then", "else", "elif", "if", "while", "until"})
#: Programs that run another one: options of theirs that take a value, and how many words come
#: before its name.
_RUNNERS: dict[str, tuple[frozenset[str], int]] = {
    "sudo": (frozenset({"-u", "-g", "-U", "-C", "-h", "-p", "-r", "-t"}), 0),
    "doas": (frozenset({"-u", "-C"}), 0),
    "env": (frozenset({"-u", "-C", "--unset", "--chdir"}), 0),
    "nice": (frozenset({"-n", "--adjustment"}), 0),
    "ionice": (frozenset({"-c", "-n", "-p"}), 0),
    "timeout": (frozenset({"-k", "-s", "--kill-after", "--signal"}), 1),
    "stdbuf": (frozenset({"-i", "-o", "-e"}), 0),
    "xargs": (frozenset({"-I", "-n", "-L", "-P", "-d", "-a", "-s", "-E"}), 0),
    "command": (frozenset(), 0), "builtin": (frozenset(), 0), "exec": (frozenset({"-a"}), 0),
    "nohup": (frozenset(), 0), "setsid": (frozenset(), 0), "time": (frozenset({"-f", "-o"}), 0),
}
#: bash and zsh read this as a test or as arithmetic, these read it as commands.
_PLAIN_SHELLS = frozenset({"sh", "dash", "ash"})
_SIGNS = frozenset("();<>|&")
#: Replacements of quoted characters while the words are split; no command has such letters.
_HIDDEN = {ord(sign): 0xF8E0 + position for position, sign in enumerate("();<>|&[]")}
_SHOWN = {hidden: sign for sign, hidden in _HIDDEN.items()}
#: Pure arithmetic: operands with operators between them.
_ARITHMETIC = re.compile(r"(?!.*[\w$] +[\w$])[\w $+*/%<>=!&|^~?:,-]*")
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash"})
_ASSIGNED = re.compile(r"[A-Za-z_]\w*\+?=")
#: The mark of a here-document, in the place of its use.
_HEREDOC = re.compile(r"""<<(-?)[ \t]*(?:'([^'\n]+)'|"([^"\n]+)"|\\?([\w.]+))""")
_SUBSTITUTED = re.compile(r"\$\(([^()]+)\)")
_BACKTICKS = re.compile("`([^`]*)`")


class Sign(str):
    """A character of the shell's own (`>`, `;`), unlike a quoted word of the same letters."""

    __slots__ = ()


def simple_commands(command: str, depth: int = 0, plain: bool = False) -> Iterator[list[str]]:
    """The words of each simple command, in order, without those before its name (settings of
    variables, `sudo`, `timeout 60`). Redirections in it are `Sign`s, without the number before
    them. An unreadable part (an open quote) ends the reading of its line.

    Args:
        plain: a plain `sh` runs it, which knows neither `[[ a > b ]]` nor `((a > b))`.
    """
    for line in lines_of(command[:TEXT_MAX]):
        if depth < DEPTH_MAX:
            for inner in _BACKTICKS.finditer(line):
                yield from simple_commands(inner[1], depth + 1, plain)
        tokens = tokens_of(_BACKTICKS.sub("$_", line))
        words: list[str] = []
        position = 0
        while position < len(tokens):
            word = tokens[position]
            end = 0 if plain else _end_of_test(tokens, position, words)
            if end:
                words += map(str, tokens[position:end])
                position = end
                continue
            if separates(word):
                end = 0 if plain else _end_of_arithmetic(tokens, position, words)
                yield from _walk_command(words, depth, plain)
                words = []
                position = max(position, end)
            elif words or word not in KEYWORDS:
                words.append(word)
            position += 1
        yield from _walk_command(words, depth, plain)


def tokens_of(line: str) -> list[str]:
    """The words and operators of a line, as far as it can be split."""
    lexer = shlex.shlex(_hidden(line), posix=True, punctuation_chars="();<>|&")
    lexer.whitespace_split = True
    lexer.commenters = ""
    result: list[str] = []
    try:
        for word in lexer:
            is_sign = word in ("[[", "]]") or (word and set(word) <= _SIGNS)
            result.append(Sign(word) if is_sign else word.translate(_SHOWN))
    except ValueError:
        pass
    return result


def _hidden(line: str) -> str:
    """The line with other letters in place of quoted operators, and without the numbers of
    redirections."""
    if any(chr(letter) in line for letter in _SHOWN):
        return line
    result: list[str] = []
    quote, position = "", 0
    while position < len(line):
        sign = line[position]
        if sign == "\\" and quote != "'":
            result += sign, line[position + 1 : position + 2].translate(_HIDDEN)
            position += 2
            continue
        if quote:
            quote = "" if sign == quote else quote
            sign = sign.translate(_HIDDEN)
        elif sign in "'\"":
            quote = sign
        elif sign in "<>":
            first = len(result)
            while first and result[first - 1].isdigit():
                first -= 1
            if not first or result[first - 1].isspace() or result[first - 1] in _SIGNS:
                del result[first:]
        result.append(sign)
        position += 1
    return "".join(result)


def _end_of_test(tokens: Sequence[str], position: int, before: Sequence[str]) -> int:
    """The place behind the `[[ … ]]` that begins here, if nothing in it is run; otherwise 0."""
    if before or tokens[position] != "[[" or not isinstance(tokens[position], Sign):
        return 0
    for end, word in enumerate(tokens[position:], position):
        if isinstance(word, Sign):
            if "(" in word or ")" in word:
                break
            if word == "]]":
                return end + 1
    return 0


def _end_of_arithmetic(tokens: Sequence[str], position: int, before: Sequence[str]) -> int:
    """The token before the end of `((…))` that begins here; 0: it is none, for certain."""
    loop = before == ["for"]
    if not tokens[position].endswith("((") or not (loop or not before or before[-1].endswith("$")):
        return 0
    for end, word in enumerate(tokens[position + 1 :], position + 1):
        if isinstance(word, Sign) and ("(" in word or ")" in word):
            text = " ".join(tokens[position + 1 : end])
            parts = text.split(";") if loop else [text]
            clear = word.startswith("))") and all(map(_ARITHMETIC.fullmatch, parts))
            return end - 1 if clear else 0
    return 0


def separates(word: str) -> bool:
    """Whether these characters end a command; several may be side by side: `);`."""
    if not isinstance(word, Sign) or not set(word) <= _SIGNS:
        return False
    return "(" in word or ")" in word or not {"<", ">"}.intersection(word)


def _walk_command(words: list[str], depth: int, plain: bool) -> Iterator[list[str]]:
    """This command, and those in its words."""
    named = program_words(words)
    yield named
    if depth == DEPTH_MAX:
        return
    for word in words:
        for match in _SUBSTITUTED.finditer(word):
            yield from simple_commands(match[1], depth + 1, plain)
    text = _given_to_a_shell(named)
    if text:
        plain = plain or named[0].rpartition("/")[2] in _PLAIN_SHELLS
        yield from simple_commands(text, depth + 1, plain)


def _given_to_a_shell(words: Sequence[str]) -> str:
    """The text that a shell runs as a command."""
    if words and words[0] == "eval":
        return " ".join(words[1:])
    if words and words[0].rpartition("/")[2] in _SHELLS:
        for position, word in enumerate(words[:-1]):
            if word[:1] == "-" and word[:2] != "--" and word.endswith("c"):
                return words[position + 1]
    return ""


def lines_of(text: str) -> Iterator[str]:
    """The lines of a text, split outside of quotes; without the bodies of here-documents."""
    quote, start, position = "", 0, 0
    ends: list[tuple[str, bool]] = []
    while position < len(text):
        sign = text[position]
        if sign == "\\" and quote != "'":
            position += 2
        elif quote or sign in "'\"":
            quote = "" if sign == quote else quote or sign
            position += 1
        elif sign == "#" and _is_at_word(text, start, position):
            comment, _, _ = text[position:].partition("\n")
            text = text[:position] + text[position + len(comment) :]
        elif sign == "\n":
            yield text[start:position].replace("\\\n", " ")
            position = start = _after(text, position + 1, ends)
            ends = []
        elif text.startswith("<<<", position):
            position += 3
        elif sign == "<" and (mark := _HEREDOC.match(text, position)) is not None:
            ends.append((next(filter(None, mark.group(2, 3, 4))), bool(mark[1])))
            position = mark.end()
        else:
            position += 1
    yield text[start:].replace("\\\n", " ")


def _is_at_word(text: str, start: int, position: int) -> bool:
    """Whether a word of the line that starts there would begin here."""
    return position == start or text[position - 1] in " \t\n;&|("


def _after(text: str, position: int, ends: Sequence[tuple[str, bool]]) -> int:
    """The place in the text after these here-documents."""
    for end, stripped in ends:
        while position < len(text):
            line, _, _ = text[position:].partition("\n")
            position += len(line) + 1
            if (line.lstrip("\t") if stripped else line) == end:
                break
    return min(position, len(text))


def program_words(words: list[str]) -> list[str]:
    """The words from the program's own name on; the name without its folder, if it is one of
    programs."""
    position = 0
    while position < len(words):
        word = words[position]
        runner = _RUNNERS.get(word.rpartition("/")[2])
        if word == "!" or _ASSIGNED.match(word):  # also in `time !`
            position += 1
        elif runner is not None:
            position = _after_runner(words, position + 1, *runner)
        else:
            break
    if position >= len(words):
        return []
    if redirects(words[position]):  # they may come before the name, too
        return [*program_words(words[position + 2 :]), *words[position : position + 2]]
    folder, _, name = words[position].rpartition("/")
    return [name if folder.endswith("bin") else words[position], *words[position + 1 :]]


def redirects(word: str) -> bool:
    """Whether it is the operator of a redirection, so that the next word is no word of the command.
    """
    return isinstance(word, Sign) and ("<" in word or ">" in word)


def _after_runner(words: list[str], position: int, valued: frozenset[str], before: int) -> int:
    while position < len(words) and words[position].startswith("-"):
        position += 2 if words[position] in valued else 1
    return position + before
