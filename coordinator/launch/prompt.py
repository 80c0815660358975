"""What an agent is told about its task: the work, what it holds, what explains it, the rules.

Pure: a claim in, Markdown out.
"""

from __future__ import annotations

from coordinator.words import requests as rq

#: A diff of partial work longer than this (characters) is cut; the whole is in the review.
DIFF_CHARS_MAX = 60_000

RULES = """\
Other agents work in this repository at the same time; `coord` keeps you out of each other's way.

- Write only what is leased to you (above). Before you write anything else, ask for it:
  `coord lock PATH --task {task}`. Exit code 3 means that another agent holds it: do what the answer
  says, and do not write it.
- Read a file afresh before you change it.
- Do not switch branches, stash, reset, clean, or commit everything (`git add -A`).
- If you cannot go on because another agent holds what you need:
  `coord task fail {task} --blocked PATH`, and stop. It is offered again when that is free.
- When the work is finished, just end with exit code 0: your leases are released then.
"""


def compose(claimed: rq.Claimed, agent: str, log_tail: str = "") -> str:
    """The whole prompt for one attempt; `log_tail`: the last output of the one before it."""
    task = claimed.task
    parts = [f"# {task.task}: {task.title}\n"]
    if task.prompt.strip():
        parts.append(task.prompt.strip() + "\n")
    parts.append("## What is leased to you\n")
    if claimed.leases:
        parts += [f"- `{lease.resource}` ({lease.mode})" for lease in claimed.leases]
    else:
        parts.append("Nothing yet: this task names no files. Lease what you are about to write.")
    parts.append(f"\nYou are `{agent}`. The leases end when you fall silent.\n")
    for warning in claimed.warnings:
        parts.append(f"Note: {warning}\n")
    if claimed.partial is not None:
        parts.append(_partial(claimed.partial))
    if log_tail.strip():
        parts.append("## How the last attempt ended\n\n```\n" + log_tail.strip() + "\n```\n")
    if claimed.excerpts:
        parts.append("## From the context archive\n")
        for quote in claimed.excerpts:
            parts.append(f"### {quote['section']} {quote['title']} ({quote['source']})\n\n"
                         f"{quote['text']}\n")
    parts.append("## Rules\n\n" + RULES.format(task=task.task))
    return "\n".join(parts)


def _partial(partial: rq.Partial) -> str:
    files = "\n".join(f"- {file['change']} `{file['path']}`" for file in partial.files)
    diff = partial.diff
    if len(diff) > DIFF_CHARS_MAX:
        diff = diff[:DIFF_CHARS_MAX] + f"\n… cut; `coord review show {partial.review}` has it all."
    return (
        f"## Start from this partial work ({partial.review})\n\n{partial.summary}\n"
        "It is in the working tree as it was left, perhaps in the middle of a file. Check it, then "
        f"finish it.\n\n{files}\n\n```diff\n{diff}\n```\n"
    )
