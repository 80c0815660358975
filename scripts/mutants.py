"""`make mutants`: change one thing in the code that decides, and see whether a test notices.

mutmut makes the changes and runs the tests (what and with which: [tool.mutmut] in pyproject.toml).
Here is what it lacks: a seeded sample or a slice that is the same everywhere, a few kinds of change
that it does not know, a score for each module with a bound, and the list of changes that may go
unnoticed (context_archive/mutants.md), which is held against what is found.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import os
import re
import shutil
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import libcst as cst

ROOT = Path(__file__).resolve().parent.parent
ACCEPTED = ROOT / "context_archive" / "mutants.md"
#: Of a hundred changes that are not accepted, how many a test must notice.
BOUND = 90
#: How many are tried where nothing else is asked for.
SAMPLE = 120
KILLED, TIMED_OUT, SURVIVED = "killed", "timed out", "survived"
UNTESTED, BROKEN = "untested", "broken"


@dataclass(frozen=True, slots=True)
class Change:
    """One mutant. `name` is mutmut's, and moves with its module; the rest does not."""

    name: str
    module: str
    function: str
    old: tuple[str, ...]
    new: tuple[str, ...]

    @property
    def said(self) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
        """What the list of accepted changes calls it."""
        return self.function, self.old, self.new

    def place(self, seed: str) -> str:
        """Where it stands in the order of this seed."""
        number = self.name.rpartition("_")[2]
        return hashlib.sha256("\0".join(
            (seed, self.function, number, *self.old, "", *self.new)).encode()).hexdigest()

    def __str__(self) -> str:
        return "\n".join((f"### {self.function}", "```diff", *(f"- {line}" for line in self.old),
                          *(f"+ {line}" for line in self.new), "```"))


# ------------------------------------------------------------ kinds of change

def never(node: cst.If) -> Iterable[cst.If]:
    """A condition that never holds: the refusal, the early return that is not there."""
    yield _with_test(node, cst.And(), "False")


def always(node: cst.If) -> Iterable[cst.If]:
    yield _with_test(node, cst.Or(), "True")


def _with_test(node: cst.If, operator: cst.BaseBooleanOp, name: str) -> cst.If:
    test = node.test
    if isinstance(test, cst.NamedExpr) or not test.lpar:
        test = test.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return node.with_changes(
        test=cst.BooleanOperation(left=test, operator=operator, right=cst.Name(name)),
        whitespace_before_test=cst.SimpleWhitespace(" "))


def not_done(node: cst.Expr) -> Iterable[cst.Pass]:
    """A call whose answer nobody takes, left out."""
    if isinstance(node.value, cst.Call):
        yield cst.Pass()


OTHERS = {"max": "min", "min": "max", "any": "all", "all": "any"}


def the_other(node: cst.Call) -> Iterable[cst.Call]:
    if isinstance(node.func, cst.Name) and node.func.value in OTHERS:
        yield node.with_changes(func=cst.Name(OTHERS[node.func.value]))


# ------------------------------------------------------------ which there are

def generated() -> list[Change]:
    """Have mutmut write the mutated copy; all mutants of it."""
    import mutmut.__main__ as tool
    from mutmut.mutation.mutators import mutation_operators
    from mutmut.mutation.trampoline import set_mutant_under_test

    for kind, operator in ((cst.If, never), (cst.If, always), (cst.Expr, not_done),
                           (cst.Call, the_other)):
        if (kind, operator) not in mutation_operators:
            mutation_operators.append((kind, operator))  # type: ignore[attr-defined]
    set_mutant_under_test("mutant_generation")
    Path("mutants").mkdir(exist_ok=True)
    with tool.CatchOutput():
        tool.copy_src_dir()
        tool.copy_also_copy_files()
        tool.setup_source_paths()
        tool.create_mutants(_workers())
    return [change for path in tool.walk_mutatable_files() for change in _changes_of(path)
            if not _same_to_sqlite(change)]


def _same_to_sqlite(change: Change) -> bool:
    """Whether only the case of SQL differs: SQLite reads its own words, and names of tables and
    columns, in either."""
    old, new = "\n".join(change.old), "\n".join(change.new)
    return "execute" in old and old.casefold() == new.casefold()


def _changes_of(path: Path) -> list[Change]:
    from mutmut.mutation.data import MutantLineSpans, SourceFileMutationData
    from mutmut.utils.format_utils import parse_mutant_key

    data, spans = SourceFileMutationData(path=path), MutantLineSpans.load(path)
    data.load()
    lines = (Path("mutants") / path).read_text("utf-8").splitlines()

    def source(name: str) -> list[str]:
        assert spans is not None
        span = spans.span_by_function_name[name]
        return [line.replace(name, "f", 1) for line in lines[span.start - 1:span.end]]

    out = []
    for name in data.exit_code_by_key:
        short = name.rpartition(".")[2]
        mangled = short.partition("__mutmut_")[0]
        function, of = parse_mutant_key(mangled)
        old, new = _differing(source(f"{mangled}__mutmut_orig"), source(short))
        out.append(Change(name, str(path), f"{of}.{function}" if of else function, old, new))
    return out


def _differing(old: Sequence[str], new: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    left: list[str] = []
    right: list[str] = []
    for tag, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            left += [line.strip() for line in old[a:b] if line.strip()]
            right += [line.strip() for line in new[c:d] if line.strip()]
    return tuple(left), tuple(right)


def chosen(changes: Sequence[Change], asked: argparse.Namespace) -> list[Change]:
    """The sample or the slice; the same for everybody who asks with the same numbers."""
    ordered = sorted(changes, key=lambda change: change.place(asked.seed))
    if asked.only:
        ordered = [c for c in ordered if re.search(asked.only, f"{c.module}:{c.function}")]
    if asked.slice:
        which, of = (int(part) for part in asked.slice.split("/"))
        return ordered[which - 1::of]
    if asked.only and asked.sample is None:
        return ordered
    return ordered[:SAMPLE if asked.sample is None else asked.sample]


# ------------------------------------------------------------ what may survive

def accepted(text: str) -> dict[tuple[str, tuple[str, ...], tuple[str, ...]], str]:
    """The changes that the document lists, each with its reason."""
    out = {}
    for part in re.split(r"^### ", text, flags=re.M)[1:]:
        function, _, rest = part.partition("\n")
        said = re.split(r"^```diff\n(.*?)^```\n", re.split(r"^#", rest, flags=re.M)[0],
                        flags=re.M | re.S)
        blocks, reason = said[1::2], said[-1].strip()
        if not blocks or not reason:
            raise SystemExit(f"{ACCEPTED.name}: {function} has no change or no reason")
        for block in blocks:
            lines = block.splitlines()
            old = tuple(line[1:].strip() for line in lines if line.startswith("-"))
            new = tuple(line[1:].strip() for line in lines if line.startswith("+"))
            out[function.strip(), old, new] = reason
    return out


# ------------------------------------------------------------ running them

def outcomes(changes: Sequence[Change]) -> dict[Change, str]:
    """Run the tests on each; what came of it."""
    import mutmut.__main__ as tool
    from mutmut.mutation.data import SourceFileMutationData
    from mutmut.stats import status_by_exit_code

    # The whole suite has passed, unchanged, when it was noted which test reaches what.
    tool.tests_for_mutant_names = lambda names: {"tests/rules/test_small_rules.py"}
    tool._run(tuple(change.name for change in changes), _workers())
    codes: dict[str, int | None] = {}
    for path in {change.module for change in changes}:
        data = SourceFileMutationData(path=Path(path))
        data.load()
        codes.update(data.exit_code_by_key)
    words = {"killed": KILLED, "timeout": TIMED_OUT, "survived": SURVIVED, "no tests": UNTESTED}
    return {c: words.get(status_by_exit_code[codes[c.name]], BROKEN) for c in changes}


def _workers() -> int:
    return int(os.environ.get("WORKERS", min(2, os.cpu_count() or 1)))


def judge(came: dict[Change, str], everything: Sequence[Change], bound: float) -> list[str]:
    """Print the score; why the run fails."""
    allowed, bad = accepted(ACCEPTED.read_text("utf-8")), []
    known = {change.said for change in everything}
    bad += [f"{ACCEPTED.name} names a change of {function} that cannot be made any more: {new}"
            for function, _, new in allowed.keys() - {(f, o, n) for f, o, n in known}]
    by_module: dict[str, Counter[str]] = defaultdict(Counter)
    noticed = Counter[tuple[Any, ...]]()
    lived = Counter[tuple[Any, ...]]()
    for change, result in came.items():
        dead = result in (KILLED, TIMED_OUT)
        (noticed if dead else lived)[change.said] += 1
        by_module[change.module][
            "accepted" if not dead and change.said in allowed else result] += 1
    bad += [f"{ACCEPTED.name} accepts a change of {said[0]} that tests do notice: {said[2]}"
            for said in noticed if said in allowed and not lived[said]]
    heads = (KILLED, TIMED_OUT, SURVIVED, UNTESTED, BROKEN, "accepted")
    print(f"\n{'module':44}" + "".join(f"{head:>10}" for head in heads) + "     score")
    total = Counter[str]()
    for module, counts in sorted(by_module.items()):
        total += counts
        print(f"{module:44}" + "".join(f"{counts[h]:>10}" for h in heads) + _score(counts))
    print(f"{'all':44}" + "".join(f"{total[h]:>10}" for h in heads) + _score(total))
    for change, result in sorted(came.items(), key=lambda one: (one[0].module, one[0].place(""))):
        if result not in (KILLED, TIMED_OUT) and change.said not in allowed:
            print(f"\n{result}: {change.module} ({change.name})\n{change}")
    judged = sum(total.values()) - total["accepted"]
    if judged and 100 * (total[KILLED] + total[TIMED_OUT]) < bound * judged:
        bad.append(f"{_score(total).strip()} is below the bound of {bound:g}")
    return bad


def _score(counts: Counter[str]) -> str:
    judged = sum(counts.values()) - counts["accepted"]
    dead = counts[KILLED] + counts[TIMED_OUT]
    return f"{100 * dead / judged:>9.1f}%" if judged else "         -"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", default="1", help="which order (default: 1)")
    parser.add_argument("--sample", type=int, help=f"how many of it (default: {SAMPLE}; of --only: "
                        "all)")
    parser.add_argument("--slice", help="K/N: the K-th of N parts of all, in place of a sample")
    parser.add_argument("--only", help="of those only whose module:function matches")
    parser.add_argument("--bound", type=float, default=BOUND)
    parser.add_argument("--keep", action="store_true",
                        help="use the mutated copy of the last run: nothing was changed since")
    parser.add_argument("--list", action="store_true", help="say which, and run nothing")
    asked = parser.parse_args()
    os.chdir(ROOT)
    if not asked.keep:
        shutil.rmtree("mutants", ignore_errors=True)
    everything = generated()
    changes = chosen(everything, asked)
    print(f"{len(changes)} of {len(everything)} changes (seed {asked.seed})")
    if asked.list:
        print(*changes, sep="\n")
        return 0
    bad = judge(outcomes(changes), everything, asked.bound)
    for line in bad:
        print(f"\nmutants: {line}", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
