"""`coord impact FILE`: the callers that a file's change breaks, against its earlier content.

The command asks no coordinator. It reads the repository's files of code, and writes only an index
of what they define and use. Without a coordinator in the repository that index lasts as long as the
command.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec

from coordinator.cli.app import complain, print_json, say, width
from coordinator.cli.regions import placed, text_of
from coordinator.commands.lists import columns, wrapped
from coordinator.commands.signatures import Argument, AsJson, Option, command
from coordinator.files.git import Git, GitError
from coordinator.files.state import StateDir
from coordinator.words import file_names
from coordinator.words.refusals import Code, Refusal

if TYPE_CHECKING:
    from coordinator.meaning.outcomes import Outcome
    from coordinator.source.meaning import Meaning, Progress

#: How many places a list for people names.
SHOWN_MAX = 50


@command("impact")
def impact(
    file: Annotated[str, Argument("A file of code, as it is now.")],
    against: Annotated[str | None, Option("A file of what it was.", metavar="OLDFILE")] = None,
    git: Annotated[
        str | None, Option("What it was in this commit (default: HEAD).", metavar="REV")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what a change of a file breaks, and where: callers that no longer fit, by region."""
    if against is not None and git is not None:
        raise Refusal(Code.INVALID, "A file has one past: give --against or --git.",
                      next="`coord impact FILE --against OLDFILE`")
    from coordinator.source.meaning import Meaning  # not for each start of `coord`

    path, name, root = placed(file, "impact")
    with Meaning(root, _index_of(root), forks=True) as meaning:
        meaning.begin()  # it reads its own in while git is asked
        _check_known(file, name)
        new = text_of(path, file, "impact") if os.path.lexists(path) else None
        if against is not None:
            old: bytes | None = text_of(os.path.realpath(against), against, "impact")
            past = file_names.shown(against)
        else:
            past = git or "HEAD"
            old = _committed(path, file, past)
        if new is None and old is None:
            raise Refusal(
                Code.INVALID, f"There is no file {file_names.shown(file)}, now or in {past}.",
                next="`ls` shows what is here.")
        outcome = _judged(meaning, name, old, new, quiet=as_json)
    if as_json:
        print_json({**msgspec.to_builtins(outcome), "against": past})
        return
    _tell(outcome, past)


def _check_known(typed: str, name: str) -> None:
    """
    Raises:
        Refusal: INVALID.
    """
    from coordinator.regions.languages import has_meaning

    if os.path.isdir(typed):  # noqa: PTH112
        raise Refusal(Code.INVALID, f"{file_names.shown(typed)} is a directory; what a change of a "
                      "file in it breaks can be told.", next="`coord impact FILE`")
    if "::" in typed:
        file = typed.partition("::")[0]
        raise Refusal(Code.INVALID, f"{file_names.shown(typed)} is a part of a file; what breaks "
                      "is told of the whole file.", next=f"`coord impact {shlex.quote(file)}`")
    if not os.path.lexists(typed) and not has_meaning(name):
        raise Refusal(Code.INVALID, f"There is no file {file_names.shown(typed)}. Nothing was "
                      "looked at.", next="`coord impact FILE`")
    if not has_meaning(name):
        raise Refusal(Code.INVALID, f"{file_names.shown(typed)} is in no language of which coord "
                      "knows what a change breaks (Python, JavaScript, TypeScript, Go, Java).",
                      next=f"`coord regions {shlex.quote(typed)}`")


def _judged(meaning: Meaning, name: str, old: bytes | None, new: bytes | None, *,
            quiet: bool) -> Outcome:
    from coordinator.source.reader_process import NoAnswerError

    shows = sys.stderr.isatty() and not quiet

    def show_progress(now: Progress) -> None:
        if shows and now.read:
            sys.stderr.write(f"\rreading {now.done:,} of {now.files:,} files ")

    try:
        done = meaning.read_all(show_progress)
    except NoAnswerError as bad:
        raise Refusal(Code.STORAGE, f"The files could not be read ({bad}).") from None
    if shows and done.read:
        sys.stderr.write("\r\x1b[K")
    return meaning.judge(name, old, new)


def _index_of(root: str) -> str:
    """Return the path of the index, beside this user's own coordinator; empty if there is none."""
    state = StateDir(Path(root))
    with contextlib.suppress(Refusal, OSError):
        if state.path.is_dir():
            state.check_ours()
            return str(state.meaning)
    return ":memory:"


def _committed(path: str, typed: str, commit: str) -> bytes | None:
    """Return the file's content in a commit; None if the commit has no such file.

    Raises:
        Refusal: INVALID: no such commit, or no git repository.
    """
    folder = Path(path).parent
    while not folder.is_dir():
        folder = folder.parent
    git = Git(folder)
    revision = f"{commit}^{{commit}}"
    with contextlib.suppress(GitError):
        return git.blob(f"{revision}:./{os.path.relpath(path, folder)}")
    if commit.startswith("-") or git.maybe("rev-parse", "--verify", "--quiet", revision) is None:
        raise Refusal(
            Code.INVALID, f"git knows no commit {commit!r} here.",
            next=f"`coord impact {shlex.quote(typed)} --against OLDFILE` compares with a file.",
        )
    return None


def _tell(outcome: Outcome, past: str) -> None:
    _tell_names(outcome, past)
    if outcome.breaks:
        say(f"{_count(len(outcome.breaks), 'place')} in "
            f"{_count(len({other_breakage.path for other_breakage in outcome.breaks}), 'file')} "
            f"break{'s' * (len(outcome.breaks) == 1)}:")
    for breakage in outcome.breaks[:SHOWN_MAX]:
        guess = "" if breakage.sure else " (taken for it by its name alone)"
        _fold_sentence(f"{file_names.shown(breakage.path)}:{breakage.line}: "
                       f"{breakage.why}{guess}", 2)
    if len(outcome.breaks) > SHOWN_MAX:
        say(f"  and {len(outcome.breaks) - SHOWN_MAX} more (`--json` has all)")
    if outcome.unseen:
        say("What cannot be seen through:")
    for unclear in outcome.unseen[:SHOWN_MAX]:
        _fold_sentence(f"{file_names.shown(unclear.path)}:{unclear.line}: {unclear.why}", 2)
    if outcome.note and outcome.changed:
        _fold_sentence(f"Note: {outcome.note}.")
    say(outcome.outcome)
    if outcome.required:
        asked = " ".join(shlex.quote(text) for text in outcome.required[:20])
        more = " …" if len(outcome.required) > 20 else ""
        who = "" if os.environ.get("COORD_AGENT") else " --agent NAME"
        complain(f"  next: coord lock {asked}{more}{who}")


def _tell_names(outcome: Outcome, past: str) -> None:
    """Print the names that have changed."""
    name = file_names.shown(outcome.path)
    if outcome.note and not outcome.changed:
        _fold_sentence(f"{name} against {past}: {outcome.note}; nothing more can be said.")
    elif not outcome.changed:
        _fold_sentence(f"{name} against {past}: nothing that others use takes less than before.")
    else:
        _fold_sentence(f"{name} against {past}: {_count(len(outcome.changed), 'name')} no longer "
                       "what "
                       f"{'it was' if len(outcome.changed) == 1 else 'they were'}")
        for line in columns(
            ("name", "why"),
            [(what.partition("::")[2], why) for what, why in outcome.changed[:SHOWN_MAX]],
            "/=", width(),
        ):
            say(line)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _fold_sentence(text: str, indent: int = 0) -> None:
    """Print a sentence, folded at the terminal's width."""
    for line in wrapped(text, width(), indent):
        say(line)
