"""What a shell command obviously does; and what nobody should conclude from it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.rules import commands
from coordinator.rules.versions import Known, Watched, replaced, violated

WIDE = ["git stash", "git stash push", "git reset --hard", "git -C sub reset --hard HEAD~1", "git checkout -- .",
        "git checkout main", "git checkout .", "git restore .", "git clean -fd", "git add -A", "git add .", "git add -u",
        "git commit -am x", "git commit -qam x", "git commit --all", "git switch x", "git rebase main", "git pull",
        "git stash < list", "git stash > list", "git reset --merge x", "git clean --force", "git add --all", "git add --update",
        "git checkout --", "git checkout -- a.py .", "git restore", "git apply", "cd sub && git stash", "FOO=1 sudo git stash", "/usr/bin/git stash", "true; git merge x", "git apply p.diff"]
NOT_WIDE = ["git status", "git stash list", "git commit -m 'all a'", "git commit -m msg -- a.py", "git add a.py",
            "git checkout -- a.py", "git checkout -b new", "git restore a.py", "git clean -n", "git rebase --abort",
            "git stash show", "git stash create", "git stash store x", "git clean -nd", "git checkout -B new", "git checkout --orphan x",
            "git apply --check p", "git apply --stat p", "git add -N a.py", "git commit -m all -- a", "git commit -ma", "git",
            "echo git stash", "git log --all", "git reset a.py", "git diff", "gitk stash"]
TARGETS = [
    ("echo a > f", ["f"]), ("echo a>>f", ["f"]), ("cmd &> log", ["log"]), ("a 2>&1 | tee x y", ["x", "y"]),
    ("sed -i s/a/b/ f", ["f"]), ("sed -i -e 's/a/b/' f g", ["f", "g"]), ("perl -pi -e 's/x/y/' f", ["f"]),
    ("mv a b", ["a", "b"]), ("cp a b c", ["c"]), ("rm -rf d -- -f", ["d"]), ("git mv a b", ["a", "b"]),
    ("git rm a", ["a"]), ("git checkout -- a b", ["a", "b"]), ("git restore a", ["a"]), ("dd if=a of=b", ["b"]),
    ("touch 'a b'", ["a b"]), ("cd src && echo x > a.py", ["src/a.py"]), ("cd $X; echo x > a", []),
    ("truncate -s 0 a", ["a"]), ("cat <<EOF > new\nbody > no\nEOF", ["new", "no"]), ("echo $A > $B", []),
    ("cmd &>> log x", ["log"]), ("tee x &>> y", ["y", "x"]), ("rm a < b", ["a"]), ("rm a << b", ["a"]), ("rm a <<< b", ["a"]),
    ("tee a >| b", ["b", "a"]), ("echo >&2", []), ("rm a >& b", ["b", "a"]), ("cp a", []), ("cp -r a b/ --", ["b/"]),
    ("cp -- a b", ["b"]), ("truncate -s +5 a", ["a"]), ("perl -i.bak -e 's/a/b/' f", ["f"]), ("sed --in-place s/a/b/ f", ["f"]),
    ("ruby -e 'x' f", []), ("rsync a b", ["b"]), ("ln -s a b", ["b"]), ("install -m 644 a b", ["b"]), ("unlink a", ["a"]),
    ("rmdir a", ["a"]), ("shred a", ["a"]), ("git checkout a", []), ("git -C x", []), ("git mv -f a b", ["a", "b"]),
    ("cat a", []), ("sed s/a/b/ f", []), ("ls > /dev/null", ["/dev/null"]),
]
READS = ["ls", "cat a | grep b", "cd src && ls", "git status", "git diff | head", "find . -name x"]
NOT_READS = ["ls && rm a", "ls && cat <(rm a)", "git", "git show --open-files-in-pager", "find . -ok rm {} +", "find . -fprint x",
             "cat a\nrm a", "git push", "python -c 'x'", "ls > a", "echo $(touch a)", "find . -delete", "find . -exec rm {} +", "make", "cat `x`",
             "git diff --output=x", "ls & rm a", "sort -o a b", "uniq a b", "./ls",
             "find . -fls x", "git grep -Osh x", "git diff --ext-diff"]


@pytest.mark.parametrize("command", WIDE)
def test_git_wide(command: str) -> None:
    assert commands.git_wide(command) is not None


@pytest.mark.parametrize("command", NOT_WIDE)
def test_not_git_wide(command: str) -> None:
    assert commands.git_wide(command) is None


@pytest.mark.parametrize(("command", "files"), TARGETS)
def test_targets(command: str, files: list[str]) -> None:
    assert list(commands.targets(command)) == files


@pytest.mark.parametrize("command", READS)
def test_reads_only(command: str) -> None:
    assert commands.reads_only(command)


@pytest.mark.parametrize("command", NOT_READS)
def test_not_reads_only(command: str) -> None:
    assert not commands.reads_only(command)


@given(st.text(max_size=200))
def test_no_text_upsets_it(command: str) -> None:
    commands.git_wide(command)
    commands.targets(command)
    commands.reads_only(command)


hashes = st.sampled_from([None, "a", "b", "c"])


@given(hashes, hashes, hashes, st.sampled_from([None, "me", "other"]), st.booleans())
def test_a_write_is_refused_only_on_content_that_somebody_else_made(
    read: str | None, now: str | None, last: str | None, by: str | None, held: bool
) -> None:
    refused = replaced(Known(read, now, last, by, held), "me")
    if read == now or held or (last == now and by == "me"):
        assert not refused
    else:
        assert refused


@given(hashes, hashes, hashes, st.booleans(), st.booleans(), st.booleans())
def test_a_violation_is_a_change_that_nobody_with_a_right_made(
    before: str | None, now: str | None, recorded: str | None, busy: bool, confined: bool, swapped: bool
) -> None:
    found = violated(Watched(before, now, recorded, busy, confined, swapped))
    if now in (before, recorded) or busy or (confined and not swapped):
        assert not found
    else:
        assert found


def test_commands_that_commit() -> None:
    for command in ("git commit -m x", "cd a && git -C b push", "X=1 git -c a=b merge side", "make; git pull"):
        assert commands.commits(command), command
    for command in ("git status", "git log --grep commit", "echo git commit", "gitk commit", "git"):
        assert not commands.commits(command), command
