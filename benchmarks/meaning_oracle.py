"""What a change breaks, judged by `coordinator.meaning` and by mypy: `make meaning-oracle`.

Fetches pure-Python packages, changes one interface at a time (seeded), and asks both which places
break by it. mypy runs before and after each change, each time on a copy of the same cache, in a
process of its own. Lines stay where they are, so a place is (file, line). What kind a place is
follows from Python's own tree, not from what is judged here.

Not scored: lines that mypy does not analyse (another platform, `type: ignore`), and, after a name
is gone, uses in a file whose import of it mypy has reported already (it says nothing of them then).
"""

from __future__ import annotations

import ast
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.command_line import Seed, end
from benchmarks.releases import CACHE, Cache, download_wheel, unpack_wheel
from coordinator.meaning.index import Index
from coordinator.meaning.judging import judge
from coordinator.meaning.reading import read

TUNED = {"rich": "15.0.0", "click": "8.5.1", "httpx": "0.28.1"}
HELD_OUT = {"jinja2": "3.1.6", "packaging": "26.3", "websockets": "17.4", "urllib3": "2.8.0"}
BREAKING = (
    "remove parameter", "add required", "rename", "keyword-only", "remove default", "remove",
)
COMPATIBLE = ("add optional", "add optional by name", "give default", "body", "reorder by name",
              "rename local")
_OPTIONS = (
    "--no-site-packages", "--ignore-missing-imports", "--check-untyped-defs", "--config-file=",
    "--no-error-summary", "--show-error-codes", "--hide-error-context", "--no-pretty",
)
_LINE = re.compile(r"(.+?):(\d+): error: (.*?)  \[([\w-]+)\]$")
#: Codes of errors that stand where something is used; others are what follows from them elsewhere.
_DIRECT = frozenset({
    "call-arg", "attr-defined", "name-defined", "misc", "arg-type", "union-attr", "call-overload",
    "func-returns-value", "used-before-def",
})
#: Functions with these are not changed: mypy sees no signature behind the last one, and the others
#: are not called, or several at once.
_HIDDEN = ("overload", "setter", "property", "cache")
Error = tuple[str, int, str, str]
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Target:
    """A function that can be changed."""

    path: str
    owner: str
    node: Function = field(compare=False)

    @property
    def name(self) -> str:
        return self.node.name


@dataclass
class Counts:
    """What was found of one kind of edge."""

    right: int = 0
    missed: int = 0
    extra: int = 0

    def row(self) -> str:
        said = self.right + self.extra
        was = self.right + self.missed
        recall = f"{self.right / was:.3f}" if was else "-"
        precision = f"{self.right / said:.3f}" if said else "-"
        return (f"{self.right:5} of {was:5}  recall {recall:5}   extra {self.extra:4}  "
                f"precision {precision:5}")


class Package:
    """One package's files, its index, and mypy on it."""

    def __init__(self, root: Path, cache: Path) -> None:
        self.root, self.cache = root, cache
        self.text = {
            str(file.relative_to(root)): file.read_bytes() for file in sorted(root.rglob("*.py"))
        }
        self.trees = {path: ast.parse(data) for path, data in self.text.items()}
        self.index = Index(":memory:")
        for path, data in self.text.items():
            self.index.put(path, b"", read(data))
        shutil.rmtree(cache, ignore_errors=True)
        self.baseline = Counter((path, line, code) for path, line, _, code in
                                _errors(self._said(cache)))
        self._passed_over: dict[tuple[str, int], bool] = {}

    def new_errors(self, path: str, data: bytes) -> list[Error]:
        """The errors that this change of one file brings."""
        found = _errors(self._with(path, data))
        left = Counter(self.baseline)
        new: list[Error] = []
        for one in found:
            key = (one[0], one[1], one[3])
            if left[key]:
                left[key] -= 1
            else:
                new.append(one)
        return new

    def unseen_by_mypy(self, path: str, line: int) -> bool:
        """Whether mypy passes over this line: another platform's, or told to be ignored."""
        data = self.text[path]
        lines = data.decode("utf-8").split("\n")
        if "# type: ignore" in lines[line - 1]:
            return True
        statement = max(
            (one for one in ast.walk(self.trees[path]) if isinstance(one, ast.stmt)
             and one.lineno <= line <= (one.end_lineno or one.lineno)), key=lambda one: one.lineno)
        while isinstance(body := getattr(statement, "body", None), list):
            statement = body[0]
        at, column = statement.lineno - 1, statement.col_offset
        lines[at] = f"{lines[at][:column]}reveal_type(1); {lines[at][column:]}"
        notes = self._with(path, "\n".join(lines).encode())
        return f"{path}:{at + 1}: note: Revealed type" not in notes

    def passes_over(self, path: str, line: int) -> bool:
        """`unseen_by_mypy`, asked once for each place."""
        if (path, line) not in self._passed_over:
            self._passed_over[path, line] = self.unseen_by_mypy(path, line)
        return self._passed_over[path, line]

    def _with(self, path: str, data: bytes) -> str:
        """What mypy says with one file changed."""
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "cache"
            shutil.copytree(self.cache, copy)
            (self.root / path).write_bytes(data)
            try:
                return self._said(copy)
            finally:
                (self.root / path).write_bytes(self.text[path])

    def _said(self, cache: Path) -> str:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "mypy", "--cache-dir", str(cache), *_OPTIONS, "."],
            cwd=self.root, capture_output=True, text=True, check=False,
        )
        if done.returncode > 1:
            raise RuntimeError(done.stdout[-500:] + done.stderr[-500:])
        return done.stdout


def _errors(said: str) -> list[Error]:
    return [(found[1], int(found[2]), found[3], found[4])
            for line in said.splitlines() if (found := _LINE.match(line))]


@dataclass(frozen=True)
class Asked:
    """How many changes are made of each package, and how they are judged."""

    changes: int
    compatible: int
    seed: int
    show: bool
    control: bool


def ask_mypy(
    changes: Annotated[int, typer.Option(help="Changes that break, of each package.")] = 60,
    compatible: Annotated[int, typer.Option(help="Compatible changes of each.")] = 15,
    seed: Seed = 1,
    only: Annotated[str, typer.Option(help="One package.")] = "",
    cache: Cache = CACHE,
    show: Annotated[
        bool, typer.Option("--show", help="Each place that was missed or extra.")
    ] = False,
    control: Annotated[
        bool, typer.Option("--control",
                           help="Score a judge that reports each call of that name instead.")
    ] = False,
) -> None:
    """Who breaks by changed interfaces of Python, by coord and by mypy; 1 at a false alarm."""
    asked = Asked(changes, compatible, seed, show, control)
    alarms = 0
    with tempfile.TemporaryDirectory(prefix="meaning-oracle-") as folder:
        for title, packages in (("tuned on", TUNED), ("held out", HELD_OUT)):
            named = {name: version for name, version in packages.items() if only in ("", name)}
            alarms += _compare(title, named, asked, cache, Path(folder))
    end(good=not alarms)


def _compare(title: str, packages: dict[str, str], asked: Asked, cache: Path,
             folder: Path) -> int:
    """Print the counts of these packages, and of all together; how many alarms were false."""
    total: dict[str, Counts] = defaultdict(Counts)
    changes = alarms = 0
    for name, version in packages.items():
        package = Package(_unpack(folder, name, version, cache), folder / f"{name}.cache")
        counts, made, wrong = _run(package, asked)
        print(f"{name} {version}: {len(package.text)} files, "
              f"{sum(package.baseline.values())} errors before, {made} changes, {wrong} false "
              "alarms on compatible changes", flush=True)
        _print(counts)
        for kind, count in counts.items():
            total[kind].right += count.right
            total[kind].missed += count.missed
            total[kind].extra += count.extra
        alarms += wrong
        changes += made
    if changes:
        print(f"== {title}: {changes} changes")
        _print(total)
    return alarms


def _print(counts: dict[str, Counts]) -> None:
    direct = Counts()
    for kind in ("name", "self", "receiver"):
        direct.right += counts[kind].right
        direct.missed += counts[kind].missed
        direct.extra += counts[kind].extra
    for kind in ("name", "self", "receiver"):
        print(f"   {kind:22} {counts[kind].row()}")
    print(f"   {'all direct calls':22} {direct.row()}")
    for kind in sorted(set(counts) - {"name", "self", "receiver"}):
        print(f"   {kind:22} {counts[kind].row()}", flush=True)


def _unpack(folder: Path, name: str, version: str, cache: Path) -> Path:
    """The files of a release, without its stubs: mypy is to read what coord reads."""
    root = unpack_wheel(download_wheel(name, version, cache), folder / f"{name}-{version}")
    for metadata in root.glob("*.dist-info"):
        shutil.rmtree(metadata)
    for stub in root.rglob("*.pyi"):
        stub.unlink()
    return root


def _run(
    package: Package, asked: Asked,
) -> tuple[dict[str, Counts], int, int]:
    rng = random.Random(asked.seed)
    targets = _targets(package)
    counts: dict[str, Counts] = defaultdict(Counts)
    made = wrong = 0
    for number in range(asked.changes):
        kind = BREAKING[number % len(BREAKING)]
        found = _drawn(package, rng, targets, kind)
        if found is None:
            continue
        target, data = found
        made += 1
        _score(package, target, kind, data, counts, asked.show, asked.control)
    for number in range(asked.compatible):
        kind = COMPATIBLE[number % len(COMPATIBLE)]
        found = _drawn(package, rng, targets, kind)
        if found is None:
            continue
        target, data = found
        made += 1
        said = judge(package.index, target.path, package.text[target.path], data)
        if said.outcome != "ALLOW" or said.breaks:
            wrong += 1
            print(f"   FALSE ALARM {kind} {target.path}::{target.name}: {said.breaks[:1]}")
    return counts, made, wrong


def _drawn(
    package: Package, rng: random.Random, targets: list[Target], kind: str,
) -> tuple[Target, bytes] | None:
    for _ in range(200):
        target = rng.choice(targets)
        data = mutated(package.text[target.path], target.node, kind, rng)
        if data is not None and data != package.text[target.path]:
            return target, data
    return None


def _targets(package: Package) -> list[Target]:
    """Functions and methods that some other place has the name of."""
    mentioned: Counter[str] = Counter()
    for tree in package.trees.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                mentioned[_callee(node)] += 1
    found = []
    for path, tree in package.trees.items():
        for owner, node in _functions(tree):
            if node.name.startswith("__") and node.name != "__init__":
                continue
            marks = [ast.unparse(one) for one in node.decorator_list]
            if any(hidden in one for one in marks for hidden in _HIDDEN):
                continue
            name = owner.rpartition(".")[2] if node.name == "__init__" else node.name
            same = sum((other, one.name) == (owner, node.name) for other, one in _functions(tree))
            if mentioned[name] and same == 1:
                found.append(Target(path, owner, node))
    return found


def _functions(tree: ast.Module) -> Iterator[tuple[str, Function]]:
    for node in tree.body:
        if isinstance(node, Function):
            yield "", node
        elif isinstance(node, ast.ClassDef):
            for one in node.body:
                if isinstance(one, Function):
                    yield node.name, one


def _callee(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else (
        node.func.attr if isinstance(node.func, ast.Attribute) else "")


# Changing


def mutated(data: bytes, node: Function, kind: str, rng: random.Random) -> bytes | None:
    """The file with one function changed, no line moved; None where that kind is not possible."""
    lines = data.decode("utf-8").split("\n")
    if kind == "rename":
        if node.name == "__init__":
            return None
        return _put(lines, node, node.name, f"{node.name}_now")
    if kind == "remove":
        if node.name == "__init__":
            return None
        first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
        indent = " " * node.col_offset
        for at in range(first - 1, node.end_lineno or first):
            lines[at] = ""
        lines[first - 1] = f"{indent}pass"
        return "\n".join(lines).encode()
    if kind in ("body", "rename local"):
        last = node.body[-1]
        if last.lineno == node.lineno or not isinstance(last, ast.Return | ast.Expr | ast.Assign):
            return None
        local = "first_of_it" if kind == "body" else "local_of_it"
        line = lines[last.lineno - 1]
        lines[last.lineno - 1] = f"{line[:last.col_offset]}{local} = 0; {line[last.col_offset:]}"
        return "\n".join(lines).encode()
    args = ast.parse(ast.unparse(node)).body[0].args  # type: ignore[attr-defined]
    if not _change(args, kind, rng, _is_bound(node)):
        return None
    return _with_arguments(lines, node, ast.unparse(args))


def _is_bound(node: Function) -> bool:
    marks = {ast.unparse(one) for one in node.decorator_list}
    return node.col_offset > 0 and "staticmethod" not in marks


def _change(args: ast.arguments, kind: str, rng: random.Random, bound: bool) -> bool:
    own = [*args.posonlyargs, *args.args][1 if bound else 0:]
    match kind:
        case "remove parameter":
            able = [one for one in args.args if one in own]
            if not able:
                return False
            gone = rng.choice(able)
            at = args.args.index(gone)
            from_end = len(args.args) - at
            args.args.pop(at)
            if from_end <= len(args.defaults):
                args.defaults.pop(len(args.defaults) - from_end)
            return True
        case "add required":
            if args.defaults or args.vararg:
                args.kwonlyargs.append(ast.arg("needed_now"))
                args.kw_defaults.append(None)
            else:
                args.args.append(ast.arg("needed_now"))
            return True
        case "keyword-only":
            if args.vararg or not args.args or args.args[-1] not in own:
                return False
            gone = args.args.pop()
            default = args.defaults.pop() if args.defaults else None
            args.kwonlyargs.insert(0, gone)
            args.kw_defaults.insert(0, default)
            return True
        case "remove default":
            if args.defaults:
                args.defaults.pop(0)
                return True
            able_at = [at for at, one in enumerate(args.kw_defaults) if one is not None]
            if not able_at:
                return False
            args.kw_defaults[rng.choice(able_at)] = None
            return True
        case "add optional":
            args.args.append(ast.arg("maybe_now"))
            args.defaults.append(ast.Constant(None))
            return not args.vararg
        case "add optional by name":
            args.kwonlyargs.append(ast.arg("maybe_now"))
            args.kw_defaults.append(ast.Constant(None))
            return True
        case "give default":
            if not own or len(args.defaults) == len(own) or own[-1] not in args.args:
                return False
            args.defaults.insert(0, ast.Constant(None))
            return True
        case "reorder by name":
            if len(args.kwonlyargs) < 2:
                return False
            args.kwonlyargs.reverse()
            args.kw_defaults.reverse()
            return True
    return False


def _put(lines: list[str], node: Function, old: str, new: str) -> bytes | None:
    raw = lines[node.lineno - 1]
    at = raw.find(f"def {old}", node.col_offset)
    if at < 0:
        return None
    lines[node.lineno - 1] = raw[:at + 4] + new + raw[at + 4 + len(old):]
    return "\n".join(lines).encode()


def _with_arguments(lines: list[str], node: Function, text: str) -> bytes | None:
    """With other arguments, on as many lines."""
    first = node.lineno - 1
    begin = lines[first].find("(", lines[first].find("def ", node.col_offset))
    depth, quote = 0, ""
    for at in range(first, (node.body[0].lineno)):
        line = lines[at]
        column = begin if at == first else 0
        while column < len(line):
            sign = line[column]
            if quote:
                quote = "" if sign == quote else quote
            elif sign in "\"'":
                quote = sign
            elif sign == "#":
                break
            elif sign in "([{":
                depth += 1
            elif sign in ")]}":
                depth -= 1
                if not depth:
                    tail = line[column:]
                    head = lines[first][:begin + 1] + text
                    made = [head] + [""] * (at - first)
                    made[-1] += tail
                    lines[first:at + 1] = made
                    return "\n".join(lines).encode()
            column += 1
    return None


# Scoring


def _score(
    package: Package, target: Target, kind: str, data: bytes, counts: dict[str, Counts], show: bool,
    control: bool,
) -> None:
    errors = package.new_errors(target.path, data)
    before = package.text[target.path]
    said = judge(package.index, target.path, before, data)
    own = range(target.node.lineno, (target.node.end_lineno or target.node.lineno) + 1)
    names = _names(package, target)
    theirs: dict[tuple[str, int], str] = {}
    broken_imports: set[str] = set()
    for path, line, text, code in errors:
        place = _place(package, path, line, names, code)
        if path == target.path and line in own and _of_own_body(place, code, text, names):
            continue
        theirs[path, line] = place
        if place == "import":
            broken_imports.add(path)
        if place == "other" and show:
            print(f"   (other) {kind} {target.name}: {path}:{line} {code} {text[:90]}")
    mine: dict[tuple[str, int], str] = {}
    moved = {(one.path, one.line) for one in said.breaks if "and is '" in one.why}
    for one in said.breaks:
        mine.setdefault((one.path, one.line), one.kind)
    if control:
        mine, moved = _by_name(package, names), set()
    if kind == "remove":  # what stood in it is gone, too
        mine = {key: value for key, value in mine.items()
                if not (key[0] == target.path and key[1] in own)}
    for key, place in theirs.items():
        if place == "other":
            counts["(others by mypy)"].missed += key not in mine
            counts["(others by mypy)"].right += key in mine
            continue
        if key in mine:
            counts[place].right += 1
        else:
            counts[place].missed += 1
            if show:
                print(f"   MISSED {place} {_shown(package, target, kind, key)}")
    for key, my_kind in mine.items():
        if key in theirs:
            continue
        if key[0] in broken_imports:
            counts["(not scored: import)"].extra += 1
            continue
        if key in moved:
            counts["(not scored: moved)"].extra += 1
            continue
        if package.passes_over(*key):
            counts["(not scored: passed)"].extra += 1
            continue
        place = _place(package, *key, names, "")
        if place == "other":
            place = "override" if my_kind == "override" else "reference"
        counts[place].extra += 1
        if show:
            print(f"   EXTRA {place} {_shown(package, target, kind, key)}")


def _of_own_body(place: str, code: str, text: str, names: set[str]) -> bool:
    """Whether an error in what was changed is only that its body names a parameter that is gone."""
    if code in ("name-defined", "used-before-def"):
        return text.partition('"')[2].partition('"')[0] not in names
    return code == "misc" and place in ("other", "reference")


def _shown(package: Package, target: Target, kind: str, key: tuple[str, int]) -> str:
    text = package.text[key[0]].decode().split("\n")[key[1] - 1].strip()
    return f"[{kind}] {target.owner}.{target.name}: {key[0]}:{key[1]} {text[:90]}"


def _by_name(package: Package, names: set[str]) -> dict[tuple[str, int], str]:
    """The control: whatever calls something of these names."""
    return {
        (path, node.lineno): "control" for path, tree in package.trees.items()
        for node in ast.walk(tree) if isinstance(node, ast.Call) and _callee(node) in names
    }


def _names(package: Package, target: Target) -> set[str]:
    """Under which names what changed is called: its own, and of a constructor its class and those
    below it."""
    if target.name != "__init__":
        start = {target.name}
    else:
        start = {target.owner, "cls", "__init__"}
        grew = True
        while grew:
            grew = False
            for tree in package.trees.values():
                for node in ast.walk(tree):
                    if isinstance(node, ast.ClassDef) and node.name not in start and any(
                            ast.unparse(one).partition("[")[0].rpartition(".")[2] in start
                            for one in node.bases):
                        start.add(node.name)
                        grew = True
    for tree in package.trees.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                start |= {one.asname for one in node.names if one.asname and one.name in start}
    return start


def _place(package: Package, path: str, line: int, names: set[str], code: str) -> str:
    """What stands at a line, by Python's own tree."""
    best = "other"
    modules = {
        (one.asname or one.name).partition(".")[0]
        for node in ast.walk(package.trees[path])
        if isinstance(node, ast.Import | ast.ImportFrom) for one in node.names
        if isinstance(node, ast.Import) or (node.module is None)
    }
    if code == "override":
        return "override"
    if code and code not in _DIRECT:
        return "other"
    for node in ast.walk(package.trees[path]):
        if getattr(node, "lineno", 0) != line and not (
                isinstance(node, ast.ImportFrom) and node.lineno <= line <= (node.end_lineno or 0)):
            continue
        if isinstance(node, ast.Call) and _callee(node) in names:
            function = node.func
            if isinstance(function, ast.Name):
                return "name"
            assert isinstance(function, ast.Attribute)
            base = ast.unparse(function.value)
            if base in ("self", "cls") or base.startswith("super("):
                return "self"
            return "name" if base in modules else "receiver"
        if isinstance(node, ast.ImportFrom) and any(one.name in names for one in node.names):
            best = "import"
        elif isinstance(node, ast.Name | ast.Attribute) and best == "other":
            name = node.id if isinstance(node, ast.Name) else node.attr
            if name in names:
                best = "reference"
    return best

