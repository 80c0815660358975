"""Deciding whether a git command of an agent may run now. The script before git in a session asks.

A command that changes the whole working tree waits for a quiet moment and then has the turn until
it ends. A commit, or an addition to the index, is checked for what others hold, whatever hooks it
skips. The module runs the real git to learn what a command would do, and changes nothing.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NoReturn, TypeVar

import msgspec

from coordinator import _git_queue
from coordinator.client.client import Client
from coordinator.files.git import clean_environment
from coordinator.git_guard import affected_files, sandboxed
from coordinator.git_guard.commit_check import CommitCheck
from coordinator.git_guard.program import Program
from coordinator.rules import git_commands, git_objects
from coordinator.settings import load
from coordinator.words import requests as rq
from coordinator.words.refusals import HELD, Code, Refusal
from coordinator.words.texts import harmless

T = TypeVar("T")
#: Exit codes: it may run; it may, and has the turn; it may not.
RUN, HAS_TURN, STOP = 0, 10, 1
#: Names the process of the git that has the turn, for the gits that it calls.
TURN = "COORD_GIT_TURN"
#: How often (seconds) to ask again while others are at work.
AGAIN_S = 0.25
#: How many commits that a command replaces are asked about.
REPLACED_MAX = 200
#: How many aliases in a row are followed.
ALIASES_MAX = 10
#: Hook managers that put aside what is not staged, by their programs, and how many words of a
#: command may stand before the program's own name and with it.
MANAGERS, MANAGER_WORDS = frozenset({"pre-commit", "pre_commit", "prek", "lint-staged"}), 3
#: They move HEAD, unless they pass for another reason.
_OF_HEAD = frozenset({"update-ref", "symbolic-ref", "branch"})


def main(arguments: Sequence[str]) -> int:
    """REAL PID WORD…: the real git, the process that becomes it, and how it was called."""
    real, pid, *words = arguments
    return _answered(lambda: _judged(real, int(pid), words), lambda: _unasked(real, words))


def commit(arguments: Sequence[str]) -> int:
    """REAL WORD…: make this commit, if it may happen; git's exit code."""
    real, *words = arguments

    def make() -> int | None:
        _announce(real, words)
        code = beside_others(real, words)
        return code if code is not None else _judged(real, os.getpid(), words) or None

    code = _answered(make, lambda: _unasked(real, words) or None)
    if code is not None:
        return code
    git, rest, _ = _called(real, words)
    _become(git, rest, words)


def apply(arguments: Sequence[str]) -> int:
    """REAL WORD…: apply this patch, if it may happen; git's exit code. What comes through a pipe is
    read once, judged, and then given to git."""
    real, *words = arguments
    git, rest, _ = _called(real, words)
    if git_objects.reads_patch(rest):
        with tempfile.TemporaryFile() as spool:
            shutil.copyfileobj(sys.stdin.buffer, spool)
            spool.flush()
            os.dup2(spool.fileno(), sys.stdin.fileno())
            os.lseek(sys.stdin.fileno(), 0, os.SEEK_SET)
    code = _answered(lambda: _judged(real, os.getpid(), words), lambda: _unasked(real, words))
    if code not in (RUN, HAS_TURN):
        return code
    if code == HAS_TURN:
        os.environ[TURN] = str(os.getpid())
    return _become(git, rest, words)


def stash(arguments: Sequence[str]) -> int:
    """REAL WORD…: stash, or bring back what was, if it may happen; git's exit code."""
    from coordinator.git_guard import stash as stashes

    real, *words = arguments
    git, rest, top = _called(real, words)
    if git_objects.used_stash(rest) is not None:  # another may put an entry on top meanwhile
        _enter_queue(git, rest)
    code = _answered(lambda: _judged(real, os.getpid(), words), lambda: _unasked(real, words))
    if code not in (RUN, HAS_TURN):
        return code
    if code == HAS_TURN:
        os.environ[TURN] = str(os.getpid())
    _enter_queue(git, rest)
    made = _answered(lambda: stashes.push(git, Path(top), rest), lambda: None)
    return made if made is not None else _become(git, rest, words)


def _become(git: Program, rest: list[str], words: list[str]) -> NoReturn:
    """Become the real git once no other git of a session uses this index."""
    _enter_queue(git, rest)
    _git_queue.become(git.path, words)
    raise AssertionError("it has become git")


def _enter_queue(git: Program, rest: list[str]) -> None:
    """Wait until no other git of a session uses this index."""
    if "GIT_INDEX_FILE" not in os.environ and (own := git.line("rev-parse", "--absolute-git-dir")):
        _git_queue.enter(own, rest[0])
        os.environ[_git_queue.HOLDER.decode()] = str(os.getpid())


def _announce(real: str, words: list[str]) -> None:
    """Tell the coordinator on top of which commit this one is made.

    Raises:
        Refusal: LOCKED: it would replace another agent's.
    """
    git, rest, top = _called(real, words)
    check = CommitCheck(Path(top), os.environ) if top else None
    head = git.line("rev-parse", "-q", "--verify", "HEAD")
    if check is None or not check.used or check.is_off() or not head or rest[:1] != ["commit"]:
        return
    request = _make_request(git, check, os.getpid(), rest, Path(top))
    with Client(check.root, agent="", token=None) as client:
        client.call(msgspec.structs.replace(request, parent=head))


def _answered(ask: Callable[[], T], without: Callable[[], T]) -> T | int:
    """The answer; if there is none, print the reason and return an exit code. `without`: the answer
    if a sandbox keeps us from the coordinator."""
    try:
        try:
            return ask()
        except Refusal as refusal:
            if refusal.code is not Code.SANDBOXED:
                raise
            return without()
    except Refusal as refusal:
        message = refusal.message
        if refusal.code not in HELD:
            message = ("nobody can tell whether others are at work here, "
                       f"so git was not run: {message}")
        sys.stderr.write(harmless(f"coord: {message}\n  next: {refusal.next}\n"))
    except KeyboardInterrupt:
        return 130
    except Exception as bad:
        sys.stderr.write(harmless(f"coord: it met a bug, so git was not run ({type(bad).__name__}: "
                                  f"{bad}). Please report it.\n"))
    return STOP


def _unasked(real: str, words: list[str]) -> int:
    """Judge in a sandbox that keeps us from the coordinator: read-only files may be held, and are
    left alone. git does all else, as it would without coord."""
    git, rest, top = _called(real, words)
    if rest[0] == "commit":
        taken = affected_files.list_committed(git, Path(top), rest)[0]
    elif rest[0] in git_commands.INDEXING:
        taken = affected_files.list_indexed(git, Path(top), rest)
    else:
        taken = Program(git.path, ["-C", top]).names("ls-files", "-z", "--full-name")
    text = sandboxed.stopped(Path(top), taken, rest[0])
    sys.stderr.write(harmless(text))
    return STOP if text else RUN


def _called(real: str, words: list[str]) -> tuple[Program, list[str], str]:
    """The git with its options, the subcommand and what follows it, and the top of its tree."""
    rest = git_commands.git_command(["git", *words])
    git = Program(real, words[: len(words) - len(rest)])
    return git, _meant(git, rest), git.line("rev-parse", "--show-toplevel")


def _judged(real: str, pid: int, words: list[str]) -> int:
    git, rest, top = _called(real, words)
    check = CommitCheck(Path(top), os.environ) if top else None
    if check is None or not check.used or not rest:
        return RUN
    if (trees := _list_moved_trees(git, top, rest)) is not None:
        for tree in trees:
            _wait_for_turn(check.root, _make_request(git, check, pid, rest, tree))
        return HAS_TURN if trees else RUN
    if git_commands.stays_in_git(rest) and not _is_shared(git, top, rest[0]):
        return RUN
    if _takes_in(rest):
        return _taken_in(git, check, Path(top), rest)
    if rest[0] in _OF_HEAD and _passes(git, rest):
        return RUN
    if (code := _judge_named(git, check, top, rest)) is not None:
        return code
    _wait_for_turn(check.root, _make_request(
        git, check, pid, rest, Path(top) if _is_usual(git, top) else check.root))
    _tell_merged(git, check, rest)
    return HAS_TURN


def _tell_merged(git: Program, check: CommitCheck, rest: list[str]) -> None:
    """Tell before a merge what other working trees change of what it brings together."""
    for branch in (None, *rest[1:]) if rest[0] == "merge" else ():
        if branch is None or git.line("rev-parse", "-q", "--verify", f"refs/heads/{branch}"):
            check.tell_overlaps([], branch)


def _judge_named(git: Program, check: CommitCheck, top: str, rest: list[str]) -> int | None:
    """Judge a command by the files that it changes; None where it changes the whole tree."""
    if (written := affected_files.list_patched(git, rest)) is not None:
        return _judge_files(check, written, rest[0])
    names_commit = partial(_names_commit, git, top, rest[0])
    if rest[0] in _OF_HEAD or git_commands.wide(rest, names_commit):
        return None
    if rest[0] == "stash":
        return _put_aside(git, check, rest)
    return _brought_back(git, check, rest[0], git_commands.brought_back(rest, names_commit))


def _make_request(git: Program, check: CommitCheck, pid: int, rest: list[str],
                  tree: Path) -> rq.GitTurn:
    if (tool := _find_parent(pid)) and _is_manager(tool):
        pid = tool  # what it puts aside comes back before it ends
    if tree.is_relative_to(check.root):  # which the coordinator may see elsewhere
        tree = tree.relative_to(check.root)
    return rq.GitTurn(pid=pid, top=str(tree), command=" ".join(["git", *rest]),
                      replaces=_list_replaced(git, rest))


def _find_parent(pid: int) -> int:
    """The process that started this one; 0 if it has ended."""
    with contextlib.suppress(OSError, ValueError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


def _is_manager(pid: int) -> bool:
    """Whether this process runs a hook manager's program."""
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:MANAGER_WORDS]
        return any(Path(os.fsdecode(word)).stem in MANAGERS for word in words)
    return False


def _list_moved_trees(git: Program, top: str, rest: list[str]) -> list[Path] | None:
    """The working trees that a command removes, moves or empties, or whose branch it renames; None
    where it is no such command."""
    if (text := git_objects.ended_tree(rest)) is not None:
        return [Path(os.path.realpath(Path(top, git.line("rev-parse", "--show-prefix"), text)))]
    if (names := git_objects.ended_submodules(rest)) is not None:
        listed = git.names("ls-files", "-s", "-z", "--full-name", "--", *names)
        places = [Path(top, line.partition("\t")[2]) for line in listed
                  if line.startswith("160000")]
        return [place for place in places if (place / ".git").exists()]
    branch = git_objects.moved_branch(rest)
    if branch is None:
        return None
    place, trees = Path(), []
    for line in git.line("worktree", "list", "--porcelain").splitlines():
        word, _, text = line.partition(" ")
        place = Path(text) if word == "worktree" else place
        if (word, text) == ("branch", f"refs/heads/{branch}"):
            trees.append(place)
    return trees


def _list_replaced(git: Program, rest: list[str]) -> list[str]:
    """The parents of the commits that this command takes out of the branch."""
    kept = git_objects.kept_commit(rest)
    if kept is None or not git.line("rev-parse", "-q", "--verify", f"{kept}^{{commit}}"):
        return []
    text = git.line("rev-list", "--first-parent", "--parents", f"-n{REPLACED_MAX}", "HEAD",
                    f"^{kept}")
    return [words[1] for line in text.splitlines() if len(words := line.split()) > 1]


def _takes_in(rest: list[str]) -> bool:
    """Whether it takes named or staged files into the index or a commit."""
    return rest[0] == "commit" or (rest[0] in git_commands.INDEXING and not (
        rest[0] == "update-index" and git_commands.wide(rest)))


def _names_commit(git: Program, top: str, name: str, word: str) -> bool:
    """Whether a word of the git command of this name is a commit."""
    return word == "-" or bool(
        git.line("rev-parse", "--verify", "--quiet", f"{word}^{{commit}}")
        or (name == "checkout" and _begins_from_a_remote(git, top, word)))


def beside_others(real: str, words: list[str]) -> int | None:
    """Carry out a commit in a view of its own. Returns git's exit code, None if it needs no view.
    """
    from coordinator.git_guard import commit as commits

    git, rest, top = _called(real, words)
    check = CommitCheck(Path(top), os.environ) if top else None
    if check is None or not check.used or rest[:1] != ["commit"]:
        return None
    return commits.run(git, check, Path(top), rest, words, lambda inside, rest, parts: _taken_in(
        inside, check, Path(top), rest, parts))


def _judge_files(check: CommitCheck, files: list[str], name: str) -> int:
    """Whether nobody else holds one of these files. What git calls for it is a part of it."""
    text = check.index_of(files, name)
    sys.stderr.write(harmless(text))
    return STOP if text else HAS_TURN


def _put_aside(git: Program, check: CommitCheck, rest: list[str]) -> int:
    """Allow a `stash` of named files only without what others hold. The git commands that it runs
    itself (it fills an index of its own, and takes a patch back) are a part of it, and not checked.
    """
    named = git_commands.list_stashed(rest[1:])
    if not named:
        return HAS_TURN  # it lists, shows, or only writes objects, with an index of its own
    taken = git.names("diff", "--name-only", "-z", "--no-renames", "HEAD", "--", *named)
    if any(map(_with_untracked, rest[1:])):
        taken += git.names("ls-files", "-z", "--others", "--full-name", "--", *named)
    return _judge_files(check, taken, "stash")


def _brought_back(git: Program, check: CommitCheck, name: str,
                  what: git_commands.BroughtBack | None) -> int:
    """Allow a `checkout` or the like of named files only without what others hold, file or index. A
    session protects the files themselves, but not their index entries."""
    if what is None:
        return RUN
    # Only a `reset` changes what the index or the tree alone has.
    only = ("--diff-filter=a",) if what.tree else ()
    listed = ("diff", "--name-only", "-z", "--no-renames", *only)
    commit = (what.commit,) if what.commit else ()
    taken = git.names(*listed, "--cached", *commit, "--", *what.files) if commit else []
    if what.tree:
        taken += git.names(*listed, *commit, "--", *what.files)
    text = check.index_of(list(dict.fromkeys(taken)), name)
    sys.stderr.write(harmless(text))
    return STOP if text else RUN


def _with_untracked(word: str) -> bool:
    """Whether `stash` takes files that git does not track, too."""
    return word.startswith(("--inc", "--al")) or (
        word[:1] == "-" and word[:2] != "--" and not {"u", "a"}.isdisjoint(word.split("m")[0]))


def _begins_from_a_remote(git: Program, top: str, word: str) -> bool:
    """Whether `git checkout WORD` may make a branch of one that a remote has: no file is called so.
    """
    place = Path(top, git.line("rev-parse", "--show-prefix"), word)
    return not os.path.lexists(place) and bool(git.line("for-each-ref", f"refs/remotes/*/{word}"))


def _meant(git: Program, rest: list[str]) -> list[str]:
    """Replace an alias by its subcommand."""
    for _ in range(ALIASES_MAX):
        if not rest or rest[0].startswith("-"):
            return rest
        text = git.line("config", "--get", f"alias.{rest[0]}")
        if not text or text.startswith("!"):
            return rest
        rest = [*git_commands.git_command(["git", *text.split()]), *rest[1:]]
    return rest


def _is_shared(git: Program, top: str, name: str) -> bool:
    """Whether it would change the git of this tree, and not another repository's, which has this as
    its working tree for a moment, or an index of its own."""
    if not _is_usual(git, top):
        return False
    index = os.environ.get("GIT_INDEX_FILE")
    if not index or name not in (*git_commands.INDEXING, "read-tree"):
        return True
    text = git.line("rev-parse", "--absolute-git-dir")
    return Path(top, index).resolve().is_relative_to(Path(text).resolve())


def _is_usual(git: Program, top: str) -> bool:
    """Whether it works on the git that this tree says is its own."""
    usual = Program(git.path, ["-C", top], clean_environment())
    return git.line("rev-parse", "--absolute-git-dir") == usual.line(
        "rev-parse", "--absolute-git-dir")


def _passes(git: Program, rest: list[str]) -> bool:
    """Whether it leaves HEAD and its branch unchanged."""
    head = git.line("symbolic-ref", "-q", "HEAD")
    if rest[0] == "branch":
        plain = [word for word in rest[1:] if not word.startswith("-")]
        return len(plain) > 1 and f"refs/heads/{plain[0]}" != head
    moved = git_commands.moved_ref(rest)
    if moved is None or (moved.ref and moved.ref not in ("HEAD", head)):
        return True
    new, old = (git.line("rev-parse", "-q", "--verify", text) for text in (moved.to, "HEAD"))
    return bool(new) and new == old


def _taken_in(git: Program, check: CommitCheck, top: Path, rest: list[str],
              as_staged: Sequence[str] = ()) -> int:
    """Allow a commit, or a change of the index, only without what others hold."""
    name = rest[0]
    if name == "commit":
        listed, saved = affected_files.list_committed(git, top, rest)
        text = check.commit_of(listed, saved.difference(as_staged))
        if not text and listed:
            check.tell_overlaps(listed)
    elif git_commands.asks_the_user(rest):
        return RUN  # the commit is looked at
    else:
        text = check.index_of(affected_files.list_indexed(git, top, rest), name)
    sys.stderr.write(harmless(text))
    return STOP if text else RUN


def _wait_for_turn(root: Path, request: rq.GitTurn) -> None:
    """
    Raises:
        Refusal: others are at work, and were so all the time; or it is unknown.
    """
    patience = load(root).settings.hooks.git_wait_s
    began, is_said = time.monotonic(), False
    while True:
        try:
            with Client(root, agent="", token=None) as client:
                client.call(request)
            return
        except Refusal as refusal:
            if refusal.code not in HELD or refusal.facts.get("idle") or (
                    time.monotonic() - began >= patience):
                raise
            if not is_said:
                sys.stderr.write(f"coord: waiting up to {patience:g} s for a quiet moment…\n")
                is_said = True
        time.sleep(AGAIN_S)
