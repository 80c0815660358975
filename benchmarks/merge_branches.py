"""Two lines of one package that people worked on side by side, merged: `make merge-branches`.

A package that goes on with an older release while the next one is made has, from one release on,
two lines: fixes of the older (often of both, at other places or in another way), and the newer. The
last release of each is merged here, from the one that they have in common, file by file: by git,
and by coord. Nobody has committed that merge, so the result is held against its three inputs, as in
`merge_history.py`: every line that a side added is there and none that a side took out, each as
often as both sides together make it, and it is Python still. Releases come from the package index.
"""

from __future__ import annotations

import ast
from collections import Counter
from typing import Annotated

import typer

from benchmarks.command_line import Verbose, end
from benchmarks.merge_corpus import fetched
from benchmarks.merge_history import lost
from benchmarks.releases import CACHE, Cache
from coordinator.merging.git_merge import GitFailed, GitMerge
from coordinator.merging.merge import merge
from coordinator.source.outlines import Outlines

#: (package, the release in common, the last of the older line, the newer line)
LINES = (
    ("django", "4.1", "4.1.13", "4.2"), ("django", "3.1", "3.1.14", "3.2"),
    ("werkzeug", "2.2.0", "2.2.3", "2.3.0"), ("flask", "2.2.0", "2.2.5", "2.3.0"),
    ("urllib3", "1.26.0", "1.26.20", "2.0.2"), ("pytest", "7.1.0", "7.1.3", "7.2.0"),
    ("sqlalchemy", "1.4.30", "1.4.54", "2.0.0"), ("celery", "5.1.0", "5.1.2", "5.2.0"),
    ("aiohttp", "3.8.0", "3.8.6", "3.9.0"), ("scrapy", "2.5.0", "2.5.1", "2.6.0"),
    ("redis", "4.3.1", "4.3.6", "4.4.0"), ("networkx", "2.8", "2.8.8", "3.0"),
    ("sphinx", "4.0.0", "4.0.3", "4.1.0"), ("neutron", "21.0.0", "21.2.0", "22.0.0"),
    ("cinder", "21.0.0", "21.3.2", "22.0.0"), ("nova", "26.0.0", "26.2.2", "27.0.0"),
    ("wagtail", "4.0", "4.0.4", "4.1"), ("tornado", "6.0.1", "6.0.4", "6.1"),
)


def merge_branches(
    cache: Cache = CACHE,
    only: Annotated[str, typer.Option(help="One package.")] = "",
    verbose: Verbose = False,
) -> None:
    """Merge the older and the newer line of real packages; 1 where a change is lost or doubled."""
    total: Counter[str] = Counter()
    with Outlines(60.0) as outlines, GitMerge() as git:
        for package, *releases in LINES:
            if only not in ("", package):
                continue
            try:
                versions = [fetched(package, release, cache) for release in releases]
            except Exception as bad:  # a release that is not there any more is no result
                print(f"{package} {releases[0]}: {bad}")
                continue
            count = Counter[str]()
            for path in sorted(versions[0].keys() & versions[1].keys() & versions[2].keys()):
                base, ours, theirs = (files[path].encode() for files in versions)
                if len({base, ours, theirs}) == 3:
                    _merge_file(f"{package} {path}", (base, ours, theirs), git, outlines, count,
                                verbose)
            _tell(f"{package} {' '.join(releases)}", count)
            total += count
    _tell("all", total)
    end(good=not total["wrong"])


def _merge_file(where: str, texts: tuple[bytes, bytes, bytes], git: GitMerge, outlines: Outlines,
                count: Counter[str], verbose: bool) -> None:
    base, ours, theirs = texts
    try:
        by_git = git(base, ours, theirs)
    except GitFailed:
        return
    done = merge(base, ours, theirs, git=by_git, lines=git,
                 read=lambda data: outlines.read(data, "python"))
    count["both"] += 1
    if not by_git.conflicts:
        count["clean"] += 1
        if done.by == "conflict":
            count["clean, then none"] += 1
            print(f"  {where}: clean to git; {'; '.join(done.notes)}"[:300])
        return
    count["conflicts"] += 1
    if done.by == "conflict":
        if verbose:
            told = [f"{one.name} ({one.why})" for one in done.conflicts]
            print(f"  {where}: {'; '.join([*told, *done.notes])}"[:300])
        return
    count["resolved"] += 1
    wrong = [one.decode("utf-8", "replace") for one in lost(base, ours, theirs, done.data)]
    try:
        ast.parse(done.data)
    except SyntaxError as bad:
        wrong.append(f"no Python: {bad}")
    if wrong:
        count["wrong"] += 1
        print(f"  {where}: LOST OR DOUBLED {wrong[:3]!r}")


def _tell(name: str, count: Counter[str]) -> None:
    share = f" {count['resolved'] / count['conflicts']:.2f}" if count["conflicts"] else ""
    print(f"{name:36} both changed {count['both']:4}  git clean {count['clean']:4} "
          f"(coord not: {count['clean, then none']})  git conflicts {count['conflicts']:4}  "
          f"resolved {count['resolved']:4}{share}  wrong {count['wrong']}", flush=True)
