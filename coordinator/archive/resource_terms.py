"""The terms by which prose may mention a contended resource, and how strong each kind of tie is.

The module decides the order of ties and the reasons that are given for them. It is pure: texts go
in, terms and ranks come out.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

from coordinator.rules import globs
from coordinator.words.refusals import Refusal

_HEADER = "<header>"
_GLOB_SIGNS = frozenset("*?[")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[^\W_]+")
_WORD_LENGTH_MIN = 3
_TOKEN = re.compile(r"\w+(?:[./:\-]+\w+)*")
_TOKENS_MAX = 24


class Rank(IntEnum):
    """How strongly a section is tied to a resource; the lower, the stronger."""

    REGION = 0  # names this very region
    PATH = 1  # names the path or key
    COVER = 2  # front matter (or the daemon) says so, or a glob matches
    SYMBOL = 3  # names a symbol, module or file name of it
    DIRECTORY = 4  # names a directory above it, or something below it
    WORDS = 5  # uses the words that its name is made of


_REASONS = {
    Rank.REGION: "explains {}",
    Rank.PATH: "mentions {}",
    Rank.COVER: "covers {}",
    Rank.SYMBOL: "mentions {}",
    Rank.DIRECTORY: "describes {}",
    Rank.WORDS: "speaks of {}",
}


def reason(rank: Rank, term: str) -> str:
    """`mentions utils/constants.py`: why an excerpt was chosen."""
    return _REASONS[rank].format(term)


@dataclass(frozen=True, slots=True)
class ResourceTerms:
    """One contended resource, taken apart."""

    path: str  # without `::` and region; a key stays whole
    directory: bool
    pattern: bool  # it is a glob itself
    covers: dict[str, Rank]  # terms of front matter that reach it
    mentions: dict[str, Rank]  # terms in text that point at it
    within: str  # the beginning of all terms inside it; empty: none can be
    words: tuple[str, ...]  # of its name

    def contains(self, term: str) -> bool:
        """Whether a term that begins like `within` names something inside this resource."""
        return not self.pattern or _inside(self.path, term.partition("::")[0])


@lru_cache(maxsize=1024)
def asked(resource: str) -> ResourceTerms:
    """Take a resource apart; any text is accepted."""
    path, _, region = resource.partition("::")
    path = path.removeprefix("./").rstrip("/")
    pattern = bool(_GLOB_SIGNS & set(path))
    key = ":" in path and "/" not in path.partition(":")[0]
    mentions: dict[str, Rank] = {}
    for above in _above(path, ":" if key else "/"):
        mentions[above] = Rank.DIRECTORY
    covers = {**dict.fromkeys(mentions, Rank.COVER), path: Rank.COVER}
    words: tuple[str, ...] = ()
    if key:
        words = _words(path[4:]) if path.startswith("key:") else ()
    elif not pattern:
        words = _words(posixpath.basename(path).partition(".")[0])
        mentions.update(dict.fromkeys(_list_symbols(path), Rank.SYMBOL))
    mentions[path] = Rank.PATH
    if region and region != _HEADER:
        *outer, last = region.split(".")
        mentions.update(dict.fromkeys([*outer, last], Rank.SYMBOL))
        mentions[region] = Rank.SYMBOL
        mentions[f"{path}::{region}"] = covers[f"{path}::{region}"] = Rank.REGION
        words += _words(last)
    within = path + (":" if key else "/")
    if pattern:
        literal = re.split(r"[*?\[]", path, maxsplit=1)[0]
        within = literal.rpartition("/")[0] + "/" if "/" in literal else ""
    mentions.pop("", None)
    covers.pop("", None)
    return ResourceTerms(
        path=path,
        directory=not pattern and resource.endswith("/"),
        pattern=pattern,
        covers=covers,
        mentions=mentions,
        within=within if path else "",
        words=words,
    )


def _list_symbols(path: str) -> set[str]:
    """The names of a file in text, beside its path."""
    name = posixpath.basename(path)
    stem, _, suffix = name.partition(".")
    symbols = {name}
    if len(stem) >= _WORD_LENGTH_MIN and not stem.startswith("__"):
        symbols.add(stem)
    if suffix in ("py", "pyi"):
        symbols |= _modules(path.removesuffix("." + suffix))
    return symbols


def _words(name: str) -> tuple[str, ...]:
    """The words that a name is made of; short ones and numbers say too little."""
    words = _WORD.findall(name)
    return tuple(w for w in words if len(w) >= _WORD_LENGTH_MIN and not w.isdigit())


def _above(path: str, separator: str) -> list[str]:
    parts = path.split(separator)
    return [separator.join(parts[:n]) for n in range(1, len(parts))]


def _modules(path: str) -> set[str]:
    """Dotted names of a Python file, with and without a leading `src`."""
    parts = path.split("/")
    if parts[-1] == "__init__":
        parts.pop()
    names = {".".join(parts[n:]) for n in ((0, 1) if parts[:1] == ["src"] else (0,))}
    return {name for name in names if name}


def matches(pattern: str, ask: ResourceTerms) -> bool:
    """Whether a glob of the archive reaches the resource; one that is malformed reaches nothing."""
    try:
        if ask.pattern:
            return globs.intersect(pattern, ask.path)
        meets = globs.reaches if ask.directory else globs.matches
        return meets(pattern, ask.path)
    except Refusal:
        return False


def _inside(pattern: str, path: str) -> bool:
    try:
        return globs.matches(pattern, path)
    except Refusal:
        return False


def tokens(text: str) -> list[str]:
    """The words of any text that full-text search can be asked for, quoted for FTS5."""
    terms: dict[str, None] = {}
    for token in _TOKEN.findall(text):
        if any(c.isalnum() for c in token):
            terms[f'"{token[:64]}"'] = None
        if len(terms) == _TOKENS_MAX:
            break
    return list(terms)
