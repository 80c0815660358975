"""The heads of definitions, and other small readings of Python's tree. Pure."""

from __future__ import annotations

import ast
from collections.abc import Callable

from coordinator.meaning.expressions import annotation, encodable
from coordinator.meaning.facts import Param, ParamKind

Text = Callable[[ast.AST], str]


def parameters(args: ast.arguments) -> list[Param]:
    """Return the parameters of a function, in the order in which they are written."""
    params: list[Param] = []
    placed = [*args.posonlyargs, *args.args]
    needed = len(placed) - len(args.defaults)
    for place, node in enumerate(placed):
        kind: ParamKind = "/" if place < len(args.posonlyargs) else ""
        params.append(Param(node.arg, kind, place < needed, annotation(node.annotation)))
    if args.vararg is not None:
        params.append(Param(args.vararg.arg, "*", False, annotation(args.vararg.annotation)))
    for node, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        params.append(Param(node.arg, "=", default is None, annotation(node.annotation)))
    if args.kwarg is not None:
        params.append(Param(args.kwarg.arg, "**", False, annotation(args.kwarg.annotation)))
    return params


def all_annotations(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.expr]:
    args = node.args
    every = [*args.posonlyargs, *args.args, args.vararg, *args.kwonlyargs, args.kwarg]
    nodes = [node.annotation for node in every if node is not None]
    return [other_node for other_node in [*nodes, node.returns] if other_node is not None]


def decorator(text: Text, node: ast.expr) -> str:
    """Write a class's decorator, with the options that its constructor depends on."""
    said = text(node)
    if isinstance(node, ast.Call):
        said += "".join(
            f" {keyword.arg}" for keyword in node.keywords
            if keyword.arg in ("kw_only", "auto_attribs")
            and isinstance(keyword.value, ast.Constant)
            and keyword.value.value is True
        ) + "".join(
            " no_init" for keyword in node.keywords if keyword.arg == "init"
            and isinstance(keyword.value, ast.Constant) and keyword.value.value is False
        )
    return said


def base(text: Text, node: ast.expr) -> str:
    """Write a base class. A base with arguments (`Box[int]`) is written as an annotation."""
    if isinstance(node, ast.Subscript):
        return annotation(node) or text(node.value)
    return text(node)


def field_default(node: ast.expr, text: Text) -> str:
    """Write the default of a class's field, with the options that its constructor depends on."""
    if isinstance(node, ast.Call):
        fields = {keyword.arg: keyword.value for keyword in node.keywords}
        names = ("default", "factory", "default_factory")
        marks: list[str] = [name for name in names if name in fields]
        for option in ("init", "kw_only"):
            value = fields.get(option)
            if isinstance(value, ast.Constant):
                marks.append(f"{option}={value.value!r}")
        return " ".join([text(node), *marks])
    return text(node)


def classes(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.Tuple):
        return [inner for elt in node.elts for inner in classes(elt)]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return [*classes(node.left), *classes(node.right)]
    return [node]


def texts(node: ast.expr) -> list[str] | None:
    if not isinstance(node, ast.List | ast.Tuple):
        return None
    return [encodable(elt.value) for elt in node.elts
            if isinstance(elt, ast.Constant) and isinstance(elt.value, str)]


def prefix(node: ast.expr) -> str:
    """Return the literal beginning of a computed name."""
    if isinstance(node, ast.JoinedStr) and node.values:
        node = node.values[0]
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mod):
        node = node.left
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return encodable(node.value).partition("%")[0].partition("{")[0]
    return ""
