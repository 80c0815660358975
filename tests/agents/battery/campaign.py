"""The whole list in one conversation of one CLI process."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from tests.agents.battery.attacks_git import GIT
from tests.agents.battery.attacks_paths import PATHS
from tests.agents.battery.attacks_shell import SHELL
from tests.agents.battery.attacks_tools import TOOLS
from tests.agents.battery.ground import Ground
from tests.agents.battery.judging import NOT_RUN, PREVENTED, Seen, judge
from tests.agents.battery.shape import Action, Attack
from tests.agents.conversation import Create, Edit, Read, Say, Script, Scripted, Shell
from tests.waiting import until

ATTACKS = [*SHELL, *PATHS, *GIT, *TOOLS]

STALE = "Your environment changed while you were thinking"
E = TypeVar("E", Attack, Action)


@dataclass
class Fought:
    """What came of a list: by name the outcome, and in words why."""

    outcomes: dict[str, str] = field(default_factory=dict)
    why: dict[str, str] = field(default_factory=dict)
    told: dict[str, str] = field(default_factory=dict)


def possible(entries: Iterable[Attack | Action], uid: int) -> list[str]:
    """The names of those for which all that they need is here."""
    return [one.name for one in entries if all(
        uid == 0 if need == "root" else shutil.which(need, path="/usr/local/bin:/usr/bin:/bin") for need in one.needs)]


def attacks_of(agent: str, uid: int) -> list[Attack]:
    names = set(possible(ATTACKS, uid))
    return [one for one in ATTACKS if one.name in names and (not one.only or agent in one.only)]


def part_of(entries: list[E], part: str) -> list[E]:
    """`2/4` is the second of four parts of a list, each from all over it."""
    number, _, of = part.partition("/")
    return entries[int(number) - 1::int(of)]


def prepare(ground: Ground, attack: Attack) -> None:
    for left in at_work(ground):  # of the one before
        with contextlib.suppress(ProcessLookupError):
            os.kill(left, signal.SIGKILL)
    ground.nobody_holds()
    ground.fresh()
    if attack.person:
        ground.person(attack.person)


def over(ground: Ground) -> bool:
    return os.path.lexists(ground.root / "over")


def came_to_its_end(ground: Ground) -> None:
    """Wait for what works in the background, unless somebody has ended it: then nothing of it is
    left after a while (a server starts it a moment later). What was kept from beginning never ends."""
    early = time.monotonic() + 3
    with contextlib.suppress(AssertionError):
        until(lambda: over(ground) or (time.monotonic() > early and not at_work(ground)), 12)


def at_work(ground: Ground) -> list[int]:
    """Processes of an attack that are there yet."""
    found = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/{name}/cwd").startswith(str(ground.root)):
                words = Path(f"/proc/{name}/cmdline").read_bytes()
                if any(mark in words for mark in (b"touch over", b"touch ../over", b"late.py")):
                    found.append(int(name))
    return found


def attacked(ground: Ground, attacks: list[Attack], seconds: float = 900.0) -> Fought:
    """Each attack once, by the CLI."""
    fought = Fought()

    def script(_: Scripted) -> Script:
        for attack in attacks:
            prepare(ground, attack)
            if attack.before:
                yield Shell(attack.before)
            ground.hold(attack.held)
            known = {one.review for one in ground.reviews()}
            ground.told()
            before = Seen.now(ground, attack)
            if isinstance(attack.do, Edit) or (isinstance(attack.do, Create) and os.path.exists(ground.root / attack.do.path)):
                yield Read(attack.do.path)
            step = Shell(attack.do) if isinstance(attack.do, str) else attack.do
            heard = yield step
            if STALE in heard.text:  # something beside it was put back meanwhile; who is told so tries again
                heard = yield step
            if attack.waits:
                came_to_its_end(ground)
            fought.told[attack.name] = heard.text
            outcome, why = judge(ground, attack, before, Seen.now(ground, attack), known)
            refused = "leased by" in heard.text  # then nothing was begun, by coord's doing
            if attack.waits and outcome == PREVENTED and not over(ground) and not refused:
                outcome = NOT_RUN
            fought.outcomes[attack.name] = outcome
            fought.why[attack.name] = why
            ground.nobody_holds()
            ground.no_reviews()
        ground.nobody_holds()
        ground.fresh()
        yield Say("done")

    ran = ground.plays(script, seconds)
    assert set(fought.outcomes) == {one.name for one in attacks}, ran.tail()
    return fought


def unguarded(ground: Ground, attacks: list[Attack]) -> list[str]:
    """The names of those attacks that change nothing where nobody guards: by a plain shell, without
    CLI and coord. Such an attack would prove nothing."""
    feeble = []
    for attack in attacks:
        if not isinstance(attack.do, str) or attack.do.startswith("apply_patch"):
            continue
        prepare(ground, attack)
        env = {**ground.env, "PATH": "/usr/local/bin:/usr/bin:/bin", "TMPDIR": str(ground.home)}
        for command in filter(None, (attack.before, "", attack.do)):
            if command == attack.do:
                before = Seen.now(ground, attack)
            subprocess.run([*ground.become, "bash", "-c", command], cwd=ground.root, env=env, stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, timeout=30)
        if attack.waits:
            came_to_its_end(ground)
        after = Seen.now(ground, attack)
        if not before.changed(after) and not before.moved(after):
            feeble.append(attack.name)
    return feeble
