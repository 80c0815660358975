"""Ordinary actions of a CLI by itself and in a session, compared: what the model is told, and what
is on the disk and in git afterwards."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from coordinator._git_queue import COMMIT, INDEX
from tests.agents.battery.actions import ACTIONS, HELD
from tests.agents.battery.campaign import possible
from tests.agents.battery.ground import Ground
from tests.agents.battery.judging import NOT_RUN
from tests.agents.battery.shape import Action
from tests.agents.conversation import Say, Script, Scripted, Shell

EQUAL, REFUSED, PRICE, HARMED = "equal", "refused by design", "stated price", "harmed"
#: The CLI by itself refuses the command, with or without coord.
REJECTED = re.compile(r"\brejected: .* not permitted")
PEACE_RANK = {EQUAL: 0, NOT_RUN: 0, REFUSED: 0, PRICE: 0, HARMED: 1}
#: What differs from one run of a CLI to the next, in its own words about a command.
NOISE = (
    (re.compile(r"Chunk ID: \w+"), "Chunk ID"),
    (re.compile(r"Original token count: \d+"), "token count"),  # of what stands below, and that is compared
    (re.compile(r"Wall time: [\d.]+ seconds"), "Wall time"),
    (re.compile(r"\b(?:Process Group )?PGID: \d+|Background PIDs: [\d, ]+"), "PIDs"),
    (re.compile(r"<(?:shellId|shell_id|commandId): \w+[^>]*>"), "<shell>"),
    (re.compile(r"0x[0-9a-f]+"), "0x"),
    (re.compile(r"^\[\d+\] +\d+$", re.MULTILINE), "[job]"),
    (re.compile(r"line \d+: +\d+ (?=Killed|Terminated|Aborted)"), "line: "),
    (re.compile(r"^PLACE/.*/\.coord/bin$\n?", re.MULTILINE), ""),  # where agents have `coord` from
    (re.compile(r"strace: Process \d+"), "strace: Process"),
    # What coord tells beside a result (that the tree was laid out anew meanwhile, say): Gemini puts it into the result itself.
    (re.compile(r"\s*<hook_context>\[coord\] [^<]*</hook_context>"), ""),
    # What coord itself sets in its sessions; the other one is empty there.
    (re.compile(r"^(?:COORD_\w+|CLAUDE_CODE_SHELL_PREFIX)$\n?", re.MULTILINE), ""),
)


#: The files by which the gits of sessions queue, also in a repository below.
QUEUES = (COMMIT, INDEX)


@dataclass(frozen=True)
class Left:
    """What came of an action."""

    told: tuple[str, ...]
    ok: tuple[bool, ...]
    tree: tuple[str, ...]

    def differs(self, bare: Left) -> str:
        """In words; nothing where nothing does."""
        if self.told != bare.told:
            return "\n".join(f"told {own!r}\n bare {other!r}" for own, other in zip(self.told, bare.told, strict=True) if own != other)
        if self.ok != bare.ok:
            return f"ended {self.ok}, bare {bare.ok}"
        return "\n".join(f"{'only so' if line in self.tree else 'only bare'}: {line}" for line in sorted({*self.tree} ^ {*bare.tree}))

    def told_with(self, word: str, instead: str) -> Left:
        """The same, with another word in what was told."""
        return replace(self, told=tuple(one.replace(word, instead) for one in self.told))


def actions_of(uid: int) -> list[Action]:
    names = set(possible(ACTIONS, uid))
    return [one for one in ACTIONS if one.name in names]


def acted(ground: Ground, actions: Iterable[Action], seconds: float = 900.0) -> dict[str, Left]:
    """Each action once, by the CLI."""
    found: dict[str, Left] = {}

    def script(_: Scripted) -> Script:
        ground.hold(*HELD)
        for action in actions:
            ground.fresh()
            heard = []
            for step in action.steps:
                heard.append((yield Shell(step)))
            found[action.name] = Left(tuple(plain(ground, one.text) for one in heard), tuple(one.ok for one in heard),
                                      tuple(tree(ground)))
            if any("cd " in step or "pushd" in step for step in action.steps) or "set -" in action.steps[0]:
                yield Shell(f"set +f; cd '{ground.root}'")
        yield Say("done")

    ran = ground.plays(script, seconds)
    assert found.keys() == {one.name for one in actions}, ran.tail()
    ground.nobody_holds()
    return found


def plain(ground: Ground, text: str) -> str:
    """Without the names of places, and what is different each time."""
    text = text.replace(str(ground.folder), "PLACE")
    for noise, instead in NOISE:
        text = noise.sub(instead, text)
    return "\n".join(line for line in text.splitlines() if not line.startswith("[coord]")).strip()


def tree(ground: Ground) -> list[str]:
    """Files with modes, owners and contents; commits, branches and the index."""
    lines = []
    for top in sorted(os.listdir(ground.root)):
        if top in ground.stays or top == ".git":
            continue
        below = ground.root / top
        for file in (below, *(sorted(below.rglob("*")) if below.is_dir() and not below.is_symlink() else ())):
            if not (file.name in QUEUES and ".git" in file.parts):
                lines.append(_line(ground, file))
    asked = (["symbolic-ref", "-q", "HEAD"], ["for-each-ref", "--format=%(refname) %(objectname)"], ["ls-files", "-s"])
    for words in asked:
        lines += subprocess.run(["git", "-c", "safe.directory=*", *words], cwd=ground.root, capture_output=True, text=True,
                                check=False).stdout.splitlines()
    return lines


def _line(ground: Ground, file: Path) -> str:
    found = file.lstat()
    what = os.readlink(file) if file.is_symlink() else _text(file) if file.is_file() else ""
    return f"{file.relative_to(ground.root)} {found.st_mode:o} {found.st_uid}:{found.st_gid} {plain(ground, what)!r}"


def _text(file: Path) -> str:
    """Archives and the like have times in them."""
    try:
        return file.read_text()[:20_000]
    except UnicodeDecodeError:
        return "no text"


def compared(actions: Iterable[Action], bare: dict[str, Left], guarded: dict[str, Left], uid: int) -> tuple[dict[str, str], dict[str, str]]:
    """By name: how each came out for this user, and what differed."""
    outcomes, why = {}, {}
    for action in actions:
        own, other = guarded[action.name], bare[action.name]
        differs = own.differs(other)
        outcomes[action.name] = EQUAL if not differs else REFUSED if action.design else HARMED
        if differs and action.price and uid and not own.differs(other.told_with(*action.price)):
            outcomes[action.name] = PRICE
        if any(REJECTED.search(text) for text in other.told):
            outcomes[action.name] = NOT_RUN
        elif differs:
            why[action.name] = differs
    return outcomes, why
