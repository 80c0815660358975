"""`coord commit`: `git commit` beside others who are at work in the same tree."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Annotated

from coordinator.commands.signatures import Argument, command
from coordinator.words.refusals import Code, Refusal

#: How what stands before git in a session begins: it commits so by itself.
_STANDS_IN = b"#!/bin/sh\n# Stands in for git"


@command("commit", takes_all=True)
def commit(
    arguments: Annotated[
        list[str] | None, Argument("Options and files, as `git commit` takes them.")
    ] = None,
) -> int:
    """Commit your own files while others work in the same tree, with the repository's own hooks.

    Takes what `git commit` takes. The commit and its hooks see the files that others hold as they
    are in the last commit; others go on writing them meanwhile, and nothing of theirs is put aside.
    What hooks rewrite comes back to the committed files alone.
    """
    real = shutil.which("git")
    if real is None:
        raise Refusal(Code.INVALID, "git is not installed here, so nothing was committed.",
                      next="Install git.")
    words = [real, "commit", *(arguments or ())]
    sys.stdout.flush()
    with Path(real).open("rb") as program:
        stands_in = program.read(len(_STANDS_IN)) == _STANDS_IN
    if stands_in:
        os.execv(real, words)
    from coordinator.git_guard import turn

    return turn.commit(words)
