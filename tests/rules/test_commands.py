"""What a shell command obviously does; and what nobody should conclude from it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from coordinator.rules import commands, git_commands
from coordinator.rules.shell_words import redirects, simple_commands
from coordinator.rules.versions import Known, Watched, replaced, violated
from tests.effort import examples

WIDE = ["git clean -fd .", "git stash", "git stash push", "git reset --hard", "git -C sub reset --hard HEAD~1", "git checkout -- .",
        "git checkout main", "git checkout .", "git restore .", "git clean -fd", "git add -A", "git add .", "git add -u",
        "git commit -am x", "git commit -qam x", "git commit --all", "git switch x", "git rebase main", "git pull",
         "git stash < list", "git stash > list", "git reset --merge x", "git clean --force", "git add --all", "git add --update", "git clean -fdx -e .env", "git clean -fdx -e.env", "git clean -fd -e node_modules", "git clean -fdenode_modules", "git clean -fd --exclude n", "git clean --exclude=n -f",
        "git clean -d --for -e x", "git commit -a -m --dry-run", "git commit -m x -qa", "git add -A --chmod -n", "git add --al", "git add --chmod +x -u", "git restore -SW .", "git restore --staged --worktree .", "git restore -S --source HEAD~1 .", "git add -n --no-dry-run .", "git commit -nam x", "git restore --staged --pathspec-from-file=f", "git add -A .", "cd src && git add -A", "cd src/.. && git add .", "cd $X && git add .", "cd /r && git add .", "git stage -vA", "git add -u -- :/",
         "git checkout -b new", "git checkout -B new", "git checkout --orphan x", "git switch -c new", "git switch --orphan x",
        "git checkout --", "git checkout -- a.py .", "git restore", "git apply",
        "cd sub && git stash", "git stash push -- .", "git stash push --", "git stash pop", "git stash push -m a.py",
        "git checkout topic 2>&1", "git checkout topic 2>/dev/null", "2>&1 git stash", "git stash 2>&1 | cat",
        "git stash push -- a.py :/", "git stash push -a -- sub/.", "FOO=1 sudo git stash", "/usr/bin/git stash", "true; git merge x", "git apply p.diff", "git apply --stat --apply p.diff", "git apply --check --apply p"]
NOT_WIDE = ["git clean -qfd own", "git status", "git stash list", "git commit -m 'all a'", "git commit -m msg -- a.py", "git add a.py",
            "git checkout -- a.py", "git cherry-pick --quit", "git bisect log", "git sparse-checkout list", "git restore a.py", "git clean -n", "git rebase --abort",
            "echo ';' git stash", "echo '&&' git pull \\; git stash", "git stash show", "git stash create", "git stash store x", "git clean -nd",
            "git apply --check p", "git apply --cached p", "git apply --stat p", "git add -N a.py", "git clean -fd -e x src", "git clean -e f", "git clean -e -f", "git commit -m a -S", "git commit -Sa x", "git restore --sta .", "git stash -m x -- a.py", "git restore --staged .", "git restore -S -- .", "git add -n .", "git add -An", "git add --dry-run -u", "git commit --dry-run -a", "git clean -fdn", "git add -A src", "cd src && git add .", "git -C src add -A ./", "cd src; git add -u .", "git add -u -- a.py b.py", "git add --all src/a.py", "git stage a.py", "git commit -m all -- a", "git commit -ma", "git",
            "echo git stash", "git log --all", "git reset a.py", "git diff", "gitk stash",
            "git stash push -- a.py", "git stash push -m mine -- a.py b.py", "git stash -q -- a.py"]
TARGETS = [
    ("rm a \\\n b", ["a", "b"]), ("cd a; cd b; touch c /d; cd /e; touch f; cd -; touch g", ["a/b/c", "/d", "/e/f"]), ("cd a b; touch c", []), ("pushd a && touch b; popd; touch c", ["a/b"]), ("pushd +1; touch c", []), ("pushd; touch c", []),
    ("cd a/; touch b b", ["a/b"]), ("cd; touch c", []), ("cd 'a b'; touch c", ["a b/c"]), ("rm '' a", ["a"]), ("rm a*b 'c?d' e~f [g] $h `i` {j,k} l", ["[g]", "l"]), ("echo B >> 'app/[id]/page.tsx'", ["app/[id]/page.tsx"]),
    ("rm -- -a b", ["b"]), ("mv -t d a b", ["a", "b", "d/a", "d/b"]), ("install a", []), ("rsync -a -- a b c", ["c"]), ("truncate -s %10 a --size=3 b", ["a", "b"]),
    ("truncate -s '<7' c", ["c"]), ("sed -n -i 's/a/b/' f g", ["f", "g"]), ("sed -i --expression 's|a|b|' f", ["f"]), ("sed -i -f 's#x' f", ["f"]),
    ("perl -pi.bak 's/x/y/' f", ["f"]), ("ruby -i -e x f", ["f"]), ("sed -i -e 5d f", ["f"]), ("sed -i.e -e 5d f", ["f"]), ("perl -pie f", []), ("perl -pi -e x f", ["f"]), ("sed --in-place=.b -e 's/a/b/' s/x f", ["s/x", "f"]), ("sed -E x f", []),
    ("dd of=a if=b of=c", ["a", "c"]), ("git restore --staged a b", []), ("git restore -SW a b", ["a", "b"]), ("git restore -s HEAD~1 a", ["a"]), ("git restore -S -s HEAD~1 a", []), ("git restore -- a", ["a"]), ("git mv -n a b", []), ("git rm -rn a", []), ("git rm --dry-run a", []), ("git rm --cached -r a", ["a"]), ("git clean -fd -e x a b", ["a", "b"]), ("git clean -fd -- a", ["a"]), ("git clean -nd a", []), ("git clean -d a", []), ("git clean -fe a", []), ("git rm -n --no-dry-run a", ["a"]), ("git checkout x -- a", ["a"]), ("git stash push a", ["a"]), ("git rm -r a", ["a"]),
    ("git commit -- a", []), ("a > 1", []), ("a >| x", ["x"]), ("a > b > c", ["b", "c"]), ("rm a > b", ["b", "a"]), ("a >", []), ("truncate -s 10M a", ["a"]), ("truncate -s +2KiB 3GB.log", ["3GB.log"]), ("tee -a f", ["f"]),
    ("sudo rm a", ["a"]), ("X=1 touch b", ["b"]), ("/bin/rm c", ["c"]), ("./rm d", []), ("rm", []), ("a=b", []), ("touch --help", []), ("shred -u a", ["a"]),
    ("echo a > f", ["f"]), ("echo a>>f", ["f"]), ("cmd &> log", ["log"]), ("a 2>&1 | tee x y", ["x", "y"]),
    ("sed -i s/a/b/ f", ["f"]), ("sed -i -e 's/a/b/' f g", ["f", "g"]), ("perl -pi -e 's/x/y/' f", ["f"]),
    ("mv a b", ["a", "b"]), ("cp a b c", ["c"]), ("rm -rf d -- -f", ["d"]), ("git mv a b", ["a", "b"]),
    ("git rm a", ["a"]), ("git checkout -- a b", ["a", "b"]), ("git restore a", ["a"]), ("dd if=a of=b", ["b"]),
    ("touch 'a b'", ["a b"]), ("cd src && echo x > a.py", ["src/a.py"]), ("cd $X; echo x > a", []),
    ("git stash push -m x -- a b", ["a", "b"]), ("git stash -- a", ["a"]), ("git stash list", []),
    ("truncate -s 0 a", ["a"]), ("cat <<EOF > new\nbody > no\nEOF", ["new"]), ("echo $A > $B", []),
    ("cmd &>> log x", ["log"]), ("tee x &>> y", ["y", "x"]), ("rm a < b", ["a"]), ("rm a << b", ["a"]), ("rm a <<< b", ["a"]),
    ("tee a >| b", ["b", "a"]), ("echo >&2", []), ("rm a >& b", ["b", "a"]), ("cp a", []), ("cp -r a b/ --", ["b/"]),
    ("cp -- a b", ["b"]), ("truncate -s +5 a", ["a"]), ("perl -i.bak -e 's/a/b/' f", ["f"]), ("sed --in-place s/a/b/ f", ["f"]),
    ("ruby -e 'x' f", []), ("rsync a b", ["b"]), ("ln -s a b", ["b"]), ("install -m 644 a b", ["b"]), ("unlink a", ["a"]),
    ("rmdir a", ["a"]), ("shred a", ["a"]), ("git checkout a", []), ("git -C x", []), ("git mv -f a b", ["a", "b"]),
    ("git checkout HEAD a b", ["a", "b"]), ("git checkout -b new a", []), ("git -C d -C e rm a /b", ["d/e/a", "/b"]), ("cd c; git -C d rm a", ["c/d/a"]),
    ("grep -c \\> f", []), ("echo '>' f", []), ('echo ">" f', []), ("awk '$1 > 3' f", []), ("tee a '>' b", ["a", ">", "b"]), ("rm '&&' a \\; b", ["&&", "a", ";", "b"]), ("echo \">\" > f", ["f"]),
    ('echo "$(echo a > f)"', ["f"]), ("echo a \\>> f", ["f"]), ("echo 'a'> f", ["f"]), ('echo a">"> f', ["f"]), ("[[ 3 > f ]]", []), ("if [[ a && b > c ]]; then rm d; fi", ["d"]), ("[[ a ]] > f", ["f"]),
    ("[[ 3 > f ]] && [[ b < g ]] || touch h", ["h"]), ("[[ 3 > f", ["f"]), ("echo [[ > f ]]", ["f"]), ("'[[' 3 > f ']]'", ["f"]), ("[[ $(echo > f) ]]", ["f"]), ("[ 3 > f ]", ["f"]), ("X=1 [[ 3 > f ]]", ["f"]),
    ("sh -c '[[ 3 > f ]]'", ["f"]), ("dash -c '((a > f))'", ["f"]), ("bash -c '[[ 3 > f ]]'", []), ("(( 3 > f ))", []), ("((i > n)) && touch a", ["a"]), ("x=$((a > b)); touch c", ["c"]),
    ("for ((i=9; i > n; i--)); do touch a; done", ["a"]), ("((echo a) > f)", ["f"]), ("((echo a > f))", ["f"]), ("(echo a > f)", ["f"]), ("echo $((1 + 2)) > f", ["f"]), ("((a > f)", ["f"]),
    ("rm a 2>&1", ["a"]), ("tee a 2>/dev/null b", ["/dev/null", "a", "b"]), ("tee 2 > a", ["a", "2"]), ("tee b2>a", ["a", "b2"]), ("rm a <&0", ["a"]), ("cat f 2>>log", ["log"]),
    ("mv -t d a x/b", ["a", "x/b", "d/a", "d/b"]), ("cp -rt d a", ["d/a"]), ("ln -s -t d x/a", ["d/a"]), ("install -oroot -m644 a b", ["b"]), ("mv --target-directory=d a", ["a", "d/a"]), ("rsync -rt a b", ["b"]), ("mv a", ["a"]),
    ("git -C $d rm a", []), ("cat a", []), ("sed s/a/b/ f", []), ("ls > /dev/null", ["/dev/null"]),
]
SAID = [("timeout 60 git pull", "git pull"), ("timeout -k 5 --signal KILL 60 git pull", "git pull"), ("bash -c 'git merge topic'", "git merge topic"),
        ("if x; then (cd a && sudo -u bob git stash); fi", "git stash"), ("for f in *; do git am \"$f\"; done", "git am $f"), ("x=$(git stash)", "git stash"), ("echo `git pull`", "git pull"),
        ("echo \"$(git rebase x)\"", "git rebase x"), ("xargs -n 1 git checkout < l", "git checkout < l"), ("eval 'git pull'", "git pull"), ("cat <<E\ngit stash\nE\n", None),
        ("bash -lc \"sh -c 'git pull'\"", "git pull"), ("f() { git clean -fd; }", "git clean -fd"), ("# git stash", None), ("echo 'git stash'", None),
        ("FOO=1 sudo git stash", "git stash"), ("/usr/bin/git stash pop", "git stash pop"), ("cd sub && git -C x  'stash'", "git -C x stash"),
        ("git status; git merge x; git pull", "git merge x"), ("git \\\n  stash", "git stash"),
        ("(git -c a=b --no-pager reset --hard)", "git -c a=b --no-pager reset --hard"), ("if true; then git am x; fi", "git am x"),
        ("! git revert x", "git revert x"), ("nice nohup time env A=b git read-tree x", "git read-tree x"), ("bin/git stash", "git stash"),
        ("./git stash", None), ("a=b", None), ("=a git stash", None), ("git --git-dir x --work-tree y --namespace z stash", "git --git-dir x --work-tree y --namespace z stash"),
        ("git cherry-pick a", "git cherry-pick a"), ("git bisect good", "git bisect good"), ("git sparse-checkout set a", "git sparse-checkout set a"),
        ("git filter-branch x", "git filter-branch x"), ("git merge --abort", None), ("git clean -n --force", None),
        ("git reset --keep x", "git reset --keep x"), ("git checkout -- ./", "git checkout -- ./"), ("git checkout -- :/", "git checkout -- :/"),
        ("git restore '*'", "git restore *"), ("git restore ':(top)'", "git restore :(top)"), ("git add :", "git add :"), ("git commit -amx", "git commit -amx"),
        ("git commit -mab", None), ("git commit", None), ("git stash push x", None), ("git stash -- .", "git stash -- ."),
        ("git stash drop", "git stash drop"), ("git stash apply -- a", "git stash apply -- a"), ("git stash push -- a/./.", "git stash push -- a/./."),
        ("git stash push -- a/.//", "git stash push -- a/.//"), ("git mv a b", None),
        ("git restore -s topic --staged --pathspec-from-file=l", "git restore -s topic --staged --pathspec-from-file=l"),
        ("git restore -s topic --pathspec-from l", "git restore -s topic --pathspec-from l"), ("git restore -s topic a", None), ("cd a && git merge topic > out.txt 2>&1 | tail", "git merge topic")]

def answers(ask: Callable[[str], object], cases: Iterable[tuple[str, object]]) -> dict[str, tuple[object, object]]:
    """Of these commands those that are answered otherwise: (the answer, the right one)."""
    return {command: (answer, right) for command, right in cases if (answer := ask(command)) != right}


def test_git_wide() -> None:
    assert [command for command in WIDE if not commands.git_wide(command)] == []


def test_not_git_wide() -> None:
    assert answers(commands.git_wide, [(command, []) for command in NOT_WIDE]) == {}


def test_what_is_said_of_it() -> None:
    assert answers(lambda command: next((one.said for one in commands.git_wide(command)), None), SAID) == {}


#: Where each runs, seen from where the whole begins, with what the command makes a repository; None: that is not certain.
FOLDERS = [
    ("git stash", [("", "")]), ("git -C n clean -fd; git -C n add -A; git log | wc -l", [("n", ""), ("n", "")]), ("cd n\ngit stash", [("n/", "")]),
    ("cd n && echo b >> a && git stash -q && git reset -q --hard; cd ..", [("n/", ""), ("n/", "")]), ("cd a && cd b && git stash", [("a/b/", "")]),
    ("git init -q n && cd n && git add -A", [("n/", "n")]), ("git clone -q ../sm b/c && git -C b/c checkout -b z", [("b/c", "b/c")]), ("git clone -b x h:/y.git && cd y && git stash", [("y/", "y")]),
    ("mkdir n && cd n && git init -q && git add -A", [("n/", "n")]), ("git init x; cd x && git stash", [("x/", "")]), ("timeout 5 git -C n stash > out", [("n", "")]),
    ("(cd n && git stash); git reset --hard", [("n/", ""), None]), ("(cd n && git stash); git stash", [None]), ("bash -c 'git stash'; cd n && git stash", [None]), ("cd n && git am x | cat; git stash", [("n/", "")] * 2),
    *((one, [None]) for one in (
        "cd n | git stash", "cd n & git stash", "cd n && a & git stash", "false && cd n; git stash", "cd n || true; git stash", "a || cd n; git stash", "if x; then cd n; fi; git stash", "f() { cd n; }; git stash",
        "! cd n; git stash", "cd $x && git stash", "cd - && git stash", "eval 'cd n'; git stash", ". ./x; git stash", "env -C n git stash", "sudo git stash", "bash -c 'cd n && git stash'", "cd n && GIT_DIR=../.git git stash",
        "git --git-dir=x -C n stash", "git --git-dir x stash", "git -c core.worktree=.. -C n stash", "git --config-env core.worktree=X -C n stash", "git -C $x stash", "while cd n; do git stash; done", "echo `cd n; git stash`"))]


def test_where_git_runs() -> None:
    assert answers(lambda command: [one.folder for one in commands.git_wide(command)], FOLDERS) == {}


def test_targets() -> None:
    assert answers(lambda command: list(dict.fromkeys(one.path for one in commands.targets(command))), TARGETS) == {}


@pytest.mark.parametrize(("command", "inside"), [
    ("cp a d", ["d/a"]), ("cp x/a b/ d/", ["d/a", "d/b"]), ("mv x/a d", ["d/a"]), ("cd s && cp ../a .", ["s/./a"]), ("ln -s ../a d", ["d/a"]), ("ln -sfn a d", ["d/a"]),
    ("install -m 644 a d", ["d/a"]), ("rsync -a a b d", ["d/a", "d/b"]), ("git mv a d", ["d/a"]), ("git -C s mv a b d", ["s/d/a", "s/d/b"]), ("cp -a a d", ["d/a", "d/a"]),
    ("install -m644 --owner root a d", ["d/a"]), ("install -Dm 644 a d", ["d/a"]), ("cp -S .bak a d", ["d/a"]), ("cp --suffix=.bak a d", ["d/a"]), ("rsync -ae ssh --exclude x a d", ["d/a"]),
    ("rsync -a - d", ["d/-"]), ("cp -- -a b d", ["d/-a", "d/b"]), ("cp *.md $f d", []), ("cp *.md a d", ["d/a"]), ("cp -r a/. d", None), ("cp -r . d", None), ("rsync -a a/ d", None), ("rsync -a --delete a d", None), ("rsync -aR x/a d", None),
    ("cp -T a d", None), ("rm d", None), ("touch d", None), ("echo > d", None), ("git rm d", None)])
def test_what_is_put_into_a_directory(command: str, inside: list[str] | None) -> None:
    found = commands.targets(command)[-1]
    assert found.path.removeprefix("s/").rstrip("/") in ("d", ".")
    assert (None if found.inside is None else [one.path for one in found.inside]) == inside


@pytest.mark.parametrize(("command", "links"), [
    ("rm a", ["itself"]), ("mv a b", ["itself", "entered"]), ("mv -T a b", ["itself", "itself"]), ("ln -s x a", ["entered"]), ("ln -sfn x a", ["itself"]), ("ln -sT x a", ["itself"]),
    ("cp x a", ["followed"]), ("cp -a x a", ["followed", "entered"]), ("cp --remove-destination x a", ["entered"]), ("install x a", ["entered"]), ("rsync -a x a", ["entered"]),
    ("echo > a", ["followed"]), ("tee a", ["followed"]), ("touch a", ["followed"]), ("truncate -s 0 a", ["followed"]), ("dd if=x of=a", ["followed"]), ("git mv a b", ["itself", "itself"]),
    ("sed -i s/x/y/ a", ["itself"]), ("sed -i --follow-symlinks s/x/y/ a", ["followed"]), ("perl -pi -e s/x/y/ a", ["itself"])])
def test_whether_the_link_or_what_it_leads_to_is_written(command: str, links: list[str]) -> None:
    assert [one.link for one in commands.targets(command)] == links


#: What the shell's grammar is tried with: programs that only tell how they were called, and signs.
PIECES = ["git", "rm", "tee", "git stash", "rm -f a", "a", "'b c'", '"d e"', "f\\ g", ";", "&&", "||", "|", "& wait;", "(", ")", "{ rm a; }", "\n", " ", " ", " ",
          "> o", ">> o", "< /dev/null", "2>&1", "X=1", "env", "env X=1", "timeout 5", "nohup", "nice -n 1", "command", "! ", "if true; then", "fi", "for i in 1; do",
          "done", "while false; do", "bash -c 'git pull'", 'sh -c "rm z"', "eval 'git am x'", "$(rm q)", '"$(git merge x)"', "#", "true", "f() {", "case a in a)", "esac",
          "tee <<E\nrm not\nE\n", "rm <<'E' > o\ngit not\nE\n", "<<< w", "\\\n", "xargs", "time", "[[ a ]]", "[[ a > o && b ]]", "((3 > 2))", "x=$((3 > 2))", "\\;", "'&&'", '">"', "exec"]

def is_within(words: list[str], others: list[str]) -> bool:
    """Whether these are among the others, in this order. (The grammar joins two lines here and there.)"""
    rest = iter(others)
    return all(word in rest for word in words)


@pytest.fixture(scope="module")
def stubs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of programs that write down how they were called."""
    made = tmp_path_factory.mktemp("stubs")
    (made / "place").mkdir()
    for name in ("git", "rm", "tee"):
        # One write for each call: several may run at once.
        (made / name).write_text(f"#!/bin/bash\nprintf '%s\\0' {name} \"$@\" $'\\x01' >> {made}/called\n")
        (made / name).chmod(0o755)
    for name in ("true", "env", "timeout", "nohup", "nice", "bash", "sh", "xargs"):
        (made / name).symlink_to(shutil.which(name) or "/bin/false")
    return made


@settings(max_examples=examples(400))
@given(st.lists(st.sampled_from(PIECES), max_size=8).map(" ".join))
@example("if true; then git stash; fi; f() { rm a; }; f")
@example("cat x | while read l; do timeout -k 1 5 bash -c 'nice -n 1 git pull'; done")
@example("git stash <<E > o\nrm not\nE\n rm a")
def test_what_the_shell_runs_is_found(stubs: Path, command: str) -> None:
    """The shell itself is asked. (What only it knows, as a loop's variable, bears its sign.)"""
    called = stubs / "called"
    called.unlink(missing_ok=True)
    subprocess.run(["/bin/bash", "-c", command], cwd=stubs / "place", capture_output=True, timeout=20, check=False,
                   stdin=subprocess.DEVNULL, env={"PATH": str(stubs)})
    if not called.exists():
        return
    found = [[word for at, word in enumerate(words) if not redirects(word) and (at == 0 or not redirects(words[at - 1]))]
             for words in simple_commands(command)]
    if any("$" in one[0] for one in found if one):
        return  # which program that is, only the shell knows
    for line in called.read_text().split("\x01\0"):
        words = line.split("\0")[:-1]
        assert not words or any(
            is_within(words, one) or (words[0] in one and ("xargs" in command or any("$" in word for word in one))) for one in found), (command, words, found)


@pytest.mark.parametrize(("command", "name"), [
    ("tar cf 'out 1/a.tar' q.sql", "out 1/a.tar"), ('tar cf "out 1/a.tar"', "out 1/a.tar"), (r"tar cf out\ 1/a.tar", "out 1/a.tar"),
    ("tar cf './ñ é/a.tar'", "ñ é/a.tar"), ("tar cf 'app/[id]/a.tar'", "app/[id]/a.tar"), ("tar cf app/[id]/a.tar b", "app/[id]/a.tar"), ("tar cf 'a/(b)/c.tar'", "a/(b)/c.tar"), ("cd out; tar cf '1 2/a.tar'", "out/1 2/a.tar"),
])
def test_a_name_with_spaces_is_a_word_of_its_command(command: str, name: str) -> None:
    assert any(commands.may_mean(word, name) for word in commands.words(command))
    assert not any(commands.may_mean(word, "other/b.tar") for word in commands.words(command))
    assert commands.words(command)[0] == command.split()[0].rstrip(";")


def test_a_long_command_is_taken_apart_at_once() -> None:
    for one in ("\\", "'", '"', "\\ ", "a'", "a b ", "a", "[", "][", "a\\", "'\n", "cp a b; "):
        commands.words(one * 50_000)


@given(st.text(max_size=200))
def test_no_text_upsets_it(command: str) -> None:
    commands.git_wide(command)
    commands.targets(command)
    commands.words(command)
    commands.not_writable(f"{command} Read-only file system")


hashes = st.sampled_from([None, "a", "b", "c"])


@given(hashes, hashes, hashes, st.sampled_from([None, "me", "other"]), st.booleans(), st.booleans())
def test_a_write_is_refused_only_on_content_that_somebody_else_made(
    read: str | None, now: str | None, last: str | None, by: str | None, held: bool, by_others: bool,
) -> None:
    refused = replaced(Known(read, now, last, by, False, held, by_others), "me")
    if read == now or (last == now and by == "me") or (held and not by_others):
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


def test_each_shell_says_in_its_own_way_that_a_file_is_read_only() -> None:
    for said in ("sh: 1: cannot create notes.txt: Read-only file system", "bash: notes.txt: Read-only file system", "(eval):1: read-only file system: notes.txt",
                 "mv: cannot move 'x' to 'notes.txt': Device or resource busy", "zsh: device or resource busy: notes.txt", "Error: EROFS: read-only file system, open 'notes.txt'"):
        assert "notes.txt" in (commands.not_writable(f"first\n{said}\nlast.txt") or []), said
    assert commands.not_writable("notes.txt: No such file or directory") is None


COMMITS = {"topic", "HEAD", "HEAD~1", "@"}


@pytest.mark.parametrize(("command", "commit", "files", "tree"), [
    ("checkout topic -- a b", "topic", ("a", "b"), True), ("checkout topic a", "topic", ("a",), True), ("checkout a b", "", ("a", "b"), True),
    ("checkout -- topic", "", ("topic",), True), ("checkout -q HEAD a", "HEAD", ("a",), True), ("checkout unknown -- a", "unknown", ("a",), True),
    ("restore a", "", ("a",), True), ("restore -s topic a", "topic", ("a",), True), ("restore -stopic -- a", "topic", ("a",), True),
    ("restore --source topic -SW a", "topic", ("a",), True), ("restore --source=topic --staged a b", "topic", ("a", "b"), False),
    ("restore --staged --worktree a", "HEAD", ("a",), True), ("restore -W a", "", ("a",), True), ("reset topic -- a", "topic", ("a",), False),
    ("reset -q topic a", "topic", ("a",), False), ("reset HEAD~1 a", "HEAD~1", ("a",), False),
])
def test_which_files_are_brought_back_and_from_where(command: str, commit: str, files: tuple[str, ...], tree: bool) -> None:
    assert git_commands.brought_back(command.split(), COMMITS.__contains__) == git_commands.BroughtBack(commit, files, tree)


@pytest.mark.parametrize("command", [
    "checkout -b new topic", "checkout -B a topic", "checkout --orphan new", "checkout topic", "restore --staged a", "restore -S a", "restore --staged -s HEAD a",
    "restore", "reset a", "reset -- a", "reset HEAD a", "reset @ -- a", "reset --hard topic", "reset", "status", "stash push -- a", "merge topic"])
def test_nothing_is_brought_back_where_no_file_is_named_or_it_is_only_taken_out_of_the_index(command: str) -> None:
    assert git_commands.brought_back(command.split(), COMMITS.__contains__) is None
