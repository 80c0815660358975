"""The one reader of source code: it parses a file's bytes once by their grammar.

It gives the outline, the facts for a merge (`reading`), and errors that no grammar reports. Meaning
takes its facts from it. Keeps nothing of any file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from tree_sitter import Node, Tree

from coordinator.regions import names
from coordinator.regions.grammar import Captures, load, match_regions, parse
from coordinator.regions.languages import languages
from coordinator.regions.outline import FILE_BYTES_MAX, Mark, MarkKind, Outline, divide, whole
from coordinator.regions.reading import Body, Piece, Reading

#: Files with more marks are not divided.
MARKS_MAX = 200_000
_KINDS: tuple[MarkKind, ...] = (
    "function", "method", "class", "namespace", "constants", "block", "key", "section",
)
#: The fields in which a grammar keeps a wrapped (decorated, exported, templated) definition.
_WRAPS = ("definition", "declaration", "value")
#: The fields in which a grammar keeps the name of a statement.
_NAMES = ("name", "left", "property", "pattern", "declarator", "type")
#: A longer name (bytes) is ignored.
NAME_BYTES_MAX = 200


class Parsed(NamedTuple):
    """A file's outline, and the tree and marks behind it; None and empty if it was not divided."""

    outline: Outline
    tree: Tree | None = None
    marks: Sequence[Mark] = ()


def outline(data: bytes, language: str | None, *, nested: bool = False) -> Outline:
    """Find the regions of these bytes anew. Any bytes give an answer.

    Args:
        language: a name of the table; None, or one that is not in it: one region of kind `file`.
        nested: also the definitions inside of functions.
    """
    return read(data, language, nested=nested).outline


def read(data: bytes, language: str | None, *, nested: bool = False) -> Parsed:
    """Find the regions of these bytes, and return the tree that they were made from, too."""
    if language not in languages():
        return Parsed(whole(data, None, "no language of the table"))
    assert language is not None
    if len(data) > FILE_BYTES_MAX:
        return Parsed(whole(data, language, f"larger than {FILE_BYTES_MAX:,} bytes"))
    try:
        load(language)
    except ImportError:
        return Parsed(whole(data, language, f"the grammar for {language} is not installed"))
    tree = parse(data, language)
    marks, leads = _find_marks(match_regions(tree.root_node, language))
    if len(marks) > MARKS_MAX:
        return Parsed(whole(data, language, f"more than {MARKS_MAX:,} definitions"))
    divided = divide(data, language, marks, leads, nested=nested, broken=tree.root_node.has_error)
    if sum(end - start for region in divided.regions for start, end in region.spans) != len(data):
        return Parsed(whole(data, language, "it could not be divided without gaps"))
    return Parsed(divided, tree, marks)


def _find_marks(
    matches: Sequence[tuple[int, Captures]],
) -> tuple[list[Mark], list[tuple[int, int]]]:
    """Return the query's marks, the widest for each name, and the definitions' leads: (start, end).
    """
    best: dict[tuple[int, ...], tuple[int, int, Mark]] = {}
    leads: list[tuple[int, int]] = []
    for pattern, captures in matches:
        if "lead" in captures:
            leads += [(node.start_byte, node.end_byte) for node in captures["lead"]]
            continue
        kind = next(kind for kind in _KINDS if kind in captures)
        node = captures[kind][0]
        start, end = node.start_byte, node.end_byte
        named = captures.get("name") or captures.get("path") or [node]
        key = tuple(node.start_byte for node in named) if kind != "block" else (start, end, -1)
        if len(named) > 1:
            key = tuple(sorted(key))
        kept = best.get(key)
        if kept is not None and (kept[0], -kept[1]) >= (end - start, -pattern):
            continue
        best[key] = (end - start, pattern, Mark(
            start, end, kind, _parts(captures, kind), key[0] if kind != "block" else start,
            partial(_around, node),
        ))
    return [mark for _, _, mark in best.values()], leads


def _parts(captures: dict[str, list[Node]], kind: MarkKind) -> list[str]:
    if kind == "block":
        return []
    scope = [names.part(node.text or b"") for node in captures.get("scope", ())]
    if "path" in captures:
        return scope + names.parts(captures["path"][0].text or b"")
    named = sorted(captures.get("name", ()), key=lambda node: node.start_byte)
    if len(named) == 1:
        return [*scope, names.part(named[0].text or b"")]
    return [*scope, names.part(b" ".join(node.text or b"" for node in named))]


def _around(node: Node) -> int:
    """Return the end of the innermost node that continues behind this one."""
    end = node.end_byte
    above = node.parent
    while above is not None and above.end_byte <= end:
        above = above.parent
    return above.end_byte if above is not None else end


def read_for_merge(data: bytes, language: str | None) -> Reading:
    """Read all facts that a merge needs of these bytes. Any bytes give an answer."""
    parsed = read(data, language)
    if parsed.tree is None or language is None:
        return Reading(parsed.outline)
    root = parsed.tree.root_node
    imports = frozenset(languages()[language].imports)
    pieces = [_piece(node, imports, -1) for node in root.named_children]
    bodies = []
    for mark in parsed.marks:
        if mark.kind not in ("class", "namespace", "function", "method"):
            continue
        node = root.descendant_for_byte_range(mark.start, mark.end)
        inner, body = _body(node) if node is not None else (None, None)
        if inner is None or body is None:
            continue
        bodies.append(Body(inner.start_byte, body.start_byte, mark.end))
        if mark.kind in ("class", "namespace"):
            pieces += [_piece(child, imports, body.start_byte)
                       for child in (*_list_comments(inner, body), *body.named_children)]
    names_of_python = None
    if language == "python":
        from coordinator.regions import python_names  # its import takes ms

        names_of_python = python_names.read(data)
    return Reading(
        parsed.outline, sum(1 for _ in _faults(root)) if root.has_error else 0, pieces, bodies,
        names_of_python,
    )


def find_errors(data: bytes, language: str | None) -> str:
    """Return an error of these bytes that the grammar misses; empty if none could be found."""
    if language != "python":
        return ""
    from coordinator.regions import python_names  # its import takes ms

    return python_names.find_errors(data)


def _body(node: Node) -> tuple[Node | None, Node | None]:
    """Return the definition with a body, and the body: of this node or of a node that it wraps."""
    inner: Node | None = node
    for _ in range(4):
        if inner is None:
            break
        body = inner.child_by_field_name("body")
        if body is not None:
            return inner, body
        wrapped = [inner.child_by_field_name(field) for field in _WRAPS]
        inner = next((node for node in wrapped if node is not None), None)
    return None, None


def _list_comments(inner: Node, body: Node) -> list[Node]:
    """Return the comments above a body's first statement. They may be outside the body's node."""
    return [node for node in inner.named_children
            if "comment" in node.type and node.end_byte <= body.start_byte]


def _piece(node: Node, imports: frozenset[str], within: int) -> Piece:
    kind = "statement"
    if node.type in imports:
        kind = "import"
    elif "comment" in node.type:
        kind = "comment"
    elif (node.type == "expression_statement" and node.named_child_count == 1
            and node.named_children[0].type == "string"):
        kind = "text"
    name = _name(node) if kind == "statement" else ""
    return Piece(node.start_byte, node.end_byte, kind, name, within)


def _name(node: Node) -> str:
    inner = node
    if node.type == "expression_statement" and node.named_child_count == 1:
        inner = node.named_children[0]
        if inner.type != "assignment":
            return ""
    for field in _NAMES:
        found_node = inner.child_by_field_name(field)
        if found_node is None:
            continue
        if "identifier" not in found_node.type:
            return ""
        raw = found_node.text or b""
        return names.part(raw) if len(raw) <= NAME_BYTES_MAX else ""
    return ""


def _faults(root: Node) -> Iterator[Node]:
    """Yield the nodes that are errors, or that the grammar has only supposed."""
    open_ = [root]
    while open_:
        node = open_.pop()
        if node.is_error or node.is_missing:
            yield node
        if node.has_error:
            open_ += node.children
