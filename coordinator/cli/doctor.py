"""`coord doctor`: whether all is well, what is in force, and from where."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec

from coordinator import settings
from coordinator.cli.app import ask, print_json, say, width
from coordinator.cli.coordinators import hangs
from coordinator.cli.trust import untrusted
from coordinator.cli.wiring import live
from coordinator.client.locating import locate_root
from coordinator.commands.lists import wrapped
from coordinator.commands.signatures import AsJson, Option, command
from coordinator.files.state import StateDir
from coordinator.launch import recovery
from coordinator.namespaces import kernel
from coordinator.profiles import Profile, profiles
from coordinator.rules.pools import Pool
from coordinator.settings import FILE
from coordinator.wiring import session_wiring, shims
from coordinator.wiring.hook_trust import trusted
from coordinator.wiring.settings_wiring import Wirer
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Exit, Refusal
from coordinator.words.texts import counted


@command("doctor")
def doctor(
    restore: Annotated[
        bool, Option("Make the database anew from a backup and what can be read.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Check the database, the watcher, the settings; say what is in force and from where."""
    root = locate_root()
    state = StateDir(root)
    if restore:
        from coordinator.cli.restoring import restore as put_back

        return put_back(state, as_json)
    try:
        state.check_ours()
    except Refusal as refusal:
        return _doctor_ends(root, refusal, as_json)
    problems: list[str] = []
    facts: dict[str, object] = {"root": str(root), "python": sys.version.split()[0],
                                "sqlite": None, "socket": str(state.socket())}
    no_sessions = kernel.asked()
    if (silent := hangs(state)) is not None:
        return _doctor_ends(root, silent, as_json)
    health = _ask_health(root, facts, problems)
    if state.landing.exists() and (interrupted := recovery.cut_off(state)) is not None:
        problems.append(interrupted)
    with suppress(Refusal):  # an unreadable file was reported already
        problems += _list_untrusted(root, health)
    wiring = _wiring(root, problems) if health is not None else {}
    facts["wiring"] = wiring
    problems += _list_git_problems(root, problems)
    facts["sessions"] = sessions = no_sessions()
    facts["shims"] = made_shims = shims.installed()
    problems += _list_unused(made_shims)
    facts["problems"] = problems
    if as_json:
        print_json(facts)
        return Exit.INCOMPLETE if problems else Exit.OK
    _say("repository", str(root))
    _say("socket", str(state.socket()))
    _say("python", f"{facts['python']}, SQLite {facts['sqlite']}")
    if health is not None:
        _say_state(state, health, sessions, made_shims, wiring)
    for problem in problems:
        _say("problem:", problem, 9)
    if not problems:
        say("No problem was found.")
    return Exit.INCOMPLETE if problems else Exit.OK


def _ask_health(root: Path, facts: dict[str, object], problems: list[str]) -> rq.HealthReply | None:
    """Ask the coordinator for its health; None, and a problem, if it cannot be asked."""
    try:
        health = ask(rq.Health(integrity=True))
        facts["health"], facts["sqlite"] = health, health.sqlite or _sqlite()
        newer = _newer(root, health, problems)
        problems += [warning for warning in health.warnings
                     if not any(warning.startswith(f"{FILE}: {name} = ") for name in newer)]
        problems += [f"{aside.what} {aside.subject} is set aside since {aside.since}: "
                     f"{aside.reason}" for aside in health.aside]
        if health.integrity != "ok":
            problems.append(f"the database is damaged: {health.integrity}")
    except Refusal as refusal:
        problems.append(f"{refusal.code.value}: {refusal.message} {refusal.next}")
        if refusal.code is Code.SANDBOXED:
            problems.append(
                "In this sandbox what others hold is not read-only for commands (but in a session "
                "of `coord run`), and git asks nobody: what they change is found afterwards. Edits "
                "are asked for before, as ever.")
        facts["sqlite"] = _sqlite()
        return None
    return health


def _list_git_problems(root: Path, problems: list[str]) -> list[str]:
    """Report a replaced guard of commits, and orphaned locks of git's index."""
    from coordinator.wiring import git_hooks, git_repository

    result = [f"git's index is locked by a git that has ended, so others fail: rm "
              f"{shlex.quote(str(path))}" for path in git_repository.list_stale_locks(root)]
    why = git_hooks.find_loss(root)
    text = git_hooks.describe_loss(why)
    return result + ([text] if why and text not in problems else [])


def _list_untrusted(root: Path, health: rq.HealthReply | None) -> list[str]:
    return [f"{subject.what} of this repository is not trusted, so it is not used. "
            "`coord trust` shows it." for subject in untrusted(root)
            if subject.what != FILE or health is None]


def _list_unused(made_shims: Sequence[str]) -> list[str]:
    """Return the problems of shims that exist but are not first on PATH."""
    return [f"{made_shim} has a shim that is not what is typed: {shims.folder()} is not "
            "first on PATH. `coord shims install` says what to add." for made_shim in made_shims
            if shims.real(made_shim) and not shims.hides(made_shim)]


def _say_state(state: StateDir, health: rq.HealthReply, sessions: str, made_shims: Sequence[str],
               wiring: dict[str, str]) -> None:
    _say("coordinator", f"{health.version}, pid {health.pid}, "
         f"{health.resident_bytes / 1e6:.0f} MB resident")
    _say("database", f"{state.database}: {health.db_bytes / 1e6:.1f} MB, "
         f"{counted(health.events, 'event')}, integrity {health.integrity}")
    _say("watcher", f"{health.watcher.get('mode')}: {health.watcher.get('detail')}")
    _say("http", health.http or "off")
    _say("sessions", f"none can be had: {sessions}" if sessions else
         "`coord run` and `coord launch` keep agents from writing what others hold")
    _say("shims", ", ".join(made_shims) or
         "none; `coord shims install` lets agents be typed as always and run in sessions")
    for name, text in wiring.items():
        _say(name, text)
    _say_settings(health)


def _say_settings(health: rq.HealthReply) -> None:
    say("settings")
    sources = health.config["sources"]
    for section, values in health.config["settings"].items():
        for key, value in values.items():
            name = f"{section}.{key}"
            text = msgspec.convert(value, Pool).describe() if section == "pools" else value
            say(f"  {name:<27}{text!s:<20} {sources.get(name, 'default')}")


def _say(name: str, text: str, indent: int = 13) -> None:
    """Print a fact, folded beside its name on a narrow terminal."""
    first, *more = wrapped(text, width() if sys.stdout.isatty() else None, indent)
    for line in (name.ljust(indent) + first[indent:], *more):
        say(line)


def _newer(root: Path, health: rq.HealthReply, problems: list[str]) -> list[str]:
    """Return the settings, `section.key`, whose value in the file differs from the one in force. A
    value set by the environment of the coordinator, or of this command, is no problem."""
    try:
        now = settings.load(root)
    except Refusal as refusal:
        problems.append(f"{refusal.message} The coordinator goes on by what it has read before; "
                        f"another one could not start. {refusal.next}")
        return []
    message, force = msgspec.to_builtins(now.settings), health.config["settings"]
    result = []
    for section, values in message.items():
        for key, value in values.items():
            name = f"{section}.{key}"
            sources = (now.sources.get(name, ""), health.config["sources"].get(name, ""))
            if value != force.get(section, {}).get(key) and not any(
                    source.startswith("COORD_") for source in sources):
                result.append(name)
    if result:
        problems.append(f"{FILE} was changed since the coordinator started, which goes on by what "
                        f"it has read ({', '.join(result)}): `coord down`, and the next command "
                        "starts one with it.")
    return result


def _sqlite() -> str:
    """Return the SQLite version that a coordinator would use for its database."""
    import apsw  # ms, and the coordinator tells as a rule

    return apsw.sqlite_lib_version()


def _doctor_ends(root: Path, refusal: Refusal, as_json: bool) -> int:
    """Report that the folder must not be touched, so nothing more can be found out."""
    text = f"{refusal.code.value}: {refusal.message} {refusal.next}"
    if as_json:
        print_json({"root": str(root), "problems": [text]})
    else:
        say(f"repository   {root}")
        say(f"problem: {text}")
    return Exit.INCOMPLETE


def _wiring(root: Path, problems: list[str]) -> dict[str, str]:
    """Return each wired agent CLI, and whether its hooks reach the coordinator."""
    wirer = Wirer(StateDir(root), Path.home())
    result: dict[str, str] = {}
    try:
        known_profiles = profiles(root)
    except Refusal as refusal:
        problems.append(refusal.message)
        return {}
    for profile in known_profiles:
        if profile.hooks is None or not profile.wire:
            continue
        if wirer.is_wired(profile):
            result[profile.name] = _describe_wired(root, profile, profile.hooks.trust, problems)
        elif root_before := wirer.wired_root(profile):
            result[profile.name] = f"wired for {root_before}"
            problems.append(
                f"{profile.name}: its hooks name {root_before}: this folder was moved, or is a "
                f"copy. `coord init --agent {profile.name}` wires it here.")
        elif wirer.was_wired(profile):
            result[profile.name] = "wired once; its settings were changed since"
            problems.append(
                f"{profile.name}: its settings are not as coord wrote them (changed by hand, "
                "or by another version), so its writes may be unguarded. "
                f"`coord init --agent {profile.name}` shows the difference and puts it right.")
    return result


def _describe_wired(root: Path, profile: Profile, step: str | None, problems: list[str]) -> str:
    """Whether the hooks of a wired CLI reach the coordinator, and its sessions' do. `step`: how a
    person has it trust them."""
    bad = live(root, profile)
    sessions = _sessions(problems)
    seen = max((agent.seen_at for agent in sessions
                if agent.profile == profile.name and agent.hooked_at), default=None)
    text = "" if bad else "wired; a test call came back; " + (
        f"its sessions report in (last {seen})" if seen is not None else
        f"no session of it has reported in yet ({step or 'start it once'})"
    )
    if not bad and (kept := session_wiring.describe_sessions(profile, StateDir(root), Path.home())):
        text += f"; {kept}"
    if profile.trust is not None and not bad:
        heard = partial(_heard, profile.name)
        yes, how = trusted(profile.trust, root, Path.home(), heard)
        text += f"; {how}"
        if yes is False:
            problems.append(
                f"{profile.name} will pass over its hooks without a word: {how}. "
                f"{_begun(step or 'trust it')}. "
                "(`coord launch` sees to it by itself.)")
    if bad:
        problems.append(f"{profile.name}: {bad}")
    return bad or text


def _begun(text: str) -> str:
    """The text as the beginning of a sentence; names in the rest stay as they are."""
    return text[:1].upper() + text[1:]


def _sessions(problems: list[str]) -> list[rq.AgentRow]:
    try:
        return ask(rq.Agents(all=True)).items
    except Refusal as refusal:
        problems.append(refusal.message)
        return []


def _heard(profile: str) -> str | None:
    return ask(rq.Health()).heard.get(profile)
