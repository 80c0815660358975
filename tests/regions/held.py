"""What holds of every outline, and what Python's own parser finds in a file."""

from __future__ import annotations

import ast

from coordinator.regions.outline import Outline, digest
from coordinator.words.resource_names import parse, resource


def held(data: bytes, outline: Outline) -> None:
    """Partition, unique and lawful names, hashes: of whatever bytes."""
    spans = sorted(span for region in outline.regions for span in region.spans if span[0] < span[1])
    assert b"".join(data[start:end] for start, end in spans) == data
    at = 0
    for start, end in spans:
        assert start == at, "no byte is in two regions, and none in no region"
        at = end
    assert at == len(data) == outline.size
    names = outline.names()
    assert len(set(names)) == len(names)
    scopes = set()
    for region in outline.regions:
        assert region.hash == digest([data[a:b] for a, b in region.spans])
        assert all(region.start <= a <= b <= region.end for a, b in region.spans)
        if region.kind == "file":
            assert outline.regions == [region] and outline.note and not region.name
            continue
        kind, path, name = parse(f"dir/a b.py::{region.name}")
        assert (kind, path, name) == ("region", "dir/a b.py", region.name)
        scopes.add(resource(f"a.py::{region.name}", "region").scope)
    assert len(scopes) == len([r for r in outline.regions if r.name])


def definitions(data: bytes) -> set[tuple[str, int]]:
    """(name as the file writes it, line of `def` or `class`) of each that stands in a module or in
    a class of it, as Python's own parser tells."""
    found = set()

    def walk(body: list[ast.stmt], above: str) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found.add((above + node.name, node.lineno))
                if isinstance(node, ast.ClassDef):
                    walk(node.body, above + node.name + ".")

    walk(ast.parse(data).body, "")
    return found


def divided(outline: Outline) -> set[tuple[str, int]]:
    """The same of an outline, without the numbers of those with one name."""
    return {
        (".".join(part.partition("#")[0] for part in region.name.split(".")), region.line)
        for region in outline.regions if region.kind in ("function", "class", "method")
    }
