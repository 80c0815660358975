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
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                complexities.append(measure_complexity(node))
                many += count_parameters(node) > 7
            if isinstance(node, DOCUMENTED) and (docstring := ast.get_docstring(node, clean=False)):
                docstrings += docstring.count("\n") + 1
            positions += is_row_by_position(node)
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


def count_parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """How many a caller may give: `self` and `cls` are not among them."""
    arguments = function.args
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return len([name for name in names if name not in ("self", "cls")])


def is_row_by_position(node: ast.AST) -> bool:
    """Whether a row of the database is taken apart by the order of its columns."""
    if isinstance(node, ast.Subscript):
        return (isinstance(node.value, ast.Name) and node.value.id in ROW_NAMES
                and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, int))
    if isinstance(node, ast.For | ast.comprehension):
        return isinstance(node.target, ast.Tuple) and is_reading(node.iter)
    if isinstance(node, ast.Assign):
        return isinstance(node.targets[0], ast.Tuple) and is_reading(node.value)
    return False


def is_reading(node: ast.AST) -> bool:
    """Whether this expression runs a named statement and takes its bare rows."""
    return (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("rows", "row"))


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
