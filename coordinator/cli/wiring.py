"""`coord init --agent …`: settings of agent CLIs, seen before they are written; `coord hook`."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NoReturn

from coordinator.cli.app import EndedError, complain, confirm, say
from coordinator.cli.trust import heed
from coordinator.client.locating import connect, locate_root
from coordinator.client.starting import start
from coordinator.commands.signatures import Argument, command
from coordinator.files.state import StateDir
from coordinator.profiles import Profile, load, profiles
from coordinator.wiring import exclude, git_hooks
from coordinator.wiring.command_prefix import HOOK
from coordinator.wiring.settings_wiring import Change, Wirer
from coordinator.words import texts
from coordinator.words.refusals import Code, Refusal
from coordinator.words.texts import counted


def chosen(root: Path, names: Sequence[str], everything: bool) -> list[Profile]:
    """Return the profiles that a person named, or all installed ones that can be wired."""
    for name in names:
        heed(root, name)
    found_profiles = [load(name, root) for name in names]
    if everything:
        found_profiles += [
            profile for profile in profiles(root)
            if profile.wire and profile.command and shutil.which(profile.command[0])
            and profile.name not in names
        ]
        if not found_profiles:
            raise Refusal(
                Code.INVALID, "None of the agent CLIs that coord knows is on PATH.",
                next="`coord agents profiles` lists them; name one with --agent.",
            )
    return found_profiles


Plans = list[tuple[Profile, list[Change]]]


def agreed(
    wirer: Wirer, root: Path, wanted: Sequence[Profile], *, yes: bool, diff: bool = False,
    guard: bool = False,
) -> Plans | None:
    """Show each change and ask about it; write nothing. None if all were declined. `guard`: git's
    hooks will be asked about, too.

    Raises:
        Refusal: INVALID: nobody can be asked; all changes were shown.
    """
    plans = [(profile, list(wirer.plan(profile))) for profile in wanted]
    if _is_alone(yes):
        _show_all(plans, _lacking(root) if guard else [], diff)
    result: Plans = []
    for profile, changes in plans:
        if not changes:
            say(f"{profile.name}: wired already")
            result.append((profile, []))
            continue
        for change in changes:
            _show(change.shown(), diff, yes)
        if yes or _agreed(profile.name, len(changes)):
            result.append((profile, changes))
        else:
            say(f"{profile.name}: left as it was")
    return result or None


def apply(wirer: Wirer, plans: Plans) -> list[Path]:
    """Write the agreed changes. Returns the changed files."""
    changed: list[Path] = []
    for profile, changes in plans:
        if changes:
            wirer.apply(profile, changes)
            changed += [change.path for change in changes]
            say(f"{profile.name}: wired")
    return changed


def unwire(
    root: Path, wanted: Sequence[Profile], *, yes: bool, user: bool, diff: bool, guard: bool,
    every: bool,
) -> list[Path]:
    """Show what would be taken out, ask, take it out; the files that were changed. `guard`: see
    `agreed`; `every`: see `guard_out`."""
    wirer = Wirer(StateDir(root), Path.home(), user=user)
    plans = [(profile, wirer.unplan(profile)) for profile in wanted]
    if _is_alone(yes):
        goes = guard and not _wired(root, but=[profile.name for profile in wanted], here=every)
        _show_all(plans, [hook for hook in _hooks_of(root) if hook.state() != "missing"]
                  if goes else [], diff, True)
    changed: list[Path] = []
    for profile, changes in plans:
        if not changes:
            say(f"{profile.name}: nothing of coord's is in its settings")
            continue
        for change in changes:
            _show(change.shown(), diff, yes)
        if not yes and not _agreed(profile.name, len(changes), True):
            say(f"{profile.name}: left as it was")
            continue
        wirer.remove(changes)
        changed += [change.path for change in changes]
        say(f"{profile.name}: taken out")
    return changed


def keep_out_of_commits(root: Path, changed: Sequence[Path]) -> list[str]:
    """Make git ignore settings files that coord has made, now or before. Returns notes for a
    person."""
    made = Wirer(StateDir(root), Path.home()).made()
    result = []
    try:
        passed = exclude.put_in(root, sorted(made))
    except Refusal as refusal:
        return [f"{refusal.message} {refusal.next}"]
    if passed:
        names, it = ("names", "it") if len(passed) == 1 else ("name", "them")
        result.append(f"{', '.join(passed)} {names} paths of this machine, so git passes over {it} "
                      "(.git/info/exclude, of this clone only)")
    if theirs := exclude.tracked(root, changed):
        result.append(f"git tracks {', '.join(theirs)}, and what was wired names paths of this "
                      "machine: do not commit that, or wire with --user")
    mine = [path for path in changed if path not in made]
    if others := exclude.untracked(root, mine):
        names, it = ("names", "it") if len(others) == 1 else ("name", "them")
        result.append(f"{', '.join(others)} {names} paths of this machine now; keep {it} out of "
                      "commits")
    return result


def guard_in(root: Path, *, yes: bool, diff: bool = False) -> list[str]:
    """Put the guard into git's hooks of this clone, after a person has seen it and agreed, like a
    wiring. Returns notes for a person. Hooks shared with others are left to `coord guard install`.
    """
    try:
        found_hooks = git_hooks.find_hooks(root)
    except Refusal as refusal:
        step = f" ({refusal.next})" if refusal.next else ""
        return [f"commits are not guarded: {refusal.message.rstrip('.')}{step}"]
    lacking = [hook for hook in found_hooks if hook.state() != "guarded"]
    if not lacking:
        say("guard: in git's hooks already")
        return []
    if why := git_hooks.shared(root, found_hooks):
        return [f"commits are not guarded: {why}, and what is put there is not of this clone "
                "alone; `coord guard install` does it all the same"]
    for hook in lacking:
        _show(hook.shown(), diff, yes)
    if not yes and not _agreed("the guard of commits and pushes", len(lacking)):
        say("guard: left out")
        return []
    _note_guarded(root, [str(hook.path) for hook in lacking if hook.state() == "missing"])
    for hook in lacking:
        hook.install()
    say("guard: in git's hooks (a person goes on over it with COORD_GUARD=off)")
    inside = ["commits in submodules are not guarded: `coord guard install` in each does that"] if (
        (root / ".gitmodules").is_file()) else []
    return [*git_hooks.remarks(root, found_hooks), *inside]


def guard_out(root: Path, *, yes: bool, diff: bool = False, every: bool = False) -> None:
    """Take the guard out of the hooks that `guard_in` put it into, once no agent is wired. `every`:
    all that is in this repository is taken out; agents that are wired for all of the user's
    repositories do not count.
    """
    mine = _hooks_of(root)
    if not mine:
        if not _wired(root,
                      here=every) and any(hook.state() != "missing" for hook in _find_hooks(root)):
            say("guard: stays in git's hooks, for nobody knows that init put it there; "
                "`coord guard remove` takes it out")
        return
    if left := _wired(root, here=every):
        say(f"guard: stays in git's hooks, for {', '.join(left)}")
        return
    found_hooks = [hook for hook in mine if hook.state() != "missing"]
    for hook in found_hooks:
        _show(hook.shown(remove=True), diff, yes)
    if found_hooks and not yes and not _agreed("the guard of commits and pushes", len(found_hooks),
                                               True):
        say("guard: left in git's hooks")
        return
    for hook in found_hooks:
        hook.remove()
    git_hooks.record(root, [])
    if found_hooks:
        still = _wired(root)
        say("guard: taken out of git's hooks" + (
            f" ({', '.join(still)}: wired for all your repositories still)" if still else ""))


def _wired(root: Path, but: Sequence[str] = (), *, here: bool = False) -> list[str]:
    """Return the other wired agents. `here`: in this repository, not for all of them."""
    wirer = Wirer(StateDir(root), Path.home())
    return [profile.name for profile in profiles(root, broken=False)
            if profile.wire and profile.name not in but and wirer.is_wired(profile, here=here)]


def _find_hooks(root: Path) -> list[git_hooks.Hook]:
    """Return the hooks that git runs in this clone; empty if git cannot be asked."""
    try:
        return git_hooks.find_hooks(root)
    except Refusal:
        return []


def _lacking(root: Path) -> list[git_hooks.Hook]:
    """Return the hooks that `guard_in` would ask about."""
    found_hooks = _find_hooks(root)
    return [] if not found_hooks or git_hooks.shared(root, found_hooks) else [
        hook for hook in found_hooks if hook.state() != "guarded"]


def _hooks_of(root: Path) -> list[git_hooks.Hook]:
    """The hooks of this clone that `guard_in` has put the guard into. Only inside it, because the
    record may have come with the folder, and name another one."""
    recorded = git_hooks.read_recorded(root)
    names = {Path(text).name for text in recorded}
    here = [hook for hook in _find_hooks(root) if hook.name in names]
    own = [git_hooks.Hook(path) for path in (root / text for text in recorded)
           if path.is_relative_to(root)]
    return [*{hook.path: hook for hook in (*here, *own)}.values()]


def _note_guarded(root: Path, paths: Sequence[str]) -> None:
    mine = [str(Path(path).relative_to(root)) if Path(path).is_relative_to(root) else path
            for path in paths]
    git_hooks.record(root, list(dict.fromkeys([*git_hooks.read_recorded(root), *mine])))


def _show(text: str, whole: bool, yes: bool) -> None:
    """Show the changes of a file: the difference, or a line about it."""
    if whole:
        sys.stdout.write(texts.harmless(text))
        return
    lines = text.splitlines()
    if not lines:
        return
    added = sum(line[:1] == "+" and line[:4] != "+++ " for line in lines)
    gone = sum(line[:1] == "-" and line[:4] != "--- " for line in lines)
    old, new = (next((line[4:].split("\t")[0] for line in lines if line.startswith(sign)), "")
                for sign in ("--- ", "+++ "))
    verb = "make" if old == "/dev/null" else "remove" if new == "/dev/null" else "change"
    count = f"+{added}" + (f" -{gone}" if gone else "")
    verb_form = f"{verb}s" if yes else f"would {verb}"
    say(f"{verb_form} {new if verb != 'remove' else old} ({count} lines; --diff shows them)")


def _is_alone(yes: bool) -> bool:
    """Whether no person agreed in advance and none can be asked."""
    return not yes and not sys.stdin.isatty()


def _show_all(plans: Plans, guarded: Sequence[git_hooks.Hook], whole: bool,
              remove: bool = False) -> None:
    """Show all changes if no person can be asked, not only the first.

    Raises:
        Refusal: INVALID, if there are changes that nobody only wanted to see (`whole`).
    """
    changes = [change for _, some in plans for change in some]
    if not changes:
        return
    for change in changes:
        _show(change.shown(), whole, False)
    for hook in guarded:
        _show(hook.shown(remove=remove), whole, False)
    if whole:
        say("note: nothing was written; with --yes it is")
        raise EndedError
    names = [profile.name for profile, some in plans if some]
    names += ["the guard of commits and pushes"] if guarded else []
    _nobody(" and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names),
            len(changes) + len(guarded))


def _nobody(what: str, files: int) -> NoReturn:
    raise Refusal(
        Code.INVALID, f"{counted(files, 'file')} would change for {what}; nobody is there "
        "to be asked, so nothing was written.", next="Repeat it with --yes.",
    )


def _agreed(what: str, files: int, remove: bool = False) -> bool:
    if _is_alone(False):
        _nobody(what, files)
    return confirm(f"{'Take this out' if remove else 'Write this'} for {what}?")


def live(root: Path, profile: Profile) -> str | None:
    """Check that a hook of this profile really reaches the coordinator. Return the problem, or
    None."""
    state = StateDir(root)
    assert profile.hooks is not None
    event = {"claude": "", "gemini": "", "copilot": ":doctor", "plain": ":doctor"}
    name = profile.name + event[profile.hooks.dialect]
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-E", str(HOOK), str(state.socket()), name, "closed",
             "10"], input=b'{"hook_event_name": "CoordDoctor"}', capture_output=True, timeout=20,
            check=False, cwd=root,
        )
    except (OSError, subprocess.TimeoutExpired) as bad:
        return f"its hook cannot be run: {bad}"
    return done.stderr.decode("utf-8", "replace").strip() if done.returncode else None


@command("hook")
def hook(
    profile: Annotated[str, Argument("PROFILE, or PROFILE:EVENT.")],
) -> int:
    """What an agent runs when its session begins: starts the coordinator, then serves the hook.

    Before each write the faster form is run, which `coord init` writes into the settings.
    """
    try:
        state = StateDir(locate_root())
        sock = connect(state)
        if sock is not None:
            sock.close()
        elif state.path.is_dir():
            start(state)
        else:
            return 0  # a user's own wiring, in a repository that does not use coord
    except Refusal as refusal:
        complain(f"coord: {refusal.message} {refusal.next}")
        return 0  # the beginning of a session cannot be refused; its first write will be
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-E", str(HOOK), str(state.socket()), profile, "open", "60"],
        check=False,
    )
    return done.returncode
