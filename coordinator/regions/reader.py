"""Reading a file for a merge: its outline, and by the same grammar what `reading` lists.

Loads grammars, so it runs in `worker` (and in tests). Keeps nothing of any file.
"""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from coordinator.regions import grammar, names, python_names
from coordinator.regions.languages import languages
from coordinator.regions.reading import Body, Piece, Reading

#: Where a grammar keeps what a node wraps: a decorated, exported or templated definition.
_WRAPS = ("definition", "declaration", "value")
#: Where it keeps the name of a statement.
_NAMES = ("name", "left", "property", "pattern", "declarator", "type")
#: A name of more bytes is none.
NAME_BYTES_MAX = 200


def read(data: bytes, language: str | None) -> Reading:
    """All that a merge asks of these bytes. Whatever they are, there is an answer."""
    reading = grammar.read(data, language)
    if reading.tree is None or language is None:
        return Reading(reading.outline)
    root = reading.tree.root_node
    imports = frozenset(languages()[language].imports)
    pieces = [_piece(node, imports, -1) for node in root.named_children]
    bodies = []
    for mark in reading.marks:
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
    return Reading(
        reading.outline, sum(1 for _ in _faults(root)) if root.has_error else 0, pieces, bodies,
        python_names.read(data) if language == "python" else None,
    )


def _body(node: Node) -> tuple[Node | None, Node | None]:
    """The definition that has a body, and the body: of this node or of what it wraps."""
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
    """Comments above the first statement of a body, which may stand outside of it."""
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
    """The nodes that are errors, or that the grammar has only supposed."""
    open_ = [root]
    while open_:
        node = open_.pop()
        if node.is_error or node.is_missing:
            yield node
        if node.has_error:
            open_ += node.children
