"""Which region a line of a Python file belongs to, from Python's own tree.

Owns nothing of the rule: that is `coordinator.regions.outline`, and a test holds the two against
each other. It is here so that an index of many files need not parse each of them twice.
"""

from __future__ import annotations

import ast

from coordinator.regions import names

_BLOCKS = (ast.If, ast.Try, ast.TryStar, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith,
           ast.Match)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def regions_of(tree: ast.Module, data: bytes) -> list[tuple[int, int, str]]:
    """(first line, last line, name) of each region but `<header>`, outer before inner."""
    lines = data.split(b"\n")
    ids = names.Ids()
    result: list[tuple[int, int, str]] = []
    fused: tuple[str, int] | None = None
    for node in tree.body:
        first, last = node.lineno, node.end_lineno or node.lineno
        if isinstance(node, _DEFINITIONS):
            _define(node, (), ids, result)
        elif isinstance(node, _BLOCKS):
            start = b"\n".join(lines[first - 1:min(last, first + 30)])[node.col_offset:]
            end = len(b"\n".join(lines[first - 1:last])) - node.col_offset
            path = ids.take((ids.block(start[:min(1000, end)]),))
            result.append((first, last, ".".join(path)))
        elif (name := _assigned(node, lines)) is not None:
            part = names.part(name.encode())
            if fused is not None and fused[0] == part:
                result[fused[1]] = (result[fused[1]][0], last, result[fused[1]][2])
            else:
                result.append((first, last, ".".join(ids.take((part,)))))
            fused = (part, len(result) - 1)
            continue
        fused = None
    return result


def _define(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, above: tuple[str, ...],
    ids: names.Ids, matches: list[tuple[int, int, str]],
) -> None:
    path = ids.take((*above, names.part(node.name.encode())))
    first = min([node.lineno, *(other_node.lineno for other_node in node.decorator_list)])
    matches.append((first, node.end_lineno or node.lineno, ".".join(path)))
    if isinstance(node, ast.ClassDef):
        for member in _members(node.body):
            _define(member, path, ids, matches)


def _members(
    body: list[ast.stmt],
) -> list[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    """The definitions of a class, also those within its branches."""
    matches: list[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef] = []
    for node in body:
        if isinstance(node, _DEFINITIONS):
            matches.append(node)
            continue
        for field in ("body", "handlers", "orelse", "finalbody", "cases"):
            inner = getattr(node, field, None)
            for other_node in inner if isinstance(inner, list) else ():
                if isinstance(other_node, ast.ExceptHandler | ast.match_case):
                    matches += _members(other_node.body)
                elif isinstance(other_node, ast.stmt):
                    matches += _members([other_node])
    return sorted(matches, key=lambda item: (item.lineno, item.col_offset))


def _assigned(node: ast.stmt, lines: list[bytes]) -> str | None:
    target: ast.expr
    if isinstance(node, ast.Assign):
        target = node.targets[0]
    elif isinstance(node, ast.AnnAssign | ast.AugAssign):
        target = node.target
    else:
        return None
    if isinstance(target, ast.Tuple) and target.elts:
        if lines[target.lineno - 1][target.col_offset:target.col_offset + 1] == b"(":
            return None
        target = target.elts[0]
    return target.id if isinstance(target, ast.Name) else None
