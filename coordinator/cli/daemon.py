"""`coord init`, `up`, `down`, `serve`, `doctor`, `compact`: the coordinator itself."""

from __future__ import annotations

import os
import sys
import time
from functools import partial
from pathlib import Path
from typing import Annotated

import apsw
import typer

from coordinator.cli.app import AsJson, app, ask, complain, print_json, say
from coordinator.client.wire import Wire, connect, locate_root, start
from coordinator.files.roots import checkout
from coordinator.files.state import StateDir
from coordinator.launch import recovery
from coordinator.profiles import profiles
from coordinator.settings import load
from coordinator.words import requests as rq
from coordinator.words.refusals import CATALOGUE, Code, Refusal

HttpPort = Annotated[
    int | None, typer.Option("--http", help="Also open the HTTP door on this port (0: any).")
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
    no_guard: Annotated[
        bool, typer.Option("--no-guard", help="Leave git's commit and push hooks alone.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Prepare this folder: `.coord/`, `coord.toml`, `context_archive/`; keeps what exists.

    With --agent (or --all) the agent's settings are changed so that it asks coord before it
    writes, and git's hooks so that a commit does (`coord guard`); what would change is shown
    first. --remove takes out exactly that.
    """
    from coordinator.cli import wiring
    from coordinator.wiring import exclude

    root = locate_root()
    if remove:
        names = agent or []
        wanted = (wiring.chosen(root, names, False) if names
                  else [p for p in profiles(root) if p.wire])
        gone = wiring.wire(root, wanted, yes=yes, remove=True, user=user)
        exclude.take_out(root, gone)
        if not no_guard:
            wiring.guard_out(root, yes=yes)
        return
    wanted = wiring.chosen(root, agent or [], everything)
    made = _prepare(root)
    git = checkout(str(root)) is not None
    notes: list[str] = []
    if wanted:
        changed = wiring.wire(root, wanted, yes=yes, remove=False, user=user)
        notes += wiring.keep_out_of_commits(root, changed) if git else []
        notes += wiring.guard_in(root, yes=yes) if not no_guard else []
    if as_json:
        print_json({"root": str(root), "made": made, "git": git, "notes": notes})
        return
    say(f"{root} is ready" + (f" (made {', '.join(made)})" if made else " (it was already)"))
    if not git:
        say("note: this is not a git repository; coord works, but git cannot show what changed")
    for note in notes:
        say(f"note: {note}")
    if wanted:
        say("next: coord doctor proves the wiring; then start your agents as you always do")
    else:
        say("next: coord init --agent claude-code wires an agent; "
            "coord agents profiles lists which there are")


def _prepare(root: Path) -> list[str]:
    """Make what is not there yet; what was made."""
    state = StateDir(root)
    made = []
    try:
        if not state.path.is_dir():
            made.append(str(state.path.relative_to(root)) + "/")
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
        raise Refusal(
            Code.STORAGE, f"{bad.filename} cannot be written: {bad.strerror}.",
            next=f"Give write access to {root}.",
        ) from None
    load(root)
    return made


@app.command("up")
def up(http: HttpPort = None, as_json: AsJson = False) -> None:
    """Start the coordinator in the background (any command does that by itself)."""
    state = StateDir(locate_root())
    sock = connect(state)
    if sock is not None:
        sock.close()
        already = True
    else:
        already = False
        start(state, http)
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


@app.command("down")
def down(as_json: AsJson = False) -> None:
    """Drain and stop the coordinator. Leases and tasks stay."""
    state = StateDir(locate_root())
    wire = Wire(state, autostart=False)
    try:
        wire.ask("shutdown", b"{}", 10)
    except Refusal as refusal:
        if refusal.code is not Code.DAEMON_DOWN or connect(state) is not None:
            raise
        if as_json:
            print_json({"stopped": False})
        else:
            say("No coordinator was running.")
        return
    finally:
        wire.close()
    deadline = time.monotonic() + 15
    while time.monotonic() < deadline:
        sock = connect(state)
        if sock is None:
            break
        sock.close()
        time.sleep(0.02)
    if as_json:
        print_json({"stopped": True})
    else:
        say("The coordinator has stopped.")


@app.command("serve")
def serve(http: HttpPort = None) -> int:
    """Run the coordinator in the foreground, for supervisors."""
    from coordinator.daemon.__main__ import serve as run

    root = locate_root()
    complain(f"coord: serving {root}; Ctrl-C stops it")
    return run(root, http)


@app.command("doctor")
def doctor(
    restore: Annotated[
        bool, typer.Option("--restore", help="Put the newest good backup in place.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Check the database, the watcher, the settings; say what is in force and from where."""
    root = locate_root()
    state = StateDir(root)
    if restore:
        return _restore(state)
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
    wiring = _wiring(root, problems)
    facts["wiring"] = wiring
    facts["problems"] = problems
    if as_json:
        print_json(facts)
        return 1 if problems else 0
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
    return 1 if problems else 0


def _wiring(root: Path, problems: list[str]) -> dict[str, str]:
    """Each wired agent CLI, and whether its hooks reach the coordinator."""
    from coordinator.cli.wiring import live
    from coordinator.wiring.trust import trusted
    from coordinator.wiring.wire import Wirer

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


def _restore(state: StateDir) -> int:
    """Move the damaged database aside and put the newest good backup in its place."""
    from coordinator.daemon.compose import take_lock
    from coordinator.store import events as ev
    from coordinator.store.database import integrity, open_writer
    from coordinator.store.ledger import Ledger
    from coordinator.words.clock import SystemClock

    with take_lock(state):
        copies = [state.backup, *sorted(state.path.glob(state.backup.name + ".[0-9]*"))]
        for copy in copies:
            if not copy.exists():
                continue
            try:
                db = apsw.Connection(str(copy), flags=apsw.SQLITE_OPEN_READONLY)
                good = integrity(db) == "ok"
                db.close()
            except apsw.Error:
                good = False
            if good:
                break
        else:
            raise Refusal(
                Code.STORAGE, f"There is no good backup in {state.path}; nothing was changed.",
                next=f"Move {state.database} away to start with an empty one.",
            )
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        for suffix in ("", "-wal", "-shm"):
            damaged = state.database.with_name(state.database.name + suffix)
            if damaged.exists():
                damaged.rename(damaged.with_name(f"damaged-{stamp}{suffix}"))
        state.database.write_bytes(copy.read_bytes())
        os.chmod(state.database, 0o600)  # noqa: PTH101
        db = open_writer(state.database)
        skip = 1_000_000

        def job(tx: object) -> None:
            from coordinator.store.ledger import Tx

            assert isinstance(tx, Tx)
            tx.raise_counters(skip)
            tx.record(ev.CountersRaised(by=skip))

        Ledger(db, state.database).run(job, SystemClock().now_ms())
        db.close()
    say(f"{copy.name} is in place; the damaged file is kept as {state.path}/damaged-{stamp}.")
    say("What happened after that backup is lost; fencing tokens go on above all that were given.")
    return 0


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
        say(f"{done.events_removed} events and {done.blobs_removed} blobs were removed")


@app.command("help")
def help_(topic: Annotated[str, typer.Argument(help="exit-codes")] = "exit-codes") -> None:
    """Topics: exit-codes."""
    if topic != "exit-codes":
        raise Refusal(Code.INVALID, f"There is no topic {topic!r}.", next="`coord help exit-codes`")
    say("  0  done")
    by_exit: dict[int, list[str]] = {}
    for code, row in CATALOGUE.items():
        by_exit.setdefault(row.exit, []).append(code.value)
    for number, codes in sorted(by_exit.items()):
        say(f"{number:>3}  {', '.join(codes)}")
    say("130  interrupted")
