"""What the merge by region makes of changes whose outcome is known: `make merge-corpus`.

Two releases of real packages are fetched. Each file that differs is dealt to two sides, region by
region: some of the changes from the old to the new release to one side, the others to the other.
Merged, the two must give the new release: its statements, functions, classes and members with their
contents, in any order that binds names before they are used and that leaves what is done when the
module is imported in its order. `git merge-file` gets the same three files.

Dealing and judging go by Python's own parser, so that they do not share the eyes of what they
judge. A new class, and all that has one name, goes to one side; what stands between two
definitions, too.

The one half of the packages was looked at while the merge was written (`tuned`), the other was not
(`held out`).
"""

from __future__ import annotations

import ast
import builtins
import random
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.command_line import Seed, Verbose, end
from benchmarks.releases import CACHE, Cache, download_wheel
from coordinator.cli.app import one_of
from coordinator.merging.git_merge import GitFailed, GitMerge
from coordinator.merging.merge import merge
from coordinator.merging.model import Merged
from coordinator.source.outlines import Outlines

TUNED = {
    "click": ("8.0.4", "8.1.7"), "rich": ("12.6.0", "13.7.1"), "httpx": ("0.23.3", "0.27.0"),
    "werkzeug": ("2.2.3", "3.0.3"), "jinja2": ("3.0.3", "3.1.4"), "flask": ("2.1.3", "3.0.3"),
    "requests": ("2.27.1", "2.32.3"), "attrs": ("21.4.0", "23.2.0"),
    "marshmallow": ("3.13.0", "3.21.3"), "starlette": ("0.20.4", "0.37.2"),
    "networkx": ("2.6.3", "3.2.1"),
    "pytest": ("7.0.1", "8.2.2"), "scrapy": ("2.6.1", "2.11.2"), "celery": ("5.2.7", "5.4.0"),
    "urllib3": ("1.26.9", "2.2.1"), "paramiko": ("2.10.4", "3.4.0"),
    "pylint": ("2.13.9", "3.2.3"), "mkdocs": ("1.3.0", "1.6.0"), "fastapi": ("0.75.0", "0.111.0"),
}
HELD_OUT = {
    "sphinx": ("5.0.2", "7.3.7"), "twisted": ("22.4.0", "24.3.0"), "dask": ("2022.6.0", "2024.5.0"),
    "tqdm": ("4.60.0", "4.66.4"), "markdown": ("3.3.7", "3.6"), "jsonschema": ("4.5.1", "4.22.0"),
    "pip": ("22.0.4", "24.0"), "nltk": ("3.6.7", "3.8.1"), "textual": ("0.20.1", "0.58.0"),
}
#: Files of more lines are passed over, and of each package at most so many files are taken.
LINES_MAX, FILES_MAX = 6000, 80


@dataclass
class Unit:
    """A statement with what stands right above it, or a class with its own."""

    key: str
    text: str
    members: list[Unit] = field(default_factory=list)
    head: str = ""

    def bare(self) -> str:
        """Its lines without blank ones, without the blanks at their ends, and without comments
        below it: these belong to nobody."""
        lines = _bare(self.text).split("\n")
        while lines and lines[-1].lstrip().startswith("#"):
            lines.pop()
        return "\n".join(lines)


def _bare(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.split("\n") if line.strip())


# --- what a file is made of --------------------------------------------------------------------

def units(source: str) -> tuple[str, list[Unit]]:
    """What stands before the first statement, and the statements."""
    lines = source.removesuffix("\n").split("\n")
    tree = ast.parse(source)
    return _of(tree.body, lines, 0, len(lines), deep=True)


def _of(
    body: list[ast.stmt], lines: list[str], first: int, last: int, *, deep: bool,
) -> tuple[str, list[Unit]]:
    starts: list[int] = []
    documented, floor = 0, first
    if ast.get_docstring(ast.Module(body, [])) is not None:  # it belongs to the head
        documented = floor = body[0].end_lineno or 0
        body = body[1:]
    for node in body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and starts and (
                isinstance(node.value.value, str)):
            starts.append(starts[-1])  # it tells of what stands before it
            floor = node.end_lineno or 0
            continue
        start = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))]) - 1
        while start > floor and lines[start - 1].strip().startswith("#"):
            start -= 1
        starts.append(start)
        floor = node.end_lineno or 0
    # Two statements on one line are one.
    nodes: list[ast.stmt] = []
    begins: list[int] = []
    for node, start in zip(body, starts, strict=True):
        if begins and start <= begins[-1]:
            continue
        if nodes and (nodes[-1].end_lineno or 0) - 1 >= start:
            continue
        nodes.append(node)
        begins.append(start)
    found = []
    for at, (node, start) in enumerate(zip(nodes, begins, strict=True)):
        end = begins[at + 1] if at + 1 < len(begins) else last
        text = "\n".join(lines[start:end]) + "\n"
        unit = Unit(_key(node), text)
        if deep and isinstance(node, ast.ClassDef) and node.body[0].lineno > node.lineno:
            unit.head, unit.members = _of(node.body, lines, start, end, deep=False)
            if unit.members and unit.members[0].text.strip() == "":
                unit.members = []
        found += _with_banners(unit, lines, (node.end_lineno or 0), end)
    head = Unit("", "".join(f"{line}\n" for line in lines[first:begins[0] if begins else last]))
    if documented:
        until = begins[0] if begins else last
        head, *banners = _with_banners(head, lines, documented, until)
        found[:0] = banners
    return head.text, found


def _with_banners(unit: Unit, lines: list[str], behind: int, end: int) -> list[Unit]:
    """A unit, and the comments apart from all statements below it: each block is one of its own."""
    rest = lines[behind:end]
    if unit.members or not any(line.strip().startswith("#") for line in rest):
        return [unit]
    at = next((n for n, line in enumerate(rest) if not line.strip()), len(rest))
    blocks: list[list[str]] = [[]]
    for n in range(at, len(rest)):
        if rest[n].strip() and not rest[n - 1].strip() and blocks[-1]:
            blocks.append([])
        blocks[-1].append(rest[n])
    if blocks and not any(line.strip() for line in blocks[0]):
        at += len(blocks.pop(0))
    if not blocks:
        return [unit]
    kept = unit.text.split("\n")[: -1 - (len(rest) - at)]
    unit.text = "\n".join(kept) + "\n"
    return [unit, *(Unit("", "\n".join(block) + "\n") for block in blocks)]


def _key(node: ast.stmt) -> str:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return node.name
    target: ast.expr | None = None
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target = node.targets[0]
    elif isinstance(node, ast.AnnAssign | ast.AugAssign):
        target = node.target
    return target.id if isinstance(target, ast.Name) else ""


# --- dealing -------------------------------------------------------------------------------------

@dataclass
class Change:
    """A change of a list of units that can be made by itself: these old ones to these new ones."""

    group: str


def dealt(
    old: list[Unit], new: list[Unit], sides: Sides, path: str, mover: int,
) -> tuple[list[Unit], list[Unit]]:
    """The two sides of a list of units."""
    mine = [unit.key or "\0" + unit.bare() for unit in old]
    other = [unit.key or "\0" + unit.bare() for unit in new]
    count_old, count_new = Counter(mine), Counter(other)
    match: dict[int, int] = {}
    for block in SequenceMatcher(None, mine, other, autojunk=False).get_matching_blocks():
        for n in range(block.size):
            match[block.a + n] = block.b + n
    place = {key: at for at, key in enumerate(other)}
    for at, key in enumerate(mine):
        if at not in match and count_old[key] == count_new[key] == 1:
            match[at] = place[key]
    back = {b: a for a, b in match.items()}
    moved = sorted(match.values()) != [match[a] for a in sorted(match)]

    def group(at: int, seq: list[Unit], partner: dict[int, int]) -> str:
        """What has one name goes to one side, and what stands between two definitions."""
        if seq[at].key:
            return f"{path}{seq[at].key}"
        before = at - 1
        while before >= 0 and before not in partner:
            before -= 1
        near = seq[before] if before >= 0 else None
        return f"{path}<after {(near.key or near.bare()) if near else 'the head'}>"

    out: list[list[Unit]] = []
    for side in (0, 1):
        made: list[tuple[int | None, int | None, Unit]] = []  # (old, new, unit)
        for at, unit in enumerate(old):
            if at not in match:
                if sides.of(group(at, old, match)) != side:
                    made.append((at, None, unit))
                continue
            made.append((at, match[at], _changed(unit, new[match[at]], sides, path, side, mover)))
        if moved and side == mover:
            common = iter(sorted((one for one in made if one[1] is not None),
                                 key=lambda one: one[1] or 0))
            made = [one if one[1] is None else next(common) for one in made]
        for at, unit in enumerate(new):
            if at in back or sides.of(group(at, new, back)) != side:
                continue
            index = 0
            places = {one[1]: n for n, one in enumerate(made)}
            for step in range(1, len(new)):
                if at - step in places:
                    index = places[at - step] + 1
                    break
                if at + step in places:
                    index = places[at + step]
                    break
            made.insert(index, (None, at, unit))
        out.append([unit for _, _, unit in made])
    return out[0], out[1]


def _changed(was: Unit, now: Unit, sides: Sides, path: str, side: int, mover: int) -> Unit:
    """A unit that is in both releases, as this side has it."""
    if was.text == now.text:
        return was
    if was.bare() == now.bare():
        return now if side == 0 else was
    if was.members and now.members:
        inner = f"{path}{was.key}."
        head = now.head if _bare(was.head) == _bare(now.head) or sides.of(
            inner + "<head>") == side else was.head
        both = dealt(was.members, now.members, sides, inner, mover)
        members = both[side]
        text = head + "".join(unit.text for unit in members)
        return Unit(was.key, text, members, head)
    return now if sides.of(f"{path}{was.key or was.bare()}") == side else was


class Sides:
    """Which group goes to which side: by a coin, or to the one and the other in turn."""

    def __init__(self, seed: int, *, turns: bool) -> None:
        self._random = random.Random(seed)
        self._turns = turns
        self._given: dict[str, int] = {}

    def of(self, group: str) -> int:
        """0 or 1, always the same for one group."""
        if group not in self._given:
            self._given[group] = (
                len(self._given) % 2 if self._turns else self._random.randrange(2))
        return self._given[group]


def deal(old: str, new: str, seed: int, *, turns: bool) -> tuple[str, str] | None:
    """Two sides of a file; None where it cannot be dealt."""
    sides = Sides(seed, turns=turns)
    head_old, list_old = units(old)
    head_new, list_new = units(new)
    mover = random.Random(seed + 1).randrange(2)
    for _ in range(2):  # the first round gives every group its side, in order
        ours, theirs = dealt(list_old, list_new, sides, "", mover)
    texts = []
    for side, made in enumerate((ours, theirs)):
        head = head_old
        if head_old != head_new and sides.of("<head>") == side:
            head = head_new
        texts.append(head + "".join(unit.text for unit in made))
    try:
        known = used_early(old) | used_early(new)
        if any(used_early(text) - known for text in texts):
            return None  # a side that cannot be imported is no work of anybody
    except SyntaxError:
        return None
    if any(has_its_own_order(made, list_old, list_new) for made in (ours, theirs)):
        return None  # nor is one whose statements stand as in neither release
    return (texts[0], texts[1]) if old not in texts and texts[0] != texts[1] else None


def has_its_own_order(side: list[Unit], old: list[Unit], new: list[Unit]) -> bool:
    """Whether two statements of a side whose order counts stand in an order of neither release."""
    places = [{text: at for at, text in enumerate(plain(one))} for one in (old, new)]
    texts = plain(side)
    for at, first in enumerate(texts):
        for second in texts[at + 1:]:
            known = [one[first] < one[second] for one in places if first in one and second in one]
            if known and not any(known):
                return True
    return False


def plain(of: list[Unit]) -> list[str]:
    """The statements that have no name, and whose order counts."""
    return [unit.bare() for unit in of if unit.key == "" and unit.bare() and _counts(unit)]


# --- judging -------------------------------------------------------------------------------------

def right(result: str, new: str) -> str:
    """Empty if the result has the new release's regions and contents; else what it has not."""
    try:
        made, wanted = units(result), units(new)
    except (SyntaxError, ValueError) as bad:
        return f"no Python: {bad}"
    if _code(made[0]) != _code(wanted[0]):
        return "the head"
    lines = [Counter(_bare(text).split("\n")) for text in (result, new)]
    if lines[0] != lines[1]:
        return f"lines: {list((lines[0] - lines[1]) + (lines[1] - lines[0]))[:2]}"
    said = _same(made[1], wanted[1], "")
    if said:
        return said
    early = used_early(result) - used_early(new)
    return f"used before bound: {sorted(early)[:3]}" if early else ""


def _code(head: str) -> str:
    return "\n".join(line for line in _bare(head).split("\n") if not line.lstrip().startswith("#"))


def _same(made: list[Unit], wanted: list[Unit], path: str) -> str:
    def content(unit: Unit) -> tuple[str, str]:
        return unit.key, "" if unit.members else unit.bare()

    made, wanted = ([unit for unit in of if unit.bare()] for of in (made, wanted))
    have, due = Counter(map(content, made)), Counter(map(content, wanted))
    if have != due:
        missing, extra = due - have, have - due
        return f"{path}: missing {list(missing)[:1]}, too many {list(extra)[:1]}"
    for key in ["", *(key for key, n in Counter(unit.key for unit in wanted).items() if n > 1)]:
        left = [unit.bare() for unit in made if unit.key == key and _counts(unit)]
        if left != [unit.bare() for unit in wanted if unit.key == key and _counts(unit)]:
            return f"{path}{key}: another order of statements"
    waiting: dict[str, list[Unit]] = {}
    for unit in wanted:
        if unit.members:
            waiting.setdefault(unit.key, []).append(unit)
    for unit in made:
        if unit.members:
            partner = waiting[unit.key].pop(0) if waiting.get(unit.key) else None
            if partner is None:
                return f"{path}{unit.key}: no such class"
            if _code(unit.head) != _code(partner.head):
                return f"{path}{unit.key}: its head"
            said = _same(unit.members, partner.members, f"{path}{unit.key}.")
            if said:
                return said
    return ""


def _counts(unit: Unit) -> bool:
    """Whether its order counts among those of its name: not that of imports and of comments."""
    text = unit.bare().lstrip()
    code = next((line for line in text.split("\n") if not line.lstrip().startswith("#")), "")
    return bool(code) and not code.startswith(("import ", "from "))


def used_early(source: str) -> set[str]:
    """Names that the module uses at its top before it binds them: a plain reading, not coord's."""
    tree = ast.parse(source)
    bound: set[str] = set(dir(builtins))
    early: set[str] = set()
    later = {name for node in tree.body for name in _binds(node)}
    for node in tree.body:
        for name in _reads(node):
            if name in later and name not in bound:
                early.add(name)
        bound |= _binds(node)
    return early


def _binds(node: ast.AST) -> set[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    found = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and not isinstance(inner.ctx, ast.Load):
            found.add(inner.id)
        elif isinstance(inner, ast.alias):
            found.add(inner.asname or inner.name.partition(".")[0])
        elif isinstance(inner, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            found.add(inner.name)
    return found


def _reads(node: ast.AST) -> Iterator[str]:
    """Names that are read when this is executed: nothing inside of functions."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        for part in (*node.decorator_list, *node.args.defaults, *node.args.kw_defaults):
            if part is not None:
                yield from _reads(part)
        return
    if isinstance(node, ast.Lambda):
        return
    if isinstance(node, ast.ClassDef):
        own: set[str] = set()
        for part in (*node.decorator_list, *node.bases, *(k.value for k in node.keywords)):
            yield from _reads(part)
        for statement in node.body:
            yield from (name for name in _reads(statement) if name not in own)
            own |= _binds(statement)
        return
    if isinstance(node, ast.If | ast.Try | ast.With | ast.For | ast.While):
        return  # branches: what is bound in them is not followed
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        yield node.id
    for child in ast.iter_child_nodes(node):
        if not isinstance(node, ast.AnnAssign) or child is not node.annotation:
            yield from _reads(child)


# --- the corpus ----------------------------------------------------------------------------------

def fetched(package: str, version: str, cache: Path) -> dict[str, str]:
    """The Python files of a release, by their paths."""
    files = {}
    with zipfile.ZipFile(download_wheel(package, version, cache)) as wheel:
        for name in sorted(wheel.namelist()):
            if name.endswith(".py"):
                text = wheel.read(name).decode("utf-8", "replace")
                if text.count("\n") <= LINES_MAX and "\r" not in text and "\f" not in text:
                    files[name] = text
    return files


def cases(
    packages: dict[str, tuple[str, str]], cache: Path, seed: int, *, turns: bool,
) -> Iterator[tuple[str, str, str, str, str]]:
    """(name, old, ours, theirs, new) of each file that can be dealt."""
    for package, (before, after) in packages.items():
        old, new = fetched(package, before, cache), fetched(package, after, cache)
        taken = 0
        for name in sorted(old.keys() & new.keys()):
            if taken == FILES_MAX or old[name] == new[name]:
                continue
            try:
                made = deal(old[name], new[name], seed, turns=turns)
            except (SyntaxError, ValueError):
                continue
            if made is not None and all(
                    head + "".join(u.text for u in of) == text + "\n" * (not text.endswith("\n"))
                    for text in (old[name], new[name]) for head, of in [units(text)]):
                taken += 1
                yield f"{package}:{name}", old[name], *made, new[name]


@dataclass
class Count:
    """What became of the cases."""

    cases: int = 0
    git_right: int = 0
    git_wrong: int = 0
    git_conflicts: int = 0
    resolved: int = 0
    wrong: int = 0
    worse: int = 0
    mended: int = 0
    caught: int = 0


def run(
    packages: dict[str, tuple[str, str]], cache: Path, seed: int, *, turns: bool, verbose: bool,
    keep: Path | None, outlines: Outlines, git: GitMerge,
) -> Count:
    """Merge all cases of these packages."""
    count = Count()
    for name, old, ours, theirs, new in cases(packages, cache, seed, turns=turns):
        raw = (old.encode(), ours.encode(), theirs.encode())
        try:
            by_git = git(*raw)
        except GitFailed:
            continue
        done: Merged = merge(*raw, git=by_git, lines=git,
                             read=lambda data: outlines.read(data, "python"))
        count.cases += 1
        said = right(done.data.decode("utf-8", "replace"), new) if done.by != "conflict" else ""
        verdict = ""
        if by_git.conflicts:
            count.git_conflicts += 1
            if done.by == "conflict":
                verdict = "conflict: " + "; ".join(
                    [f"{one.name} ({one.why})" for one in done.conflicts] + list(done.notes))
            elif said:
                count.wrong += 1
                verdict = f"WRONG: {said}"
            else:
                count.resolved += 1
        elif right(by_git.data.decode("utf-8", "replace"), new):
            count.git_wrong += 1
            if done.by == "regions" and not said:
                count.mended += 1
            elif done.by == "conflict":
                count.caught += 1
            verdict = f"git wrong ({right(by_git.data.decode('utf-8', 'replace'), new)}): {done.by}"
        else:
            count.git_right += 1
            if done.by == "conflict" or said:
                count.worse += 1
                verdict = f"WORSE: {done.by} {said} {done.notes}"
        if verdict and verbose:
            print(f"  {name}: {verdict}"[:400], flush=True)
        if verdict and keep is not None:
            place = keep / f"{name.replace('/', '_').replace(':', '-')}-{int(turns)}"
            place.mkdir(parents=True, exist_ok=True)
            for file, data in zip(("base", "ours", "theirs", "new", "git", "coord"), (
                    *raw, new.encode(), by_git.data, done.data), strict=True):
                (place / f"{file}.py").write_bytes(data)
    return count


def merge_corpus(
    cache: Cache = CACHE,
    seed: Seed = 1,
    only: Annotated[str, typer.Option(help="tuned, held-out, or one package.")] = "",
    keep: Annotated[
        Path | None, typer.Option(help="Keep the files of odd cases in this folder.")
    ] = None,
    verbose: Verbose = False,
) -> None:
    """Merge two releases of real packages, dealt to two sides, and judge what comes out."""
    warnings.simplefilter("ignore")
    print("| packages | dealt | cases | git right | git clean, wrong (mended, made a conflict) "
          "| git conflicts | resolved | | wrong | worse than git |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    failed = 0
    with Outlines(60.0) as outlines, GitMerge() as git:
        for half, packages in choose_packages(only).items():
            for turns in (False, True):
                count = run(packages, cache, seed, turns=turns, verbose=verbose, keep=keep,
                            outlines=outlines, git=git)
                failed += count.wrong + count.worse
                share = count.resolved / count.git_conflicts if count.git_conflicts else 1.0
                print(f"| {half} | {'in turns' if turns else 'by a coin'} | {count.cases} "
                      f"| {count.git_right} | {count.git_wrong} ({count.mended}, {count.caught}) "
                      f"| {count.git_conflicts} | {count.resolved} | {share:.3f} | {count.wrong} "
                      f"| {count.worse} |", flush=True)
    end(good=not failed)


def choose_packages(only: str) -> dict[str, dict[str, tuple[str, str]]]:
    """The halves of the corpus; of these one, or one package alone, where it is named.

    Raises:
        Refusal: INVALID: there is none of this name.
    """
    halves = {"tuned": TUNED, "held-out": HELD_OUT}
    if not only:
        return halves
    if only in halves:
        return {only: halves[only]}
    packages = TUNED | HELD_OUT
    name = one_of(only, packages, f"There is no package {only!r} in the corpus")
    return {name: {name: packages[name]}}
