"""`coord init`: a repository is prepared, and agents' settings and git's hooks are wired."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from coordinator.cli import shims as shims_command
from coordinator.cli import wiring
from coordinator.cli.app import EndedError, people_only, print_json, say
from coordinator.client.locating import locate_root
from coordinator.client.starting import unwritable
from coordinator.commands.signatures import AsJson, Option, command
from coordinator.files.roots import STATE_DIR, checkout
from coordinator.files.state import StateDir
from coordinator.files.tracked_state import check_untracked
from coordinator.profiles import Profile, profiles
from coordinator.settings import load
from coordinator.wiring import exclude
from coordinator.wiring.settings_wiring import Wirer

CONFIG = """\
# coord's settings for this repository; `coord doctor` lists every key with its value.
# [leases]
# ttl_s = 1800
# [review]
# quarantine = false
"""


@command("init")
def init(
    agent: Annotated[list[str] | None, Option("Wire this agent CLI's hooks.", "-a")] = None,
    everything: Annotated[bool, Option("Wire every agent CLI that is installed.", "--all")] = False,
    yes: Annotated[bool, Option("Do not ask.", "-y")] = False,
    remove: Annotated[bool, Option("Take out of the settings what coord put in.")] = False,
    user: Annotated[bool, Option("Your own settings, for all repositories.")] = False,
    mcp: Annotated[bool, Option("Name coord's MCP server in the agent's settings, too.")] = False,
    diff: Annotated[bool, Option("Show all that would change, line by line.")] = False,
    no_guard: Annotated[bool, Option("Leave git's commit and push hooks alone.")] = False,
    with_shims: Annotated[bool | None, Option(
        "Let the agents be typed as always and run in sessions (`coord shims`); default: asked.",
        "--shims/--no-shims")] = None,
    apart: Annotated[bool, Option(
        "Give this repository a coordinator of its own, apart from the one that the folders above "
        "have.", "--separate")] = False,
    adopt: Annotated[bool, Option("Take over a `.coord/` from elsewhere: it is your own.")] = False,
    as_json: AsJson = False,
) -> None:
    """Prepare this folder: `.coord/`, `coord.toml`, `context_archive/`; keeps what exists.

    With --agent (or --all) it changes the agent's settings so that the agent asks coord before it
    writes, and git's hooks so that a commit asks, too (`coord guard`). It first names the files
    that it will change; --diff shows every change. --remove takes out exactly that.
    """
    asked = _Asked(agent, everything, yes, remove, user, mcp, diff, no_guard, with_shims, apart,
                   adopt)
    if not as_json:
        _carried_out(asked, asks=True)
        return
    facts: dict[str, Any] = {"root": str(locate_root()), "made": [], "notes": []}
    with contextlib.redirect_stdout(sys.stderr), contextlib.suppress(EndedError):
        facts = _carried_out(asked, asks=False)
    print_json(facts)


class _Asked(NamedTuple):
    """The options of `coord init`, by their names."""

    agent: list[str] | None
    everything: bool
    yes: bool
    remove: bool
    user: bool
    mcp: bool
    diff: bool
    no_guard: bool
    with_shims: bool | None
    apart: bool
    adopt: bool


def _carried_out(asked: _Asked, *, asks: bool) -> dict[str, Any]:
    """Carry out the command, print and return its result. `asks`: ask a person about shims."""
    agent, everything, yes, remove, user, mcp, diff, no_guard, with_shims, apart, adopt = asked
    root, around = _apart() if apart else (locate_root(), None)
    if adopt:
        from coordinator.cli import restoring

        restoring.adopt(StateDir(root))
    if remove:
        return _take_out(root, asked)
    wanted = wiring.chosen(root, agent or [], everything)
    git = checkout(str(root)) is not None
    made: list[str] = []
    notes: list[str] = []
    if not wanted and diff:
        lacking = _lacking(root)
        say(f"{root}: " + (f"`coord init` would make {', '.join(lacking)}" if lacking else
                           "all that `coord init` makes is there already"))
        return {"root": str(root), "made": [], "would_make": lacking, "notes": []}
    if not wanted:
        made = _prepare(root)
        notes += _whose(root, around)
    else:
        people_only("wiring agents", "Ask the person who runs coord.")
        _check_before(root)
        wirer = Wirer(StateDir(root), Path.home(), user=user, mcp=mcp)
        plans = wiring.agreed(wirer, root, wanted, yes=yes, diff=diff, guard=git and not no_guard)
        if plans is None:
            say("Nothing was written.")
            return {"root": str(root), "made": [], "git": git, "notes": []}
        made = _prepare(root)
        notes += _whose(root, around)
        notes += _wire(root, asked, wanted, wiring.apply(wirer, plans), git=git)
        notes += shims_command.offer(wanted, None if user else root, wanted=with_shims,
                                     asks=asks and not yes and sys.stdin.isatty())
    _say_ready(root, made, notes, git=git, wired=bool(wanted))
    return {"root": str(root), "made": made, "git": git, "notes": notes}


def _say_ready(root: Path, made: list[str], notes: list[str], *, git: bool, wired: bool) -> None:
    say(f"{root} is ready" + (f" (made {', '.join(made)})" if made else " (it was already)"))
    if not git:
        say("note: this is not a git repository; coord works, but git cannot show what changed"
            + (", and there are no commits to guard" if wired else ""))
    for note in notes:
        say(f"note: {note}")
    if wired:
        say("next: coord doctor proves the wiring; then start your agents as you always do")
    else:
        say("next: coord init --agent claude-code wires an agent; "
            "coord agents profiles lists which there are")


def _take_out(root: Path, asked: _Asked) -> dict[str, Any]:
    """Remove coord's parts of the settings, and of git's hooks."""
    names, yes, user, diff = asked.agent or [], asked.yes, asked.user, asked.diff
    people_only("taking coord's settings out", "Ask the person who runs coord.", typed=True)
    StateDir(root).check_ours()
    wanted = (wiring.chosen(root, names, False) if names
              else [p for p in profiles(root, broken=False) if p.wire])
    every = not names and not user
    gone = wiring.unwire(root, wanted, yes=yes, user=user, diff=diff, guard=not asked.no_guard,
                         every=every)
    exclude.take_out(root, gone)
    if not asked.no_guard:
        wiring.guard_out(root, yes=yes, diff=diff, every=every)
    return {"root": str(root), "removed": [str(path) for path in gone]}


def _wire(root: Path, asked: _Asked, wanted: Sequence[Profile], changed: Sequence[Path], *,
          git: bool) -> list[str]:
    """Do everything besides the settings of these agents (`changed`). Returns sentences for a
    person."""
    from coordinator.wiring import session_wiring

    notes = list(wiring.keep_out_of_commits(root, changed) if git else [])
    notes += [text for profile in wanted
              if (text := session_wiring.describe_sessions(profile, StateDir(root), Path.home()))]
    notes += [] if asked.user else _elsewhere(root, wanted)
    if git and not asked.no_guard:
        notes += wiring.guard_in(root, yes=asked.yes, diff=asked.diff)
    return notes


def _check_before(root: Path) -> None:
    """Check that the announced changes can be made.

    Raises:
        Refusal: FOREIGN, STORAGE.
    """
    state = StateDir(root)
    state.check_ours()
    place = state.path if state.path.is_dir() else root
    if not os.access(place, os.W_OK):
        raise unwritable(state, PermissionError(
            errno.EACCES, os.strerror(errno.EACCES), str(place)))


def _apart() -> tuple[Path, Path]:
    from coordinator.cli import separating  # it reads the database, which takes as long as the rest

    return separating.separate(Path.cwd())


def _whose(root: Path, around: Path | None) -> list[str]:
    """Return notes for a person about repositories inside one another."""
    if around is not None:
        return [f"{root} has a coordinator of its own now: that of {around} covers nothing in it"]
    here = checkout(str(Path.cwd()))
    if here is None or here.linked or Path(here.top) == root:
        return []
    if not Path(here.top).is_relative_to(root):
        return []
    return [f"{here.top} lies in {root} and shares its coordinator; `coord init --separate` there "
            "gives it one of its own"]


def _elsewhere(root: Path, wired: Sequence[Profile]) -> list[str]:
    """Return notes for a person who wires agents in a linked worktree."""
    here = checkout(str(Path.cwd()))
    if here is None or not here.linked or Path(here.top) == root:
        return []
    names = " ".join(f"--agent {profile.name}" for profile in wired)
    return [f"{here.top} is a linked worktree, and these settings are in {root}: an agent that is "
            f"started here does not read them. `coord init {names} --user` wires it for all "
            "repositories and worktrees"]


def _lacking(root: Path) -> list[str]:
    """Return the files and folders of this command that do not exist yet."""
    return [name for name in (f"{STATE_DIR}/", "coord.toml", "context_archive/")
            if not (root / name).exists()]


def _prepare(root: Path) -> list[str]:
    """Make the missing files and folders, and return them."""
    state = StateDir(root)
    made = _lacking(root)
    load(root)  # wrong settings are reported before anything is made
    try:
        check_untracked(root)
        state.create()
        config = root / "coord.toml"
        if not config.exists():
            config.write_text(CONFIG, "utf-8")
        archive = root / "context_archive"
        if not archive.exists():
            archive.mkdir()
            (archive / "README.md").write_text(
                "# Context archive\n\nMarkdown here explains the code to agents: when one is "
                "refused a file, coord quotes\nthe sections that name it. Write `path/to/file.py` "
                "in a section to tie it to that file.\n", "utf-8",
            )
    except OSError as bad:
        raise unwritable(state, bad) from None
    return made
