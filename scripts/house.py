"""What the house measures, and holds: `make house` prints each figure beside its limit.

A limit is what the figure was when it was last lowered: it may fall, and then it is lowered here;
a change that raises a figure fails. The goals are those of the plan (`architecture.md`).
Generated modules that `make check` holds current are not counted.
"""

from __future__ import annotations

import ast
import json
import re
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "coordinator"
#: Made by `make docs` and `make client`, and checked by `make check`.
GENERATED = ("words/requests/table.py", "cli/command_table.py", "client/blocking/",
             "client/asynchronous/", "client/client.py", "client/connection.py", "client/held.py")
#: Names that say nothing of the thing that they stand for.
VAGUE = re.compile(r"\b(?:one|found|told|said|known|at|out|of)\b")
ROW_NAMES = {"row", "raw"}
#: Methods that give bare rows of a database, and functions that give on those that they are given.
READINGS = {"execute", "executemany", "fetchone", "fetchall", "rows", "row"}
KEEPING = {"list", "tuple", "iter", "next", "reversed", "sorted", "islice", "min", "max"}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
BRANCHES = (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.Assert,
            ast.match_case)
WORDS_IN_ARCHITECTURE = re.compile(r"\S+")


@dataclass(frozen=True)
class Figure:
    """One measure. `limit` is held now; `goal` is where the plan wants it."""

    name: str
    value: float
    limit: float
    goal: float

    @property
    def holds(self) -> bool:
        """Whether the figure is no worse than its limit."""
        return self.value <= self.limit


#: Figure -> (limit, goal).
LIMITS: dict[str, tuple[float, float]] = json.loads(
    (ROOT / "scripts" / "house_limits.json").read_text("utf-8"))


def list_sources() -> list[Path]:
    """All modules of the program that people write."""
    return sorted(path for path in PACKAGE.rglob("*.py") if path.stat().st_size
                  and not path.relative_to(PACKAGE).as_posix().startswith(GENERATED))


def measure_sources(sources: list[Path]) -> dict[str, float]:
    """Sizes, vague names, rows by position, long signatures."""
    lengths, signs, complexities, many, positions, vague, docstrings = [], 0, [], 0, 0, 0, 0
    for path in sources:
        text = path.read_text("utf-8")
        lengths.append(text.count("\n"))
        signs += len(text)
        tree = ast.parse(text)
        positions += count_rows_by_position(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                complexities.append(measure_complexity(node))
                many += count_parameters(node) > 7 and not is_command(node)
            if isinstance(node, DOCUMENTED) and (docstring := ast.get_docstring(node, clean=False)):
                docstrings += docstring.count("\n") + 1
        vague += sum(1 for name in list_names(tree) if VAGUE.fullmatch(name))
    return {
        "lines": sum(lengths), "modules": len(sources),
        "median lines of a module": statistics.median(lengths), "longest module": max(lengths),
        "signs in a line": round(signs / sum(lengths), 1),
        "lines that are no docstring, percent": round(100 - 100 * docstrings / sum(lengths), 1),
        "complexity over 10, percent": round(100 * sum(c > 10 for c in complexities)
                                             / len(complexities), 1),
        "complexity over 15": sum(c > 15 for c in complexities),
        "functions of more than 7 parameters": many,
        "rows by position": positions,
        "vague names in 1,000 lines": round(1000 * vague / sum(lengths), 1),
    }


def is_command(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether `@command` registers it: its parameters are the options that a person types."""
    return any(isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Name)
               and decorator.func.id == "command" for decorator in function.decorator_list)


def count_parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """How many a caller may give: `self` and `cls` are not among them."""
    arguments = function.args
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return len([name for name in names if name not in ("self", "cls")])


def count_rows_by_position(tree: ast.AST) -> int:
    """How often a row of a database is taken apart by the order of its columns: by a number, or by
    names for two columns or more, whatever the row is called and however deep it stands within
    other calls. A row that is given on whole to a shape has names from there on."""
    count = 0
    for function in split_functions(tree):
        rows = find_row_names(function)
        count += sum(is_row_by_position(node, rows) for node in function)
    return count


def split_functions(tree: ast.AST) -> list[list[ast.AST]]:
    """The nodes of each function, and those of the module outside of them: names are their own."""
    scopes: list[list[ast.AST]] = [[]]
    todo: list[tuple[ast.AST, list[ast.AST]]] = [(tree, scopes[0])]
    while todo:
        node, scope = todo.pop()
        scope.append(node)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            scope = []
            scopes.append(scope)
        todo += [(child, scope) for child in ast.iter_child_nodes(node)]
    return scopes


def find_row_names(function: list[ast.AST]) -> set[str]:
    """The names that stand for a row, or for rows, in a function."""
    rows = {node.arg for node in function if isinstance(node, ast.arg) and is_bare(node)}
    bindings = [binding for node in function for binding in list_bindings(node)]
    while more := {target.id for target, value in bindings
                   if isinstance(target, ast.Name) and is_reading(value, rows)} - rows:
        rows |= more
    return rows


def is_bare(argument: ast.arg) -> bool:
    """Whether a function is given a bare row, by its name or its type."""
    return (argument.arg in ROW_NAMES and not isinstance(argument.annotation, ast.Name)) or (
        argument.annotation is not None and "tuple[Any, ...]" in ast.unparse(argument.annotation))


def list_bindings(node: ast.AST) -> list[tuple[ast.expr, ast.expr]]:
    """What a node binds, and the expression that it is bound to or runs over."""
    match node:
        case ast.Assign(targets=[target], value=value) | ast.NamedExpr(target=target, value=value):
            return [(target, value)]
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            return [(target, value)]
        case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
            return [(target, value)]
    return []


def is_row_by_position(node: ast.AST, rows: set[str]) -> bool:
    """Whether a row is taken apart by the order of its columns here."""
    if isinstance(node, ast.Subscript):
        return is_number(node.slice) and is_reading(node.value, rows)
    return any(isinstance(part, ast.Tuple) and len(part.elts) > 1 and is_reading(value, rows)
               for target, value in list_bindings(node) for part in ast.walk(target))


def is_number(node: ast.expr) -> bool:
    """Whether an index is a number, or a slice."""
    return isinstance(node, ast.Slice) or (
        isinstance(node, ast.Constant) and isinstance(node.value, int))


def is_reading(node: ast.AST, rows: set[str]) -> bool:
    """Whether this expression is a row, or bare rows, of a statement."""
    match node:
        case ast.Name(id=name):
            return name in rows
        case ast.Call(func=ast.Attribute(attr=method)) if method in READINGS:
            return True
        case ast.Call(func=ast.Name(id=function), args=[argument, *_]) if function in KEEPING:
            return is_reading(argument, rows)
        case ast.BoolOp(values=values):
            return any(is_reading(value, rows) for value in values)
        case ast.Subscript(value=value) | ast.Await(value=value) | ast.NamedExpr(value=value):
            return is_reading(value, rows)
        case ast.ListComp(elt=element, generators=[ast.comprehension(target=target, iter=value)]):
            return ast.unparse(element) == ast.unparse(target) and is_reading(value, rows)
    return False


def list_names(tree: ast.AST) -> Iterator[str]:
    """Each name that is bound or used, and each attribute."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name.lstrip("_")


def measure_complexity(function: ast.AST) -> int:
    """How many ways lead through a function, and through what is defined in it: one, and one more
    for each branch, loop, handler, assertion, condition within an expression and `and` or `or`
    (ruff's C901 leaves the last two out)."""
    return 1 + sum(count_branches(node) for node in ast.walk(function))


def count_branches(node: ast.AST) -> int:
    """How many ways this node adds."""
    if isinstance(node, ast.BoolOp):
        return len(node.values) - 1
    if isinstance(node, ast.comprehension):
        return 1 + len(node.ifs)
    return int(isinstance(node, BRANCHES))


def measure_circles() -> dict[str, float]:
    """Import circles among modules and among rooms, imports for types alone left out."""
    graph = grimp.build_graph("coordinator", exclude_type_checking_imports=True, cache_dir=None)
    modules = {m: graph.find_modules_directly_imported_by(m) for m in graph.modules}
    rooms: dict[str, set[str]] = {}
    for module, imported in modules.items():
        room = find_room(module)
        rooms.setdefault(room, set()).update({find_room(name) for name in imported} - {room})
    return {"modules in import circles": count_in_circles(modules),
            "rooms in import circles": count_in_circles(rooms)}


def find_room(module: str) -> str:
    """The room of a module: a slice, or a folder of the program."""
    names = module.split(".")
    return ".".join(names[1:3] if names[1:2] == ["slices"] else names[1:2])


def count_in_circles(graph: dict[str, set[str]]) -> int:
    """How many nodes reach themselves."""
    def reaches_itself(start: str) -> bool:
        seen: set[str] = set()
        todo = list(graph.get(start, ()))
        while todo:
            node = todo.pop()
            if node == start:
                return True
            if node not in seen:
                seen.add(node)
                todo += graph.get(node, ())
        return False

    return sum(reaches_itself(node) for node in graph)


def measure_documents() -> dict[str, float]:
    """How long the document is that a newcomer reads first; how many settings there are."""
    text = (ROOT / "context_archive" / "architecture.md").read_text("utf-8")
    settings = (ROOT / "context_archive" / "settings.md").read_text("utf-8")
    return {"words in architecture.md": len(WORDS_IN_ARCHITECTURE.findall(text)),
            "settings": sum(line.startswith("| `") for line in settings.splitlines())}


def main() -> int:
    """Print the figures; 1 if one is worse than its limit."""
    measured = {**measure_sources(list_sources()), **measure_circles(), **measure_documents()}
    figures = [Figure(name, value, *LIMITS.get(name, (float("inf"), float("nan"))))
               for name, value in measured.items()]
    print(f"{'figure':40}{'now':>10}{'limit':>10}{'goal':>10}")
    for figure in figures:
        mark = "" if figure.holds else "   worse"
        print(f"{figure.name:40}{figure.value:>10,g}{figure.limit:>10,g}{figure.goal:>10,g}{mark}")
    worse = [figure.name for figure in figures if not figure.holds]
    if worse:
        print(f"Worse than the limit in scripts/house_limits.json: {', '.join(worse)}.",
              file=sys.stderr)
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
