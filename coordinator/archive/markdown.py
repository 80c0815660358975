"""Reading Markdown as numbered sections, each tied to the code that it mentions.

The module decides how headings become section numbers, what front matter may contain, and which
code spans, links and bare paths count as a mention. It reads no file and does not check whether a
path exists. Text that cannot be understood becomes a `Remark`; no text raises an error.

A section is a heading and the text under it up to the next heading of any level. Excerpts must be
short, so a section never contains its subsections. The number of a section comes from its position.
A number that a person wrote into the heading wins, because other people quote it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

# The readers of Markdown and YAML are imported where they are used, because a coordinator without
# an archive, and every command, starts faster without them.
if TYPE_CHECKING:
    from markdown_it.token import Token

_NUMBERED = re.compile(r"§?([0-9]{1,3}(?:\.[0-9]{1,3})*)[.):]?\s+(\S.*)", re.DOTALL)
_FENCE = re.compile(r"(?:---|\.\.\.)[ \t]*")
_SPAN_TARGET = re.compile(r"[\w./*?\[\]{}@:<>+\-]{2,200}")
_BARE_PATH = re.compile(r"(?<![\w/:.])(?:\.{1,2}/)?[\w.\-]+(?:/[\w.\-*]+)+/?(?:::[\w.]+)?")
_LINE_SUFFIX = re.compile(r":[0-9]+(?:[-:][0-9]+)?$")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")


@dataclass(frozen=True, slots=True)
class Remark:
    """Something in a document that was skipped; `line` and `column` count from 1, 0 = the file."""

    source: str
    line: int
    column: int
    message: str

    def __str__(self) -> str:
        where = f"{self.source}:{self.line}:{self.column}" if self.line else self.source
        return f"{where}: {self.message}"


@dataclass(frozen=True, slots=True)
class Section:
    """One heading and its own text.

    `paths` are tied to it on purpose, by the author or the daemon: paths, directories, globs,
    regions or keys. `mentions` are the paths and symbols that its text names. `line` is that of the
    heading, from 1.
    """

    source: str
    number: str
    title: str
    level: int
    body: str
    line: int
    paths: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    mentions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """A whole file: its title, its sections in order, and its faults."""

    title: str
    sections: tuple[Section, ...]
    remarks: tuple[Remark, ...]


@dataclass(frozen=True, slots=True)
class _Heading:
    level: int
    title: str
    number: str  # as written by the author, or empty
    first: int  # line index of the heading
    after: int  # line index of the first line below it


def sections(text: str, source: str) -> list[Section]:
    """The sections of `text`; `source` is its repo-relative path, which links are relative to."""
    return list(document(text, source).sections)


def document(text: str, source: str) -> Document:
    """Read `text` whole. Total: any text gives a document, at worst one section and a remark."""
    from markdown_it import MarkdownIt

    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    matter, body_start, remarks = _front_matter(lines, source)
    lines = [*[""] * body_start, *lines[body_start:]]  # keeps line numbers those of the file
    tokens = MarkdownIt("commonmark").parse("\n".join(lines))
    headings = list(_headings(tokens))

    if _begins_with_title(headings):
        headings[0] = replace(headings[0], level=0, number="0")
    title = (matter.get("title", [""])[0] or (headings[0].title if headings else "")
             or posixpath.splitext(posixpath.basename(source))[0])

    if "".join(lines[:headings[0].first if headings else None]).strip():
        headings.insert(0, _Heading(0, title, "0", body_start, body_start))
    if not headings:
        return Document(title, (), tuple(remarks))
    ends = [h.first for h in headings[1:]] + [len(lines)]
    spans = list(zip(headings, ends, strict=True))
    mentions = _mentions_by_heading(tokens, spans, source)
    found_sections = [
        Section(
            source=source,
            number=number,
            title=head.title,
            level=head.level,
            body="\n".join(lines[head.after : end]).strip("\n").rstrip(),
            line=head.first + 1,
            paths=tuple(_normal(p) for p in matter.get("paths", [])),
            keywords=tuple(matter.get("keywords", [])),
            mentions=tuple(named),
        )
        for (head, end), number, named in zip(spans, _numbers(headings), mentions, strict=True)
    ]
    # A title alone, with no prose under it, says nothing that its sections do not say.
    kept = [s for s in found_sections if s.level or s.body or len(found_sections) == 1]
    return Document(title, tuple(kept), tuple(remarks))


def _begins_with_title(headings: Sequence[_Heading]) -> bool:
    """Whether the first heading is the whole document's: the only one of its level."""
    return (bool(headings) and headings[0].level == 1 and not headings[0].number
            and sum(heading.level == 1 for heading in headings) == 1)


def _numbers(headings: Iterable[_Heading]) -> list[str]:
    """A number for each heading: the author's own, otherwise the next free one under its parent."""
    open_: list[tuple[int, str]] = []  # headings that enclose the present one: level, number
    latest: dict[str, tuple[str, int]] = {}  # parent -> its last child's number, split at the end
    used: set[str] = set()
    result: list[str] = []
    for head in headings:
        if head.level == 0:
            result.append("0")
            continue
        while open_ and open_[-1][0] >= head.level:
            open_.pop()
        parent = open_[-1][1] if open_ else ""
        number = head.number
        if number:
            # Later siblings count from it: after "4.2" comes "4.3", wherever both are.
            above, _, final = number.rpartition(".")
            component = int(final)
        else:
            above, component = latest.get(parent, (parent, 0))
            component += 1
            while (number := f"{above}.{component}".lstrip(".")) in used:
                component += 1
        latest[parent] = (above, component)
        used.add(number)
        open_.append((head.level, number))
        result.append(number)
    return result


def _headings(tokens: list[Token]) -> Iterator[_Heading]:
    """Top-level headings; one inside a quotation or a list is part of that text."""
    for position, token in enumerate(tokens):
        if token.type == "heading_open" and token.level == 0 and token.map:
            pieces = tokens[position + 1].children or []
            text = "".join(
                " " if p.type in ("softbreak", "hardbreak") else p.content for p in pieces
            ).strip()
            match = _NUMBERED.fullmatch(text)
            number, title = (match[1], match[2]) if match else ("", text)
            yield _Heading(int(token.tag[1:]), title, number, token.map[0], token.map[1])


def _mentions_by_heading(
    tokens: list[Token], spans: list[tuple[_Heading, int]], source: str
) -> list[list[str]]:
    """The names in each heading and its text, each once, in order of appearance."""
    matches: list[dict[str, None]] = [{} for _ in spans]
    current = 0
    line = 0
    for token in tokens:
        line = token.map[0] if token.map else line
        while current < len(spans) - 1 and line >= spans[current][1]:
            current += 1
        if token.type == "inline":
            names = [n for piece in token.children or [] for n in _named_by(piece, source)]
        elif token.type in ("fence", "code_block"):
            names = [_normal(m) for m in _BARE_PATH.findall(token.content)]
        else:
            continue
        matches[current].update(dict.fromkeys(n for n in names if n))
    return [list(names) for names in matches]


def _named_by(piece: Token, source: str) -> Iterator[str]:
    if piece.type == "code_inline" and _SPAN_TARGET.fullmatch(piece.content.strip("()")):
        yield _normal(piece.content)
    elif piece.type == "link_open":
        target = unquote(str(piece.attrs.get("href", ""))).partition("#")[0].partition("?")[0]
        if target and not _SCHEME.match(target) and not target.startswith("//"):
            # Written relative to the document, or (as many do) to the repository's root.
            beside = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
            for name in (beside, posixpath.normpath(target)):
                if not name.startswith(".."):
                    yield _normal(name)
    elif piece.type == "text":
        yield from (_normal(m) for m in _BARE_PATH.findall(piece.content))


def _normal(name: str) -> str:
    """One spelling per target: no `./`, no leading or trailing slash, no `()`, no line number."""
    name = name.strip().removesuffix("()")
    if not name.startswith("key:"):
        name = _LINE_SUFFIX.sub("", name)
    while name.startswith("./"):
        name = name[2:]
    return name.rstrip(".,").strip("/")


def _front_matter(
    lines: list[str], source: str
) -> tuple[dict[str, list[str]], int, list[Remark]]:
    """The text between the two `---`; the index of the first line after it; remarks."""
    if not lines or lines[0].rstrip(" \t") != "---":
        return {}, 0, []
    end = next((n for n, line in enumerate(lines[1:], 1) if _FENCE.fullmatch(line)), None)
    if end is None:
        return {}, 0, [Remark(source, 1, 1, "front matter is opened by `---` but never closed")]
    raw = _parse_matter(lines[1:end], source)
    if isinstance(raw, Remark):
        return {}, end + 1, [raw]
    remarks: list[Remark] = []
    matter: dict[str, list[str]] = {}
    for name in ("title", "paths", "keywords"):
        values = _list_texts(raw.get(name, []))
        if values:
            matter[name] = values
        elif values is None:
            position = next((n for n, t in enumerate(lines[1:end], 2) if t.startswith(name)), 2)
            remarks.append(Remark(source, position, 1,
                                  f"front matter: `{name}` must be text or a list"))
    return matter, end + 1, remarks


def _list_texts(value: Any) -> list[str] | None:
    """The texts of a field of front matter, one or a list, without empty ones; None if it is
    neither."""
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(text, str) for text in values):
        return None
    return [text.strip() for text in values if text.strip()]


def _parse_matter(lines: list[str], source: str) -> dict[Any, Any] | Remark:
    """The values in front matter; or what is wrong with it."""
    import yaml

    try:
        # BaseLoader: every value stays text, so that no date or number can be malformed.
        raw: Any = yaml.load("\n".join(lines), Loader=yaml.BaseLoader)
    except yaml.MarkedYAMLError as e:
        mark = e.problem_mark or e.context_mark
        line, column = (mark.line + 2, mark.column + 1) if mark else (1, 1)
        return Remark(source, line, column, f"front matter: {e.problem}")
    except (yaml.YAMLError, ValueError, RecursionError) as e:
        reason = str(e).partition("\n")[0]
        return Remark(source, 2, 1, f"front matter: {reason}")
    if raw is None or raw == "":
        return {}
    if not isinstance(raw, dict):
        return Remark(source, 2, 1, "front matter: expected `name: value` lines")
    return raw
