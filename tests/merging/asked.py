"""The act as tests ask it: one worker and one folder for git, for all of them."""

from __future__ import annotations

import atexit

from coordinator.merging.git_merge import GitMerge
from coordinator.merging.merge import merge
from coordinator.merging.model import Merged, Side
from tests.regions.asked import read

GIT = GitMerge(style="merge")
atexit.register(GIT.close)


def merged(base: bytes | str, ours: bytes | str, theirs: bytes | str, language: str = "python",
           sides: tuple[Side, Side] = (Side("ours"), Side("theirs"))) -> Merged:
    """git's merge first, then the regions, with the real git and the real worker."""
    texts = [one.encode() if isinstance(one, str) else one for one in (base, ours, theirs)]
    return merge(*texts, git=GIT(*texts), lines=GIT, read=lambda data: read(data, language), sides=sides)


def clean(base: str, ours: str, theirs: str, language: str = "python") -> str:
    """The result, which has no conflicts."""
    done = merged(base, ours, theirs, language)
    assert done.by != "conflict", (done.conflicts, done.notes, done.data.decode())
    return done.data.decode()


def by_regions(base: str, ours: str, theirs: str, language: str = "python") -> str:
    """The same, where git alone has conflicts or comes to something wrong."""
    done = merged(base, ours, theirs, language)
    assert done.by == "regions", (done.by, done.conflicts, done.notes, done.data.decode())
    return done.data.decode()


def conflict(base: str, ours: str, theirs: str, language: str = "python") -> Merged:
    """The outcome, which is a conflict with markers."""
    done = merged(base, ours, theirs, language)
    assert done.by == "conflict", done.data.decode()
    assert done.markers and b"<<<<<<< " in done.data and b">>>>>>> " in done.data
    return done
