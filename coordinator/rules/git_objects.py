"""The trees, branches, commits and patches that a git command is about. Pure.

These commands name no file, and may end or replace what another agent works on.
"""

from __future__ import annotations

from collections.abc import Sequence

from coordinator.rules.git_commands import changes_files, only_tells, split_words

_ENDING_A_REBASE = frozenset({"--continue", "--skip", "--abort", "--quit", "--edit-todo",
                             "--show-current-patch"})


def ended_tree(rest: Sequence[str]) -> str | None:
    """The working tree that `git worktree` removes, or moves away from those who work in it."""
    if rest[:1] != ["worktree"]:
        return None
    plain = split_words("worktree", rest[1:])[0]
    return plain[1] if plain[:1] in (["remove"], ["move"]) and len(plain) > 1 else None


def ended_submodules(rest: Sequence[str]) -> list[str] | None:
    """The submodules, as they are written, whose files `git submodule deinit` removes; empty: all.
    None where it is another command."""
    plain, flags = split_words("submodule", rest[1:])
    if rest[:1] != ["submodule"] or plain[:1] != ["deinit"]:
        return None
    return plain[1:] if "--all" not in flags else []


def moved_branch(rest: Sequence[str]) -> str | None:
    """The branch that `git branch` gives another name, where it is named; also in the working tree
    that it is checked out in."""
    if rest[:1] != ["branch"]:
        return None
    plain, flags = split_words("branch", rest[1:])
    moves = any(flag == "--move" or (flag[:2] != "--" and {"m", "M"}.intersection(flag))
                for flag in flags)
    return plain[0] if moves and len(plain) > 1 else None


def kept_commit(rest: Sequence[str]) -> str | None:
    """The last commit that stays on the branch where this command takes newer ones out of it, as it
    is written: an amended commit's parent, what is reset to, what is rebased on."""
    if not rest or only_tells(rest):
        return None
    name, args = rest[0], list(rest[1:])
    plain, flags = split_words(name, args)
    if name == "commit":
        return "HEAD^" if any(flag.startswith("--am") for flag in flags) else None
    if name == "reset":
        return plain[0] if len(plain) == 1 and "--" not in args else None
    if name == "rebase" and not _ENDING_A_REBASE.intersection(flags):
        return plain[0] if plain else "@{upstream}"
    return None


def applied_patch(rest: Sequence[str]) -> list[str] | None:
    """The `git apply` that tells which files this one would change; None where it is none."""
    if rest[:1] != ["apply"] or not changes_files(split_words("apply", rest[1:])[1]):
        return None
    return [word for word in rest if word not in ("--apply", "-v", "--verbose")]


def reads_patch(rest: Sequence[str]) -> bool:
    """Whether this `git apply` reads a patch from its input."""
    plain = split_words("apply", rest[1:])[0]
    return rest[:1] == ["apply"] and (not plain or "-" in plain)


def used_stash(rest: Sequence[str]) -> str | None:
    """The entry of git's list of stashes that this command brings back, or drops."""
    plain, _ = split_words("stash", rest[1:])
    if rest[:1] != ["stash"] or plain[:1] not in (["pop"], ["apply"], ["drop"]):
        return None
    name = plain[1] if len(plain) > 1 else "0"
    return f"stash@{{{name}}}" if name.isdecimal() else name
