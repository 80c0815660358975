"""`coord trust`: a person trusts parts of a repository that run commands or weaken protection.

The module decides what to show and ask. Profiles and settings know what needs trust, and
`files/trusted.py` what has it. An agent is never asked.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec

from coordinator import profiles, settings
from coordinator.cli.app import agent_around, confirm, print_json, say
from coordinator.client.locating import locate_root
from coordinator.commands.lists import printable
from coordinator.commands.signatures import AsJson, Option, command
from coordinator.files import trusted
from coordinator.git_guard.committer import Committer
from coordinator.words.clock import now_iso
from coordinator.words.refusals import Code, Exit, Refusal


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """One thing in a repository that counts only once a person has trusted it."""

    what: str
    data: bytes
    """Exactly the bytes to trust."""
    says: list[str]
    """Its effects, one sentence each."""
    text: str
    """The text for a person."""


@command("trust")
def trust(
    yes: Annotated[bool, Option("Show and trust all of it; nobody is asked.", "-y")] = False,
    show: Annotated[
        bool, Option("Show what is trusted and what is not; change nothing.", "--list")
    ] = False,
    withdraw: Annotated[bool, Option("Trust nothing of this repository any more.")] = False,
    as_json: AsJson = False,
) -> int:
    """Look at profiles and settings of this repository before they are used.

    A repository can bring `agents/*.toml`, which name commands that coord runs, and a `coord.toml`
    that weakens protection or names one, too. Both count only after you have seen them here; when
    they change, you are asked again.
    """
    root = locate_root()
    if show:
        _list(root, as_json)
        return 0
    _people_only(root)
    if withdraw:
        _withdraw(root, as_json)
        return 0
    given = []
    open_ = list(untrusted(root))
    if as_json and open_ and not yes:
        raise Refusal(Code.UNTRUSTED, "With --json nobody is asked. Nothing was trusted.",
                      next="`coord trust --list --json` shows it, `--yes` trusts it.")
    for subject in open_:
        if as_json:
            _trust(root, subject)
        elif not ask_for(root, subject, yes=yes):
            say(f"{subject.what}: not trusted; it is not used")
            continue
        given.append(subject.what)
    if as_json:
        print_json({"trusted": given})
    elif not open_:
        say("Nothing here waits for your trust.")
    if settings.FILE in given and not as_json:
        say("next: `coord down`; the coordinator reads settings when it starts")
    return Exit.OK if len(given) == len(open_) else Exit.INCOMPLETE


def _withdraw(root: Path, as_json: bool) -> None:
    gone = trusted.withdraw(root)
    if as_json:
        print_json({"withdrawn": [note.what for note in gone]})
    else:
        say(f"No longer trusted: {', '.join(note.what for note in gone)}." if gone
            else "Nothing of this repository was trusted.")
        if settings.FILE in [note.what for note in gone]:
            say("next: `coord down`; a coordinator that runs goes on by what it has read")


def heed(root: Path, name: str) -> None:
    """See that the repository's own profile of this name may be used, if it has one: a person at a
    terminal is asked.

    Raises:
        Refusal: UNTRUSTED: nobody can be asked, or the answer was no.
    """
    what = f"{profiles.OWN}/{name}.toml"
    for subject in untrusted(root):
        if subject.what != what:
            continue
        asked = sys.stdin.isatty() and sys.stdout.isatty() and _is_person(root)
        if not asked or not ask_for(root, subject):
            raise Refusal(
                Code.UNTRUSTED, f"{what} lies in this repository and no person has trusted it "
                f"({' '.join(subject.says)}) Nothing was started or written.", what=what,
            )


def untrusted(root: Path) -> Iterator[Subject]:
    """Yield the parts of this repository that are not trusted yet.

    Raises:
        Refusal: INVALID, STORAGE: it cannot be read.
    """
    for name, data in profiles.untrusted(root).items():
        yield Subject(what=f"{profiles.OWN}/{name}.toml", data=data, says=_profile_says(name),
                      text=data.decode("utf-8", "backslashreplace"))
    weak = settings.weakening(settings.read(root / settings.FILE))
    if weak and not trusted.is_trusted(root, settings.FILE, data := settings.as_shown(weak)):
        yield Subject(
            what=settings.FILE, data=data,
            says=[f"{key}: {settings.follows(key, value)}." for key, value in weak.items()],
            text="\n".join(f"{key} = {json.dumps(value, default=str)}"
                           for key, value in weak.items()),
        )


def ask_for(root: Path, subject: Subject, *, yes: bool = False) -> bool:
    """Show it to a person, and ask. Returns whether it is trusted now.

    Raises:
        Refusal: UNTRUSTED: nobody can be asked.
    """
    say(f"{subject.what} of {root}:")
    for sentence in subject.says:
        say(f"  {sentence}")
    for line in printable(subject.text).splitlines():
        say(f"  | {line}")
    if not yes:
        if not sys.stdin.isatty():
            raise Refusal(
                Code.UNTRUSTED, f"Nobody is there to be asked about {subject.what}. It is not "
                "used.", next="Look at it, then `coord trust --yes`.", what=subject.what,
            )
        if not confirm(f"Trust {subject.what} as it is now?"):
            return False
    _trust(root, subject)
    say(f"{subject.what}: trusted")
    return True


def _trust(root: Path, subject: Subject) -> None:
    try:
        trusted.trust(root, subject.what, subject.data, now_iso())
    except OSError as bad:
        raise Refusal(
            Code.STORAGE, f"Your trust cannot be written down in {trusted.folder()}: "
            f"{bad.strerror}.",
        ) from None


def _profile_says(name: str) -> list[str]:
    says = ["It names commands, which coord will run."]
    if profiles.is_packaged(name):
        says.append(f"It takes the place of coord's own profile {name}.")
    return says


def _is_person(root: Path) -> bool:
    return Committer.of(os.environ, root).person and agent_around() is None


def _people_only(root: Path) -> None:
    if not _is_person(root):
        named = os.environ.get("COORD_AGENT")
        if named and not os.environ.get("COORD_AGENT_TOKEN") and agent_around() is None:
            raise Refusal(
                Code.UNAUTHORIZED, f"COORD_AGENT={named} is set, so this is {named}'s shell for "
                "coord; trust is given by people. Nothing was changed.",
                next="`env -u COORD_AGENT coord trust`, where you have set it yourself.",
            )
        raise Refusal(
            Code.UNAUTHORIZED, "This is an agent's own shell; trust is given by people. Nothing "
            "was changed.", next="Ask the person who runs coord to look: `coord trust`.",
        )


def _list(root: Path, as_json: bool) -> None:
    waiting = list(untrusted(root))
    given = trusted.of_root(root)
    if as_json:
        print_json({
            "root": str(root),
            "untrusted": [{"what": subject.what, "says": subject.says, "text": subject.text}
                          for subject in waiting],
            "trusted": [msgspec.to_builtins(note) for note in given],
        })
        return
    open_ = {subject.what for subject in waiting}
    for note in given:
        if note.what not in open_:
            say(f"{note.what}  trusted since {note.since}")
    for subject in waiting:
        say(f"{subject.what}  not trusted, not used: {' '.join(subject.says)}")
    if not waiting and not given:
        say("Nothing here needs your trust.")
