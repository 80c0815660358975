"""The words of a shell command, read by the shell's own grammar (tree-sitter-bash). Pure.

Gives the simple commands in it one by one: those in pipes, loops, substitutions and `bash -c '…'`,
too. What only the shell knows (variables, substitutions) stays in a word as it was written, so that
whoever asks can see that it is not known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

_PARSER = Parser(Language(tree_sitter_bash.language()))
#: Of longer texts (bytes) only the beginning is read.
TEXT_MAX = 64 * 1024
#: How deep a command within a command is read (`bash -c "sh -c '…'"`).
DEPTH_MAX = 5
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
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash"})
_ASSIGNED = re.compile(r"[A-Za-z_]\w*\+?=")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED_IN_STRING = re.compile(r'\\([\\"$`\n])')
_NO_WORDS = frozenset({"herestring_redirect", "file_redirect"})
_PASS_ON = frozenset({"list", "pipeline", "negated_command"})
#: Nodes that the shell takes as they are.
_PLAIN = frozenset({"word", "number", "file_descriptor"})


def simple_commands(command: str, depth: int = 0) -> Iterator[list[str]]:
    """The words of each simple command, in order, without what stands before its name (settings of
    variables, `sudo`, `timeout 60`); after them its redirections: `>`, `FILE`."""
    text = command.encode("utf-8", "surrogatepass")[:TEXT_MAX]
    #: What is to be read still, the next one last; with the redirections of what is around it.
    todo = [(_PARSER.parse(text).root_node, _NONE)]
    while todo:
        node, around = todo.pop()
        kept, whole = _NONE, None
        if node.type == "command":
            whole = _Redirected([word for child in node.children if child.type not in _NO_WORDS
                                 for word in _words(child)], []) + _redirections(node) + around
        elif node.type == "redirected_statement":
            kept = _redirections(node) + around
        elif node.type in _PASS_ON:
            kept = around
        elif around != _NONE:
            whole = around
        heir = _heir(node) if kept != _NONE else None
        if kept != _NONE and heir is None:
            whole = kept
        if whole is not None:
            words = _named(whole.words)
            yield [*words, *whole.files]
            if depth < DEPTH_MAX:
                yield from _within(words, depth)
        todo += [(child, kept if child == heir else _NONE) for child in reversed(node.children)]


class _Redirected(NamedTuple):
    """Words of a command, and its redirections: `>`, the file."""

    words: list[str]
    files: list[str]

    def __add__(self, other: object) -> _Redirected:
        assert isinstance(other, _Redirected)
        return _Redirected(self.words + other.words, self.files + other.files)


_NONE = _Redirected([], [])


def _heir(node: Node) -> Node | None:
    """Whose the redirections of a statement are: its last command's, as the shell has it. (The
    grammar hangs them on the whole list.)"""
    body = node.child_by_field_name("body") if node.type == "redirected_statement" else None
    if node.type == "redirected_statement":
        return body
    return node.named_children[-1] if node.named_children else None


def _within(words: Sequence[str], depth: int) -> Iterator[list[str]]:
    """The commands in what a shell is given as text."""
    if not words:
        return
    if words[0] == "eval":
        yield from simple_commands(" ".join(words[1:]), depth + 1)
    elif words[0].rpartition("/")[2] in _SHELLS:
        at = next((at for at, word in enumerate(words)
                   if word[:1] == "-" and word[:2] != "--" and word.endswith("c")), None)
        if at is not None and at + 1 < len(words):
            yield from simple_commands(words[at + 1], depth + 1)


def _redirections(node: Node) -> _Redirected:
    """The redirections to files right below a node, and what else of its command the grammar hangs
    there: words that come after the file, or after a here-document's mark."""
    out = _NONE
    for child in node.children:
        if child.type == "heredoc_redirect":
            out += _redirections(child)
        elif child.type == "file_redirect":
            sign = next((one.type for one in child.children if not one.is_named), "")
            words = [word for one in child.children_by_field_name("destination")
                     for word in _words(one)]
            out += _Redirected(words[1:], [sign, *words[:1]] if sign and words else [])
    return out


def _named(words: list[str]) -> list[str]:
    """Without what stands before the program's own name; that without its folder, if it is one of
    programs."""
    at = 0
    while at < len(words):
        word = words[at]
        runner = _RUNNERS.get(word.rpartition("/")[2])
        if _ASSIGNED.match(word) or word == "!":
            at += 1
        elif runner is not None:
            at = _after_runner(words, at + 1, *runner)
        else:
            break
    if at >= len(words):
        return []
    folder, _, name = words[at].rpartition("/")
    return [name if folder.endswith("bin") else words[at], *words[at + 1 :]]


def _after_runner(words: list[str], at: int, valued: frozenset[str], before: int) -> int:
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in valued else 1
    return at + before


def _words(node: Node) -> list[str]:
    """The words of what the grammar takes for one: it joins some over blanks (`{ {`)."""
    if node.type == "command_name" and node.child_count == 1:
        return _words(node.children[0])
    if node.type != "concatenation":
        return [_text(node)]
    out, end = [""], node.start_byte
    for child in node.children:
        if child.start_byte > end:
            out.append("")
        out[-1] += _text(child)
        end = child.end_byte
    return out


def _text(node: Node) -> str:
    """What the shell makes of a word, as far as that can be known; what cannot bears a `$`."""
    said = (node.text or b"").decode("utf-8", "surrogateescape")
    if node.type in _PLAIN:
        return _ESCAPED.sub(lambda found: found[1] if found[1] != "\n" else "", said)
    if node.type == "raw_string":
        return said[1:-1]
    if node.type == "string":
        return _ESCAPED_IN_STRING.sub(lambda found: found[1] if found[1] != "\n" else "",
                                      said[1:-1])
    if node.type in ("variable_assignment", "brace_expression"):
        return said
    return said if "$" in said or not node.is_named else f"${said}"
