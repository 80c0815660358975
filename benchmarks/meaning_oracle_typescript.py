"""Who breaks by a changed interface of TypeScript, by coord and by the compiler: `make
meaning-oracle-typescript`.

Packages that ship their sources are fetched with npm, with the compiler. In each some functions,
methods and constructors that have one declaration are given a first parameter that nothing fits
(`needed: never`), one at a time; the calls that the compiler refuses then, and did not before, are
the truth. A call is told by the line that it begins on; the compiler may mean any line of it.

Scored are calls: (a) found by both, (b) by coord alone, (c) by the compiler alone where the changed
name stands on the line. Not scored: what follows from another's type, functions handed on as
values. Told beside: what coord says of a change that only adds a parameter at the end that may be
left out.
"""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from tree_sitter import Node

from benchmarks.command_line import Seed
from coordinator.meaning.file_facts import facts_of
from coordinator.meaning.index import Index
from coordinator.meaning.judging import judge
from coordinator.regions.grammar import parse

#: (package, folder of its sources)
PACKAGES = (("rxjs", "src"), ("zod", "src"), ("@tanstack/query-core", "src"))
CONFIG = """{"compilerOptions": {"target": "es2022", "module": "esnext",
"moduleResolution": "bundler",
"lib": ["es2022", "dom"], "strict": true, "noEmit": true, "skipLibCheck": true, "types": [],
"allowImportingTsExtensions": true}, "include": ["**/*.ts"]}"""
_ERROR = re.compile(r"(.*?)\((\d+),\d+\): error (TS\d+): ")
#: Too few or too many arguments, arguments that do not fit.
_OF_CALLS = frozenset({"TS2554", "TS2555", "TS2556", "TS2345", "TS2769"})
_DEFINES = ("function_declaration", "method_definition")
KINDS = ("name", "self", "receiver")
Line = tuple[str, int]


def errors(folder: Path, compiler: Path) -> dict[Line, set[str]]:
    """What the compiler refuses: (path, line) -> codes."""
    said = subprocess.run([str(compiler), "-p", str(folder), "--pretty", "false"], cwd=folder,
                          capture_output=True, text=True, check=False).stdout
    found: dict[Line, set[str]] = {}
    for line in said.splitlines():
        if told := _ERROR.match(line):
            found.setdefault((told[1], int(told[2])), set()).add(told[3])
    return found


def nodes(node: Node, around: tuple[str, ...] = ()) -> Iterator[tuple[Node, tuple[str, ...]]]:
    """All nodes below one, with the kinds of those around each."""
    for one in node.named_children:
        yield one, around
        yield from nodes(one, (*around, one.type))


def callables(path: str, data: bytes) -> list[tuple[str, str, int, bool]]:
    """(path, name, where its parameters begin, whether it has any) of what is declared once."""
    found = []
    for node, around in nodes(parse(data, "typescript").root_node):
        name, params = node.child_by_field_name("name"), node.child_by_field_name("parameters")
        if (node.type in _DEFINES and name is not None and params is not None
                and not {*_DEFINES, "arrow_function"} & set(around)):
            first = params.named_children[:1]
            if not first or not (first[0].text or b"").startswith(b"this"):
                found.append((path, (name.text or b"").decode(), params.start_byte,
                              bool(params.named_child_count)))
    count = Counter(one[1] for one in found)
    heads = r"^\s*(?:(?:export|default|async|public|protected|private|static|abstract)\s+)*"

    def is_alone(name: str) -> bool:
        written = rf"{heads}(?:function\s+)?{re.escape(name)}\s*[<(]".encode()
        return name == "constructor" or len(re.findall(written, data, re.MULTILINE)) == 1

    return [one for one in found if count[one[1]] == 1 and is_alone(one[1])]


def ends(data: bytes) -> dict[int, int]:
    """The line that a call's callee ends on -> the last line of the call."""
    found: dict[int, int] = {}
    for node, _ in nodes(parse(data, "typescript").root_node):
        callee = node.child_by_field_name("function") or node.child_by_field_name("constructor")
        if callee is not None:
            line = callee.end_point.row + 1
            found[line] = max(found.get(line, 0), node.end_point.row + 1)
    return found


def kind_of(text: str, name: str) -> str:
    """How a line calls it."""
    if re.search(rf"(?:\bthis|\bsuper)\.{re.escape(name)}\b|\bsuper\(", text):
        return "self"
    return "receiver" if re.search(rf"\.{re.escape(name)}\b", text) else "name"


class Score:
    """What was found, by kind."""

    def __init__(self) -> None:
        self.both, self.ours, self.theirs = Counter[str](), Counter[str](), Counter[str]()
        self.alarms = self.changes = 0

    def tell(self, name: str) -> None:
        """A line of figures."""
        def ratio(kinds: tuple[str, ...]) -> str:
            found = sum(self.both[kind] for kind in kinds)
            missed = sum(self.theirs[kind] for kind in kinds)
            return f"{found}/{found + missed}" + (
                f" {found / (found + missed):.2f}" if found + missed else "")

        extra, found = sum(self.ours.values()), sum(self.both.values())
        precision = f"{found / (found + extra):.3f}" if found + extra else "-"
        print(f"{name:24} changes {self.changes:4}  recall {ratio(KINDS):14} "
              + "  ".join(f"{kind} {ratio((kind,)):12}" for kind in KINDS)
              + f"  precision {precision}  false alarms {self.alarms}")


def measured(package: str, folder: Path, compiler: Path, changes: int, seed: int,
             show: bool) -> Score:
    """One package's."""
    score, rng = Score(), random.Random(seed)
    files = {str(one.relative_to(folder)): one.read_bytes() for one in folder.rglob("*.ts")}
    index = Index(":memory:")
    for path, data in files.items():
        index.put(path, b"", facts_of(path, data))
    known = errors(folder, compiler)
    every = b"\n".join(files.values())
    chosen = [one for path, data in files.items() for one in callables(path, data)
              if len(re.findall(rf"\b{re.escape(one[1])}\b".encode(), every)) > 1]
    rng.shuffle(chosen)
    for path, name, at, has_some in chosen[:changes]:
        data = files[path]
        new = data[: at + 1] + b"needed: never" + (b", " if has_some else b"") + data[at + 1 :]
        closes = _closing(data, at)
        added = b", extra?: unknown" if has_some else b"extra?: unknown"
        more = data[:closes] + added + data[closes:]
        if data[at + 1 : closes].rstrip().endswith(b",") or b"..." in data[at:closes]:
            more = data
        score.alarms += len(judge(index, path, data, more).breaks)
        score.changes += 1
        ours = {(one.path, one.line) for one in judge(index, path, data, new).breaks
                if one.sure and one.kind not in ("override", "import")}
        (folder / path).write_bytes(new)
        try:
            now = errors(folder, compiler)
        finally:
            (folder / path).write_bytes(data)
        theirs = {where for where, codes in now.items()
                  if codes & _OF_CALLS - known.get(where, set())}
        _score(score, name, files, ours, theirs, show)
    return score


def _score(score: Score, name: str, files: dict[str, bytes], ours: set[Line], theirs: set[Line],
           show: bool) -> None:
    left = set(theirs)
    for path, line in sorted(ours):
        text = files[path].decode().splitlines()[line - 1]
        last = ends(files[path]).get(line, line)
        met = {(path, one) for one in range(line, last + 1)} & theirs
        left -= met
        (score.both if met else score.ours)[kind_of(text, name)] += 1
        if show and not met:
            print(f"  coord alone: {path}:{line}: {text.strip()[:100]}")
    for path, line in sorted(left):
        text = files.get(path, b"").decode().splitlines()[line - 1]
        called = r"\b(?:new\s+\w+|super)\b" if name == "constructor" else (
            rf"\b{re.escape(name)}\s*[<(]")
        if re.search(called, text):
            score.theirs[kind_of(text, name)] += 1
            if show:
                print(f"  compiler alone: {path}:{line}: {text.strip()[:100]}")


def _closing(data: bytes, at: int) -> int:
    depth = 0
    for place in range(at, len(data)):
        depth += {b"(": 1, b")": -1}.get(data[place : place + 1], 0)
        if not depth:
            return place
    return at + 1


def ask_compiler(
    changes: Annotated[int, typer.Option(help="Of each package.")] = 60,
    seed: Seed = 1,
    show: Annotated[bool, typer.Option("--show", help="Each place that one alone names.")] = False,
) -> None:
    """Who breaks by changed interfaces of TypeScript, by coord and by its compiler (npm)."""
    with tempfile.TemporaryDirectory() as made:
        place = Path(made)
        (place / "package.json").write_text('{"private": true}')
        subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund", "typescript",
                        *(name for name, _ in PACKAGES)], cwd=place, check=True)
        compiler = place / "node_modules/.bin/tsc"
        for package, sources in PACKAGES:
            folder = place / package.replace("/", "_")
            shutil.copytree(place / "node_modules" / package / sources, folder,
                            ignore=shutil.ignore_patterns("tests", "*.test.ts", "*.d.ts"))
            (folder / "tsconfig.json").write_text(CONFIG)
            measured(package, folder, compiler, changes, seed, show).tell(package)

