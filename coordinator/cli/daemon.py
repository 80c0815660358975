"""`coord init`, `up`, `down`, `serve`, `doctor`, `compact`: the coordinator itself."""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import apsw

from coordinator.cli.app import AsJson, app, ask, complain, print_json, say
from coordinator.cli.definition import typer
from coordinator.cli.trust import untrusted
from coordinator.client.locating import connect, locate_root
from coordinator.client.starting import start, unwritable
from coordinator.files.roots import checkout
from coordinator.files.state import StateDir
from coordinator.files.tracked_state import check_untracked
from coordinator.launch import recovery
from coordinator.namespaces import kernel
from coordinator.profiles import profiles
from coordinator.settings import FILE, load
from coordinator.wiring import shims
from coordinator.words import requests as rq
from coordinator.words.exit_codes import Exit
from coordinator.words.refusals import Refusal

HttpPort = Annotated[
    int | None, typer.Option("--http", help="Also open the HTTP door on this port (0: any).")
]
LogForm = Annotated[
    Literal["text", "json"] | None,
    typer.Option("--log-format", help="Of .coord/daemon.log: lines, or JSON lines.")
]
CONFIG = """\
# coord's settings for this repository; `coord doctor` lists every key with its value.
# [leases]
# ttl_s = 1800
# [review]
# quarantine = false
"""


@app.command("init")
def init(
    agent: Annotated[
        list[str] | None, typer.Option("--agent", "-a", help="Wire this agent CLI's hooks.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Wire every agent CLI that is installed.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    remove: Annotated[
        bool, typer.Option("--remove", help="Take out of the settings what coord put in.")
    ] = False,
    user: Annotated[
        bool, typer.Option("--user", help="Your own settings, for all repositories.")
    ] = False,
    diff: Annotated[
        bool, typer.Option("--diff", help="Show all that would change, line by line.")
    ] = False,
    no_guard: Annotated[
        bool, typer.Option("--no-guard", help="Leave git's commit and push hooks alone.")
    ] = False,
    with_shims: Annotated[
        bool | None, typer.Option(
            "--shims/--no-shims", help="Let the agents be typed as always and run in sessions "
            "(`coord shims`); default: asked."
        )
    ] = None,
    apart: Annotated[
        bool, typer.Option(
            "--separate", help="Give this repository a coordinator of its own, apart from the one "
            "that the folders above have."
        )
    ] = False,
    adopt: Annotated[
        bool, typer.Option("--adopt", help="Take over a `.coord/` from elsewhere: it is your own.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Prepare this folder: `.coord/`, `coord.toml`, `context_archive/`; keeps what exists.

    With --agent (or --all) the agent's settings are changed so that it asks coord before it
    writes, and git's hooks so that a commit does (`coord guard`); which files that changes is
    told first, with --diff all of it. --remove takes out exactly that.
    """
    from coordinator.cli import shims as shims_command
    from coordinator.cli import wiring
    from coordinator.wiring import exclude, session_wiring

    root, around = _apart() if apart else (locate_root(), None)
    if adopt:
        from coordinator.cli import restoring

        restoring.adopt(StateDir(root))
    if remove:
        StateDir(root).check_ours()
        names = agent or []
        wanted = (wiring.chosen(root, names, False) if names
                  else [p for p in profiles(root) if p.wire])
        gone = wiring.wire(root, wanted, yes=yes, remove=True, user=user, diff=diff)
        exclude.take_out(root, gone)
        if not no_guard:
            wiring.guard_out(root, yes=yes, diff=diff)
        return
    wanted = wiring.chosen(root, agent or [], everything)
    git = checkout(str(root)) is not None
    made: list[str] = []
    notes: list[str] = []
    if not wanted:
        made = _prepare(root)
        notes += _whose(root, around)
    else:
        plans = wiring.agreed(root, wanted, yes=yes, user=user, diff=diff)
        if plans is None:
            say("Nothing was written.")
            return
        made = _prepare(root)
        notes += _whose(root, around)
        changed = wiring.apply(root, plans, user=user)
        notes += wiring.keep_out_of_commits(root, changed) if git else []
        notes += [told for one in wanted
                  if (told := session_wiring.told(one, StateDir(root), Path.home()))]
        notes += wiring.guard_in(root, yes=yes, diff=diff) if git and not no_guard else []
        notes += shims_command.offer(wanted, wanted=with_shims,
                                     asks=not yes and not as_json and sys.stdin.isatty())
    if as_json:
        print_json({"root": str(root), "made": made, "git": git, "notes": notes})
        return
    say(f"{root} is ready" + (f" (made {', '.join(made)})" if made else " (it was already)"))
    if not git:
        say("note: this is not a git repository; coord works, but git cannot show what changed"
            + (", and there are no commits to guard" if wanted else ""))
    for note in notes:
        say(f"note: {note}")
    if wanted:
        say("next: coord doctor proves the wiring; then start your agents as you always do")
    else:
        say("next: coord init --agent claude-code wires an agent; "
            "coord agents profiles lists which there are")


def _apart() -> tuple[Path, Path]:
    from coordinator.cli import separating  # it reads the database, which takes as long as the rest

    return separating.separate(Path.cwd())


def _whose(root: Path, around: Path | None) -> list[str]:
    """What a person should know where repositories lie in each other."""
    if around is not None:
        return [f"{root} has a coordinator of its own now: that of {around} covers nothing in it"]
    here = checkout(str(Path.cwd()))
    if here is None or here.linked or Path(here.top) == root:
        return []
    if not Path(here.top).is_relative_to(root):
        return []
    return [f"{here.top} lies in {root} and shares its coordinator; `coord init --separate` there "
            "gives it one of its own"]


def _prepare(root: Path) -> list[str]:
    """Make what is not there yet; what was made."""
    state = StateDir(root)
    made = []
    try:
        if not state.path.is_dir():
            made.append(str(state.path.relative_to(root)) + "/")
        check_untracked(root)
        state.create()
        config = root / "coord.toml"
        if not config.exists():
            config.write_text(CONFIG, "utf-8")
            made.append("coord.toml")
        archive = root / "context_archive"
        if not archive.exists():
            archive.mkdir()
            (archive / "README.md").write_text(
                "# Context archive\n\nMarkdown here explains the code to agents: when one is "
                "refused a file, coord quotes\nthe sections that name it. Write `path/to/file.py` "
                "in a section to tie it to that file.\n", "utf-8",
            )
            made.append("context_archive/")
    except OSError as bad:
        raise unwritable(state, bad) from None
    load(root)
    return made


@app.command("up")
def up(http: HttpPort = None, log_format: LogForm = None, as_json: AsJson = False) -> None:
    """Start the coordinator in the background (any command does that by itself)."""
    state = StateDir(locate_root())
    sock = connect(state)
    if sock is not None:
        sock.close()
        already = True
    else:
        already = False
        start(state, http, asked=True, log_format=log_format)
    health = ask(rq.Health())
    if as_json:
        print_json(health)
        return
    word = "was running already" if already else "runs"
    say(f"The coordinator for {health.root} {word} (pid {health.pid}).")
    if health.http:
        say(f"HTTP at {health.http}; bearer token in {state.bearer}")
    elif already and http is not None:
        complain("coord: it was started without the HTTP door; `coord down` first.")
        raise typer.Exit(Exit.INCOMPLETE)


@app.command("serve")
def serve(http: HttpPort = None, log_format: LogForm = None) -> int:
    """Run the coordinator in the foreground, for supervisors."""
    from coordinator.daemon.__main__ import serve as run

    root = locate_root()
    complain(f"coord: serving {root}; Ctrl-C stops it")
    return run(root, http, stays=True, log_format=log_format)


@app.command("doctor")
def doctor(
    restore: Annotated[
        bool, typer.Option(
            "--restore", help="Make the database anew from a backup and what can be read."
        )
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
                                "sqlite": apsw.sqlite_lib_version(), "socket": str(state.socket())}
    try:
        health = ask(rq.Health(integrity=True))
        facts["health"] = health
        problems += health.warnings
        problems += [f"{one.what} {one.subject} is set aside since {one.since}: {one.reason}"
                     for one in health.aside]
        if health.integrity != "ok":
            problems.append(f"the database is damaged: {health.integrity}")
    except Refusal as refusal:
        problems.append(f"{refusal.code.value}: {refusal.message} {refusal.next}")
        health = None
    interrupted = recovery.cut_off(state)
    if interrupted is not None:
        problems.append(interrupted)
    with suppress(Refusal):  # what cannot be read is told of already
        problems += [f"{one.what} of this repository is not trusted, so it is not used. "
                     "`coord trust` shows it." for one in untrusted(root)
                     if one.what != FILE or health is None]
    wiring = _wiring(root, problems) if health is not None else {}
    facts["wiring"] = wiring
    facts["sessions"] = sessions = kernel.refused()
    facts["shims"] = made_shims = shims.installed()
    problems += [f"{one} has a shim that is not what is typed: {shims.folder()} is not first on "
                 "PATH. `coord shims install` says what to add." for one in made_shims
                 if shims.real(one) and not shims.hides(one)]
    facts["problems"] = problems
    if as_json:
        print_json(facts)
        return Exit.INCOMPLETE if problems else Exit.OK
    say(f"repository   {root}")
    say(f"socket       {state.socket()}")
    say(f"python       {facts['python']}, SQLite {facts['sqlite']}")
    if health is not None:
        say(f"coordinator  {health.version}, pid {health.pid}, "
            f"{health.resident_bytes / 1e6:.0f} MB resident")
        say(f"database     {state.database}: {health.db_bytes / 1e6:.1f} MB, "
            f"{health.events} events, integrity {health.integrity}")
        say(f"watcher      {health.watcher.get('mode')}: {health.watcher.get('detail')}")
        say(f"http         {health.http or 'off'}")
        say("sessions     " + (f"none can be had: {sessions}" if sessions else
            "`coord run` and `coord launch` keep agents from writing what others hold"))
        say("shims        " + (", ".join(made_shims) or
            "none; `coord shims install` lets agents be typed as always and run in sessions"))
        for name, said in wiring.items():
            say(f"{name:<12} {said}")
        say("settings")
        sources = health.config["sources"]
        for section, values in health.config["settings"].items():
            for key, value in values.items():
                name = f"{section}.{key}"
                say(f"  {name:<28}{value!s:<24}{sources.get(name, 'default')}")
    for problem in problems:
        say(f"problem: {problem}")
    if not problems:
        say("No problem was found.")
    return Exit.INCOMPLETE if problems else Exit.OK


def _doctor_ends(root: Path, refusal: Refusal, as_json: bool) -> int:
    """What lies there is not to be touched: nothing more can be told of it."""
    said = f"{refusal.code.value}: {refusal.message} {refusal.next}"
    if as_json:
        print_json({"root": str(root), "problems": [said]})
    else:
        say(f"repository   {root}")
        say(f"problem: {said}")
    return Exit.INCOMPLETE


def _wiring(root: Path, problems: list[str]) -> dict[str, str]:
    """Each wired agent CLI, and whether its hooks reach the coordinator."""
    from coordinator.cli.wiring import live
    from coordinator.wiring import session_wiring
    from coordinator.wiring.hook_trust import trusted
    from coordinator.wiring.settings_wiring import Wirer

    wirer = Wirer(StateDir(root), Path.home())
    out: dict[str, str] = {}
    try:
        known = profiles(root)
        sessions = ask(rq.Agents(all=True)).items
    except Refusal as refusal:
        problems.append(refusal.message)
        return {}
    for profile in known:
        if profile.hooks is None or not profile.wire:
            continue
        if not wirer.is_wired(profile):
            if wirer.was_wired(profile):
                out[profile.name] = "wired once; its settings were changed since"
                problems.append(
                    f"{profile.name}: its settings are not as coord wrote them (changed by hand, "
                    "or by another version), so its writes may be unguarded. "
                    f"`coord init --agent {profile.name}` shows the difference and puts it right.")
            continue
        bad = live(root, profile)
        seen = max((one.seen_at for one in sessions
                    if one.profile == profile.name and one.hooked_at), default=None)
        said = "" if bad else "wired; a test call came back; " + (
            f"its sessions report in (last {seen})" if seen is not None else
            f"no session of it has reported in yet ({profile.hooks.trust or 'start it once'})"
        )
        if not bad and (told := session_wiring.told(profile, StateDir(root), Path.home())):
            said += f"; {told}"
        if profile.trust is not None and not bad:
            heard = partial(_heard, profile.name)
            yes, how = trusted(profile.trust, root, Path.home(), heard)
            said += f"; {how}"
            if yes is False:
                problems.append(
                    f"{profile.name} will pass over its hooks without a word: {how}. "
                    f"{(profile.hooks.trust or 'Trust it').capitalize()}. "
                    "(`coord launch` sees to it by itself.)")
        out[profile.name] = bad or said
        if bad:
            problems.append(f"{profile.name}: {bad}")
    return out


def _heard(profile: str) -> str | None:
    return ask(rq.Health()).heard.get(profile)


@app.command("compact")
def compact(
    keep_days: Annotated[float | None, typer.Option(help="Default: database.keep_days.")] = None,
    as_json: AsJson = False,
) -> None:
    """Cut the old part of the log and drop bytes that nothing needs."""
    done = ask(rq.Compact(keep_days=keep_days))
    if as_json:
        print_json(done)
    else:
        say(f"{done.events_removed} events and {done.blobs_removed} blobs were removed; "
            f"{done.bytes_freed / 1e6:.1f} MB were given back to the disk")
