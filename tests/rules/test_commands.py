"""What a shell command obviously does; and what nobody should conclude from it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.rules import commands
from coordinator.rules.versions import Known, Watched, replaced, violated
from tests.effort import examples

WIDE = ["git stash", "git stash push", "git reset --hard", "git -C sub reset --hard HEAD~1", "git checkout -- .",
        "git checkout main", "git checkout .", "git restore .", "git clean -fd", "git add -A", "git add .", "git add -u",
        "git commit -am x", "git commit -qam x", "git commit --all", "git switch x", "git rebase main", "git pull",
         "git stash < list", "git stash > list", "git reset --merge x", "git clean --force", "git add --all", "git add --update",
         "git checkout --", "git checkout -- a.py .", "git restore", "git apply",
        "cd sub && git stash", "git stash push -- .", "git stash push --", "git stash pop", "git stash push -m a.py",
        "git stash push -- a.py :/", "git stash push -a -- sub/.", "FOO=1 sudo git stash", "/usr/bin/git stash", "true; git merge x", "git apply p.diff"]
NOT_WIDE = ["git status", "git stash list", "git commit -m 'all a'", "git commit -m msg -- a.py", "git add a.py",
            "git checkout -- a.py", "git checkout -b new", "git restore a.py", "git clean -n", "git rebase --abort",
            "git stash show", "git stash create", "git stash store x", "git clean -nd", "git checkout -B new", "git checkout --orphan x",
            "git apply --check p", "git apply --stat p", "git add -N a.py", "git commit -m all -- a", "git commit -ma", "git",
            "echo git stash", "git log --all", "git reset a.py", "git diff", "gitk stash",
            "git stash push -- a.py", "git stash push -m mine -- a.py b.py", "git stash -q -- a.py"]
TARGETS = [
    ("rm a \\\n b", ["a", "b"]), ("cd a; cd b; touch c /d; cd /e; touch f; cd -; touch g", ["a/b/c", "/d", "/e/f"]), ("cd a b; touch c", []),
    ("cd a/; touch b b", ["a/b"]), ("cd; touch c", []), ("cd 'a b'; touch c", ["a b/c"]), ("rm '' a", ["a"]), ("rm a*b 'c?d' e~f [g] $h `i` {j,k} l", ["l"]),
    ("rm -- -a b", ["b"]), ("mv -t d a b", ["d", "a", "b"]), ("install a", []), ("rsync -a -- a b c", ["c"]), ("truncate -s %10 a --size=3 b", ["a", "b"]),
    ("truncate -s '<7' c", ["c"]), ("sed -n -i 's/a/b/' f g", ["f", "g"]), ("sed -i --expression 's|a|b|' f", ["f"]), ("sed -i -f 's#x' f", ["f"]),
    ("perl -pi.bak 's/x/y/' f", ["f"]), ("ruby -i -e x f", ["x", "f"]), ("sed --in-place=.b -e 's/a/b/' s/x f", ["f"]), ("sed -E x f", []),
    ("dd of=a if=b of=c", ["a", "c"]), ("git restore --staged a b", ["a", "b"]), ("git checkout x -- a", ["a"]), ("git stash push a", []), ("git rm -r a", ["a"]),
    ("git commit -- a", []), ("a > 1", []), ("a >| x", ["x"]), ("a > b > c", ["b", "c"]), ("rm a > b", ["b", "a"]), ("a >", []), ("rm <<-x a", ["a"]), ("truncate -s 10M a", ["a"]), ("truncate -s +2KiB 3GB.log", ["3GB.log"]), ("tee -a f", ["f"]),
    ("sudo rm a", ["a"]), ("X=1 touch b", ["b"]), ("/bin/rm c", ["c"]), ("./rm d", []), ("rm", []), ("a=b", []), ("touch --help", []), ("shred -u a", ["a"]),
    ("echo a > f", ["f"]), ("echo a>>f", ["f"]), ("cmd &> log", ["log"]), ("a 2>&1 | tee x y", ["x", "y"]),
    ("sed -i s/a/b/ f", ["f"]), ("sed -i -e 's/a/b/' f g", ["f", "g"]), ("perl -pi -e 's/x/y/' f", ["f"]),
    ("mv a b", ["a", "b"]), ("cp a b c", ["c"]), ("rm -rf d -- -f", ["d"]), ("git mv a b", ["a", "b"]),
    ("git rm a", ["a"]), ("git checkout -- a b", ["a", "b"]), ("git restore a", ["a"]), ("dd if=a of=b", ["b"]),
    ("touch 'a b'", ["a b"]), ("cd src && echo x > a.py", ["src/a.py"]), ("cd $X; echo x > a", []),
    ("git stash push -m x -- a b", ["a", "b"]), ("git stash -- a", ["a"]), ("git stash list", []),
    ("truncate -s 0 a", ["a"]), ("cat <<EOF > new\nbody > no\nEOF", ["new", "no"]), ("echo $A > $B", []),
    ("cmd &>> log x", ["log"]), ("tee x &>> y", ["y", "x"]), ("rm a < b", ["a"]), ("rm a << b", ["a"]), ("rm a <<< b", ["a"]),
    ("tee a >| b", ["b", "a"]), ("echo >&2", []), ("rm a >& b", ["b", "a"]), ("cp a", []), ("cp -r a b/ --", ["b/"]),
    ("cp -- a b", ["b"]), ("truncate -s +5 a", ["a"]), ("perl -i.bak -e 's/a/b/' f", ["f"]), ("sed --in-place s/a/b/ f", ["f"]),
    ("ruby -e 'x' f", []), ("rsync a b", ["b"]), ("ln -s a b", ["b"]), ("install -m 644 a b", ["b"]), ("unlink a", ["a"]),
    ("rmdir a", ["a"]), ("shred a", ["a"]), ("git checkout a", []), ("git -C x", []), ("git mv -f a b", ["a", "b"]),
    ("cat a", []), ("sed s/a/b/ f", []), ("ls > /dev/null", ["/dev/null"]),
]
SAID = [("FOO=1 sudo git stash", "git stash"), ("/usr/bin/git stash pop", "git stash pop"), ("cd sub && git -C x  'stash'", "git -C x stash"),
        ("git status; git merge x; git pull", "git merge x"), ("git \\\n  stash", "git stash"), ("echo 'a\ngit stash", "git stash"),
        ("(git -c a=b --no-pager reset --hard)", "git -c a=b --no-pager reset --hard"), ("if true; then git am x; fi", "git am x"),
        ("! git revert x", "git revert x"), ("nice nohup time env A=b git read-tree x", "git read-tree x"), ("bin/git stash", "git stash"),
        ("./git stash", None), ("a=b", None), ("=a git stash", None), ("git --git-dir x --work-tree y --namespace z stash", "git --git-dir x --work-tree y --namespace z stash"),
        ("git cherry-pick a", "git cherry-pick a"), ("git bisect good", "git bisect good"), ("git sparse-checkout set a", "git sparse-checkout set a"),
        ("git filter-branch x", "git filter-branch x"), ("git merge --abort", None), ("git clean -n --force", "git clean -n --force"),
        ("git reset --keep x", "git reset --keep x"), ("git checkout -- ./", "git checkout -- ./"), ("git checkout -- :/", "git checkout -- :/"),
        ("git restore '*'", "git restore *"), ("git restore ':(top)'", "git restore :(top)"), ("git add :", "git add :"), ("git commit -amx", "git commit -amx"),
        ("git commit -mab", None), ("git commit", None), ("git stash push x", "git stash push x"), ("git stash -- .", "git stash -- ."),
        ("git stash drop", "git stash drop"), ("git stash apply -- a", "git stash apply -- a"), ("git stash push -- a/./.", "git stash push -- a/./."),
        ("git stash push -- a/.//", "git stash push -- a/.//"), ("git mv a b", None)]
READS = ["'ls' \"a\"", "l\\s a", "git diff -- a.py", "git log --oneline -- a", "cat 'a'\"b\"c\\ d", "ls|cat", "ls;pwd", "ls\ta", "echo \"a\\\"b\"", "find . -name 'x\"y'",
         "rg -n -- x", "file a -b", "git blame a | head -n 3 | tail", "cd a || pwd", "which ls", "type ls", "du a", "cut -f1 a", "wc -l a", "stat a", "true",
         "git ls-files", "git rev-parse HEAD", "git show x", "git grep x", "ls $HOME", "ls a#b",
         "ls", "cat a | grep b", "cd src && ls", "git status", "git diff | head", "find . -name x", "grep 'a > b' f",
         "ls; pwd", "git log --oneline -3 || true", 'cat "$HOME/x"', "rg -n 'f(x) && y' src", "grep \"it's\" f"]
NOT_READS = ["find . '-delete'", "find . -\"delete\"", "find . \\-exec x", "'rm' a", "find . -okdir x", "ls;;pwd", "ls | | cat", "ls &&& pwd", "|ls", "ls\x01", "ls\x1f",
             "rg --hostname-bin x", "file --compil x", "git diff --ext", "git grep --open-files-in-pager=x", "git diff -O x", "ls (a)", "ls <a", "cat a >", "ls `a`", "file -bC x",
             "find . -fprintf x y", "rg --pr x", "rg \"$X\"", "git diff $X", "ls {a}", "git blame a -O", "lsx", "gitx diff", "git 'push'",
             "ls && rm a", "ls && cat <(rm a)", "git", "git show --open-files-in-pager", "find . -ok rm {} +", "find . -fprint x",
             "cat a\nrm a", "git push", "python -c 'x'", "ls > a", "echo $(touch a)", "find . -delete", "find . -exec rm {} +", "make", "cat `x`",
             "git diff --output=x", "ls & rm a", "sort -o a b", "uniq a b", "./ls",
             "find . -fls x", "git grep -Osh x", "git diff --ext-diff", "cd X && diff a <(python3 gen.py)",
             "ls && cat <(evil)", "true || tee >(evil)", "git log --outp=x", "git grep --open x", "git grep -nO x",
             "rg --pre ./evil x", "rg --pre=./evil x", "file -C -m m", "file --comp -m m", "node_modules/.bin/rg x",
             "GIT_EXTERNAL_DIFF=./evil git diff", "git -c diff.external=./evil diff", "git --exec-path=. status",
             "nohup ls", "rg ';' ls --pre=./evil", "echo $'\\'' ; rm x #'", "echo ${X@P}", "find . $HOW", "echo 'a", "ls #",
             "ls &", "(ls)", "{ ls; }", "! ls", "ls\nrm a", "find . -{delete,x}", "echo \"`evil`\"", "ls &&", "; ls", ""]
ALPHABET = ["ls", "cat", "cd .", "diff", "find", "rg", "git", "status", "diff", "a", "'", '"', ";", "&&", "||", "|", "&",
            "$(evil)", "`evil`", "<(evil)", ">(evil)", ">f", ">>f", "<<a", "evil", "\\", "$'", "#", "{", "}", "(", ")",
            "\n", " ", " ", " ", "$X", "X=evil", "exec", "env", "-delete", "--pre=evil", "-c", "!", "then", "*"]
#: Programs that do nothing, but what an argument makes the real ones do.
STUBS = {"ls": "", "cat": "", "diff": "", "find": "-delete", "rg": "--pre=*", "git": "-c", "env": "evil"}


@pytest.mark.parametrize("command", WIDE)
def test_git_wide(command: str) -> None:
    assert commands.git_wide(command) is not None


@pytest.mark.parametrize("command", NOT_WIDE)
def test_not_git_wide(command: str) -> None:
    assert commands.git_wide(command) is None


@pytest.mark.parametrize(("command", "said"), SAID)
def test_what_is_said_of_it(command: str, said: str | None) -> None:
    assert commands.git_wide(command) == said


@pytest.mark.parametrize(("command", "files"), TARGETS)
def test_targets(command: str, files: list[str]) -> None:
    assert list(commands.targets(command)) == files


@pytest.mark.parametrize("command", READS)
def test_reads_only(command: str) -> None:
    assert commands.reads_only(command)


@pytest.mark.parametrize("command", NOT_READS)
def test_not_reads_only(command: str) -> None:
    assert not commands.reads_only(command)


@pytest.fixture(scope="module")
def stubs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of programs; all that can be seen of them is that `evil` was run."""
    made = tmp_path_factory.mktemp("stubs")
    for name, word in STUBS.items():
        (made / name).write_text(f'#!/bin/sh\nfor word in "$@"; do case "$word" in {word or "-"}) evil;; esac; done\n')
    (made / "evil").write_text(f"#!/bin/sh\necho > '{made}/hit'\n")
    for file in made.iterdir():
        file.chmod(0o755)
    return made


@settings(max_examples=examples(600))
@given(st.lists(st.sampled_from(ALPHABET), max_size=9).map(lambda some: " ".join(some))
       | st.lists(st.sampled_from(ALPHABET), max_size=12).map("".join))
def test_what_only_reads_runs_nothing_else_and_writes_nothing(stubs: Path, command: str) -> None:
    """The shell itself is asked: what is called a reader is run."""
    if not commands.reads_only(command):
        return
    place = stubs / "place"
    place.mkdir(exist_ok=True)
    (stubs / "hit").unlink(missing_ok=True)
    subprocess.run(["/bin/bash", "-c", command], cwd=place, capture_output=True, timeout=20, check=False,
                   stdin=subprocess.DEVNULL, env={"PATH": str(stubs), "X": "evil"})
    assert not (stubs / "hit").exists() and not list(place.iterdir()), command


@given(st.sampled_from(READS), st.sampled_from(["&&", "||", ";", "|", "&&  "]), st.sampled_from(NOT_READS), st.booleans())
def test_one_branch_that_does_not_only_read_is_enough(reads: str, sign: str, other: str, first: bool) -> None:
    both = f"{other} {sign} {reads}" if first else f"{reads} {sign} {other}"
    assert not commands.reads_only(both)


@given(st.text(max_size=200))
def test_no_text_upsets_it(command: str) -> None:
    commands.git_wide(command)
    commands.targets(command)
    commands.reads_only(command)
    commands.words(command)
    commands.not_writable(f"{command} Read-only file system")


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


@given(hashes, hashes, hashes, st.booleans())
def test_a_violation_is_a_change_that_nobody_with_a_right_made(
    before: str | None, now: str | None, recorded: str | None, busy: bool
) -> None:
    assert violated(Watched(before, now, recorded, busy)) == (now not in (before, recorded) and not busy)


def test_commands_that_commit() -> None:
    for command in ("git commit -m x", "cd a && git -C b push", "X=1 git -c a=b merge side", "make; git pull"):
        assert commands.commits(command), command
    for command in ("git status", "git log --grep commit", "echo git commit", "gitk commit", "git"):
        assert not commands.commits(command), command
