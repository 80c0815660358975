"""What the merge by region makes of merges that were really made: `make merge-history REPO=…`.

Goes through the merge commits of a git repository. Each file that both sides changed is merged
again, by `git merge-file` and by coord. Of those that git leaves in conflict it tells how many
coord resolves; of what it resolves, whether it has every line that a side added and none that a
side took out, each as often as both sides together make it, and whether it is, line for line, what
was committed. That may differ rightly: whoever merges often changes more than the merge. """

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from difflib import SequenceMatcher
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.command_line import Verbose, end
from coordinator.merging.git_merge import GitFailed, GitMerge
from coordinator.merging.merge import merge
from coordinator.regions.languages import language_of
from coordinator.regions.reading import Reading
from coordinator.source.outlines import Outlines


def asked(place: Path, *words: str) -> bytes:
    """What git prints; nothing where it says no."""
    return subprocess.run(["git", *words], cwd=place, capture_output=True, check=False).stdout


def merges(place: Path, most: int) -> Iterator[tuple[str, str, bytes, bytes, bytes, bytes]]:
    """(commit, path, base, ours, theirs, committed) of each file that both sides changed."""
    said = asked(place, "log", "--merges", "--all", f"--max-count={most}", "--format=%H %P")
    for line in said.decode().splitlines():
        commit, *parents = line.split()
        bases = asked(place, "merge-base", "--all", *parents).decode().split()
        if len(parents) != 2 or len(bases) != 1:
            continue
        changed = [
            set(asked(place, "diff", "--name-only", "--no-renames", "-z", bases[0], one)
                .split(b"\0")) for one in parents]
        for name in sorted(changed[0] & changed[1] - {b""}):
            path = name.decode("utf-8", "surrogateescape")
            texts = [asked(place, "cat-file", "blob", f"{one}:{path}")
                     for one in (bases[0], *parents, commit)]
            if all(texts) and len({texts[0], texts[1], texts[2]}) == 3:
                yield commit, path, texts[0], texts[1], texts[2], texts[3]


def lines(data: bytes) -> Counter[bytes]:
    """How often each line is there that is not blank, without white space around it."""
    return Counter(line.strip() for line in data.split(b"\n") if line.strip())


def lost(base: bytes, ours: bytes, theirs: bytes, made: bytes) -> list[bytes]:
    """Lines that a side added and that are not there, or that it took out and that still are; of
    what both did, once is enough. Imports are left out: they are merged as sets."""
    was, now = lines(base), lines(made)
    (more, less), (also, too) = changed(base, ours), changed(base, theirs)
    wrong = []
    for line in was | now | more | also:
        if b"import" in line or line.strip(b"(), ").decode("utf-8", "replace").isidentifier():
            continue
        least = was[line] - less[line] - too[line] + max(more[line], also[line])
        most = was[line] - max(less[line], too[line]) + more[line] + also[line]
        if not least <= now[line] <= most:
            wrong.append(line)
    return wrong


def changed(base: bytes, side: bytes) -> tuple[Counter[bytes], Counter[bytes]]:
    """How often a side put each line in, and took it out, without white space around it."""
    was, now = ([line.strip() for line in one.split(b"\n")] for one in (base, side))
    more, less = Counter[bytes](), Counter[bytes]()
    for what, a, b, c, d in SequenceMatcher(None, was, now, autojunk=False).get_opcodes():
        if what != "equal":
            less.update(line for line in was[a:b] if line)
            more.update(line for line in now[c:d] if line)
    return more, less


def merge_history(
    repositories: Annotated[list[Path], typer.Argument(help="Git repositories.")],
    most: Annotated[int, typer.Option(help="Merge commits of each.")] = 2000,
    verbose: Verbose = False,
) -> None:
    """Merge again what was merged in git repositories; 1 where a change is lost or doubled."""
    count: Counter[str] = Counter()
    with Outlines(60.0) as outlines, GitMerge() as git:
        for place in repositories:
            for commit, path, base, ours, theirs, committed in merges(place, most):
                where = f"{place.name} {commit[:8]} {path}"
                language = language_of(path, ours)
                with suppress(GitFailed):
                    if language is not None:
                        _merge_again(where, (base, ours, theirs, committed), git,
                                     partial(outlines.read, language=language), count, verbose)
    for name, number in count.items():
        print(f"{name}: {number}")
    end(good=not count["lost or doubled"])


def _merge_again(where: str, texts: tuple[bytes, bytes, bytes, bytes], git: GitMerge,
                 read: Callable[[bytes], Reading], count: Counter[str], verbose: bool) -> None:
    """Merge one file, and count what came of it.

    Raises:
        GitFailed: git does not merge this file.
    """
    base, ours, theirs, committed = texts
    by_git = git(base, ours, theirs)
    merged = merge(base, ours, theirs, git=by_git, lines=git, read=read)
    count["files that both sides changed"] += 1
    if not by_git.conflicts:
        count["git clean"] += 1
        if merged.by == "conflict":
            count["git clean, coord not"] += 1
            print(f"  {where}: clean to git; {'; '.join(merged.notes)}")
        return
    count["git conflicts"] += 1
    if merged.by == "conflict":
        if verbose:
            conflicts = [f"{conflict.name} ({conflict.why})" for conflict in merged.conflicts]
            print(f"  {where}: {'; '.join([*conflicts, *merged.notes])}"[:300])
        return
    count["resolved"] += 1
    count["resolved as committed"] += lines(merged.data) == lines(committed)
    wrong = lost(base, ours, theirs, merged.data)
    if wrong:
        count["lost or doubled"] += 1
        print(f"  {where}: LOST OR DOUBLED {wrong[:3]!r}")
