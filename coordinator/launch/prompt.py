"""The prompt of a task: the work, what the agent holds, what explains it, the rules.

The module is pure: a claim goes in, Markdown comes out.
"""

from __future__ import annotations

from dataclasses import dataclass

from coordinator.rules.landing import Change, covers
from coordinator.words import requests as rq
from coordinator.words.refusals import Code
from coordinator.words.resource_names import KINDS, path_scope, resource
from coordinator.words.texts import block, fenced, harmless, one_line, quoted

#: A diff of partial work longer than this (characters) is cut; the whole is in the review.
DIFF_CHARS_MAX = 60_000
#: The outcome of work that a command fails on.
VERIFY_FAILED = Code.VERIFY_FAILED.value

RULES = """\
Other agents work in this repository at the same time; `coord` keeps you out of each other's way.

- Write only what is leased to you (above). Before you write anything else, ask for it:
  `coord lock PATH --task {task}`. Exit code 3 means that another agent holds it: do what the answer
  says, and do not write it.
- Read a file afresh before you change it.
- Do not switch branches, stash, reset, clean, or commit everything (`git add -A`).
- If you cannot go on because another agent holds what you need:
  `coord task fail {task} --blocked PATH`, and stop. It is offered again when that is free;
  what you changed before, a person looks at first.
- If you are told that agents wait for each other and it is you who give way, do what it says, and
  stop: your work is kept. If another gives way, keep yours, and try again later.
- When the work is finished, just end with exit code 0: your leases are released then.
"""


HOOKED_RULES = """\
Other agents work in this repository at the same time; `coord` keeps you out of each other's way.

- What is listed above is yours. Before you write anything else a lease on it is taken for you. If a
  write is refused, another agent has that file: do not work around it. Go on with what you can do,
  and try again later; read a file afresh when you are told that it changed.
- Do not switch branches, stash, reset, clean, or commit everything (`git add -A`).
- If you cannot go on because another agent holds what you need:
  `coord task fail {task} --blocked PATH`, and stop. It is offered again when that is free;
  what you changed before, a person looks at first.
- If you are told that agents wait for each other and it is you who give way, do what it says, and
  stop: your work is kept. If another gives way, keep yours, and try again later.
- When the work is finished, say in one sentence what you did, and end.
"""


#: The rules for a lease on a region, in the one working tree: by whether the agent's hooks ask
#: first.
REGION_RULES = {
    False: """\
- Of a file with `::` you hold a part. While another agent holds another part of it, the file itself
  is read-only for your programs. `coord commit-region FILE::NAME < NEW_TEXT` writes your part, with
  its whole new text from the standard input; `coord regions FILE` lists the parts.
""",
    True: """\
- Of a file with `::` you hold a part. Change it with your edit tool: while another agent holds
  another part of that file, it is read-only for shell commands. `coord commit-region FILE::NAME`
  writes your part, too, with its whole new text from the standard input.
""",
}


ISOLATED_RULES = """\
Other agents work in this repository at the same time; `coord` keeps you out of each other's way.

- You work in a git worktree of your own, on the branch `{branch}`, which begins at the newest
  commit of `{target}`. Stay on that branch. Commit there as you like; what you leave uncommitted is
  committed for you.
- When you end with exit code 0, your work lands on `{target}`: all of it, or nothing. It lands only
  if every path that you changed, made or deleted is leased to you (above). Before you write
  anything else, ask for it: `coord lock PATH --task {task}`. Exit code 3 means that another agent
  holds it: do what the answer says, and do not write it.
- A file that you lease on the way may be newer on `{target}` than here, and what you write has to
  be based on that: commit, then `git merge {target}`, before you read it.
- Leave nothing behind that does not belong to the work: remove scratch files.
- If you cannot go on because another agent holds what you need:
  `coord task fail {task} --blocked PATH`, and stop. It is offered again when that is free;
  what you changed before, a person looks at first.
- If you are told that agents wait for each other and it is you who give way, do what it says, and
  stop: your work is kept. If another gives way, keep yours, and try again later.
- Do not run `coord task done`: just end.
"""


@dataclass(frozen=True, slots=True)
class Isolated:
    """The facts for an agent in a worktree of its own: its branch, and where its work lands."""

    branch: str
    target: str


def compose(claimed: rq.Claimed, agent: str, log_tail: str = "",
            isolated: Isolated | None = None, *, hooked: bool = False) -> str:
    """The whole prompt for one attempt; `log_tail`: the last output of the one before it; `hooked`:
    the agent's own hooks ask before it writes."""
    task = claimed.task
    parts = [f"# {task.task}: {one_line(task.title)}\n"]
    if task.prompt.strip():
        parts.append(task.prompt.strip() + "\n")
    parts.append("## What is leased to you\n")
    parts += [f"- `{lease.resource}` ({lease.mode})" for lease in claimed.leases] or [
        "Nothing yet: this task names no files. Lease what you are about to write."]
    parts += _list_variables(claimed)
    parts.append(f"\nYou are `{agent}`. The leases end when you fall silent.\n")
    parts += [f"Note: {warning}\n" for warning in claimed.warnings]
    if claimed.partial is not None:
        parts.append(_partial(claimed, claimed.partial, isolated is not None))
    parts += _found_wanting(claimed.tried)
    unwritten = [candidate for candidate in claimed.tried if not _is_finished(candidate)]
    parts += [_tried(unwritten)] if unwritten else []
    if log_tail.strip():
        parts.append("## How the last attempt ended\n\nIts last output:\n\n"
                     + fenced(log_tail.strip()) + "\n")
    parts += _quote_archive(claimed)
    parts.append("## Rules\n\n" + _choose_rules(claimed, isolated, hooked))
    return harmless("\n".join(parts))


def _list_variables(claimed: rq.Claimed) -> list[str]:
    lines = [f"- `{name}={text}`" for name, text in claimed.environment.items()]
    return ["\nIn your environment, for you alone:\n", *lines] if lines else []


def _quote_archive(claimed: rq.Claimed) -> list[str]:
    quotes = [f"{quote['section']} {quoted(quote['title'])} ({quote['source']}):\n\n"
              f"{block(quote['text'])}\n" for quote in claimed.excerpts]
    return ["## From the context archive\n", *quotes] if quotes else []


def _choose_rules(claimed: rq.Claimed, isolated: Isolated | None, hooked: bool) -> str:
    name = claimed.task.task
    if isolated is not None:
        return ISOLATED_RULES.format(task=name, branch=isolated.branch, target=isolated.target)
    rules = HOOKED_RULES if hooked else RULES
    if any(lease.kind == "region" for lease in claimed.leases):
        rules += REGION_RULES[hooked]
    return rules.format(task=name)


def _is_finished(candidate: rq.Candidate) -> bool:
    """Whether it was written, or was to land, and broke the command that verifies it."""
    return candidate.outcome == VERIFY_FAILED and not candidate.regions


def _found_wanting(tried: list[rq.Candidate]) -> list[str]:
    """Return the last finished work that broke the verifying command."""
    notes = [candidate.note for candidate in tried if _is_finished(candidate)]
    return [f"## What the last attempt broke\n\n{fenced(notes[-1])}\n"] if notes else []


def _tried(tried: list[rq.Candidate]) -> str:
    """Return the refused texts of others for this task: they exist nowhere else."""
    parts = ["## What was tried before, and not written\n"]
    for candidate in tried:
        parts.append(f"{candidate.agent}: {candidate.outcome}. {quoted(candidate.note, 500)}\n")
        for region in candidate.regions:
            if region.text is not None:
                since = ", which has changed since" if region.stale else ""
                parts.append(f"`{region.resource}`{since}:\n\n{fenced(region.text)}\n")
    return "\n".join(parts)


def _partial(claimed: rq.Claimed, partial: rq.Partial, isolated: bool) -> str:
    files = "\n".join(f"- {file['change']} `{file['path']}`" for file in partial.files)
    diff = partial.diff
    if len(diff) > DIFF_CHARS_MAX:
        diff = diff[:DIFF_CHARS_MAX] + f"\n… cut; `coord review show {partial.review}` has it all."
    elsewhere = {str(file["worktree"]) for file in partial.files if file.get("worktree")}
    if isolated:
        where = ("It is in your worktree as it was left, perhaps in the middle of a file, except "
                 "where the file has changed since: then you have the newer one")
    elif elsewhere:
        where = f"It lies in {', '.join(sorted(elsewhere))}, not here"
    else:
        where = "It is in the working tree as it was left, perhaps in the middle of a file"
    text = f"\nA person says of it:\n\n{block(partial.note)}\n\n" if partial.note else ""
    beside = _unleased(claimed, partial) if isolated else []
    also = ("" if not beside else "\nNot leased to you, so lease it before you end, or put it back "
            "as it was: " + ", ".join(f"`{path}`" for path in beside) + "\n")
    return (
        f"## Start from this partial work ({partial.review})\n\n{partial.summary}\n{text}"
        f"{where}. Check it, then finish it.\n\n{files}\n{also}\n"
        + fenced(diff, "diff") + "\n"
    )


def _unleased(claimed: rq.Claimed, partial: rq.Partial) -> list[str]:
    held = [resource(lease.resource, kind) for lease in claimed.leases
            for kind in KINDS if kind == lease.kind and lease.mode == "exclusive"]
    changes = [Change(str(file["path"]), path_scope(str(file["path"]))) for file in partial.files]
    return [change.path for change in changes if not any(covers(have, change) for have in held)]
