"""What commands did all the same to what others hold, found after them: names at which nothing stood, files that were put
back meanwhile, and what all share in git, whoever wrote it."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from coordinator.words import requests as rq
from tests.conftest import Repo
from tests.effort import crossed, examples
from tests.hook.test_sessions import Claude, held
from tests.waiting import until

#: The watcher is always too late here: what is found is found by the comparison.
#: Only what is compared after a command tells.
LATE = "[watch]\nenabled = false\n"


@pytest.fixture
def repo(make_repo: Callable[..., Repo]) -> Repo:
    repo = make_repo(config=LATE)
    for name, text in (("a.py", "one\n"), ("b.py", "one\n"), ("d/x.py", "x\n"), ("d/e/y.py", "y\n"), ("pkg/deep/g.py", "g\n")):
        repo.write(name, text)
    repo.write("swap.py", "import ctypes, sys\nctypes.CDLL(None).renameat2(-100, sys.argv[1].encode(), -100, sys.argv[2].encode(), 2)\n")
    for words in (("config", "user.name", "P"), ("config", "user.email", "p@x"), ("add", "-A"), ("commit", "-qm", "one"), ("branch", "-M", "trunk"),
                  ("switch", "-qc", "topic"), ("commit", "-q", "--allow-empty", "-m", "topic"), ("switch", "-q", "trunk")):
        git(repo, *words)
    with repo.client() as client:
        client.call(rq.Health())
    return repo


def git(repo: Repo, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=repo.root, check=True, capture_output=True, text=True).stdout.strip()


def both(repo: Repo) -> tuple[Claude, Claude]:
    """The one that works, and an idle holder whose hooks report in."""
    ann, bob = Claude(repo, "ann"), Claude(repo, "bob")
    bob.hook("SessionStart", source="startup")
    ann.hook("SessionStart", source="startup")
    return ann, bob


def hold(repo: Repo, agent: Claude, *resources: str) -> None:
    with repo.client() as client:
        client.call(rq.Acquire(agent=agent.name, resources=list(resources)))


def flagged(repo: Repo) -> dict[str, rq.ReviewFile]:
    """What reviews name, which are settled then."""
    with repo.client() as client:
        found = {}
        for one in client.call(rq.Reviews()).items:
            found |= {file.path: file for file in one.files}
            client.call(rq.ReviewDecide(review=one.review, verdict="keep"))
    return found


def told(repo: Repo, agent: Claude) -> str:
    """Since it was last asked."""
    with repo.client() as client:
        notices = client.call(rq.Heartbeat(agent=agent.name)).notices
        if notices:
            client.call(rq.Heartbeat(agent=agent.name, ack=max(one.notice for one in notices)))
    return "\n".join(one.text for one in notices)


@pytest.mark.parametrize("watched", [False, True])
def test_what_changed_while_commands_of_several_ran_is_nobodys_and_told_once(make_repo: Callable[..., Repo], watched: bool) -> None:
    repo = make_repo("several", config="" if watched else LATE)
    repo.write("a.py", "one\n")
    with repo.client() as client:
        client.call(rq.Health())
    holder, *others = [Claude(repo, name) for name in ("hol", "x1", "x2", "x3")]
    for one in (holder, *others):
        one.hook("SessionStart", source="startup")
    assert not holder.edit("a.py", "two\n")
    for one in others:
        one._call("Bash", {"command": "make test"})
    repo.write("a.py", "two\nsaved once, by a person\n")
    if watched:
        time.sleep(0.5)
    said = [str(one._call("Bash", {"command": "make test"}, "PostToolUse", tool_response={"stdout": "", "stderr": ""})
                .get("additionalContext", "")) for one in others]
    with repo.client() as client:
        (review,) = client.call(rq.Reviews()).items
        assert review.summary.startswith("a.py, held by claude-code-hol, changed while commands of claude-code-x1, claude-code-x2"), review.summary
    for one, text in zip(others, said, strict=True):
        assert "it is not known whose it was" in text and one.name not in text and "claude-code-x" in text, text
        assert "Your last command changed" not in text
    heard = told(repo, holder)
    assert heard.count("a.py, which you hold, changed while commands of") == 1 and "no command of yours ran" not in heard, heard
    assert "Both contents are kept in R-1" in heard
    # One that names the file is known, whoever runs beside it
    for one in others[1:]:
        one._call("Bash", {"command": "make test"})
    assert "Your last command changed a.py" in others[0].shell("f=a; echo over > $f.py; true a.py")[0]


#: What puts something into a directory that is there (`d`, the root), and what is leased for it.
PUTS = [
    ("cp a.py d/", ["d/a.py"]), ("cp a.py d", ["d/a.py"]), ("cp a.py b.py d", ["d/a.py", "d/b.py"]), ("cp d/x.py .", ["x.py"]), ("cp d/x.py ./", ["x.py"]),
    ("cd d && cp ../a.py .", ["d/a.py"]), ("mv a.py d/", ["a.py", "d/a.py"]), ("mv d/x.py .", ["d/x.py", "x.py"]), ("git mv a.py d", ["a.py", "d/a.py"]),
    ("ln -s ../a.py d/", ["d/a.py"]), ("ln a.py d", ["d/a.py"]), ("install -m 600 a.py d", ["d/a.py"]), ("cp -p a.py d", ["d/a.py"]), ("cp a.py to_d", ["d/a.py"]),
    ("mkdir -p m && cp a.py b.py m", ["m/a.py", "m/b.py"]), ("cp -T a.py n.py", ["n.py"]), ("cp a.py n.py", ["n.py"]), ("cp -r d/. e", ["e/"]),
]


@pytest.mark.parametrize(("command", "names"), [*PUTS[:6], *(pytest.param(*one, marks=pytest.mark.slow) for one in PUTS[6:])])
def test_what_is_put_into_a_directory_is_leased_and_not_the_directory(repo: Repo, command: str, names: list[str]) -> None:
    """`cp x .` leased the whole repository, and was refused where anybody held anything."""
    (repo.root / "e").mkdir()
    (repo.root / "to_d").symlink_to("d")
    with repo.client() as client:
        client.call(rq.Register(agent="kim"))
        client.call(rq.Acquire(agent="kim", resources=["d/e/y.py", "w.py"]))
        ann = Claude(repo, "ann")
        said = ann._call("Bash", {"command": command})
        assert said.get("permissionDecision") != "deny", said
        mine = sorted(one.resource for one in client.call(rq.Locks(agent=ann.name)).items)
        assert mine == sorted(names)
        assert subprocess.run(["sh", "-c", command], cwd=repo.root, check=False).returncode == 0
        ann._call("Bash", {"command": command}, "PostToolUse", tool_response={"stdout": "", "stderr": ""})
        assert ann.name not in {one.locked_by for one in client.call(rq.Locks()).items if one.resource in ("d/", "./")}
        client.call(rq.Acquire(agent="kim", resources=["d/free.py"]))
        client.call(rq.Release(agent=ann.name, resources=mine))
        client.call(rq.Acquire(agent="kim", resources=names))
        assert ann._call("Bash", {"command": command}).get("permissionDecision") == "deny", "and it is kept from what another holds there"


@pytest.mark.parametrize("command", ["echo B >> 'app/[id]/page.tsx'", "cp a.py app/[id]/page.tsx", "rm app/\\[id\\]/page.tsx", *(pytest.param(
    one, marks=pytest.mark.slow) for one in ("sed -i s/A/B/ \"app/[id]/page.tsx\"", "mv b.py 'app/[id]'/page.tsx", "cp a.py 'app/[id]/'; mv a.py 'app/[id]/page.tsx'"))])
def test_a_file_with_brackets_in_its_name_is_kept_from_others_commands(repo: Repo, command: str) -> None:
    ann, bob = both(repo)
    assert ann.edit("app/[id]/page.tsx", "A\n") == ""
    said, code, _ = bob.shell(command)
    assert code == -1 and "app/[id]/page.tsx is leased by" in said
    assert repo.read("app/[id]/page.tsx") == "A\n"


@pytest.mark.parametrize("command", ["echo x > out/build.log", "rm -rf out && mkdir out && echo x > out/y", "rm -rf gone", *(pytest.param(
    one, marks=pytest.mark.slow) for one in ("echo x | tee run.log", "rm -rf out", "cp a.py out", "touch d/e/x.log"))])
def test_what_git_ignores_is_its_agents_while_the_command_runs(repo: Repo, command: str) -> None:
    """Whoever had typed `rm -rf dist && make` kept the others from it for half an hour."""
    repo.write(".gitignore", "out/\ngone/\n*.log\n")
    (repo.root / "out").mkdir()
    ann, bob = both(repo)
    assert ann._call("Bash", {"command": f"{command}; true"}).get("permissionDecision") != "deny"
    assert ann.name in bob.shell(command)[0], "at once it is one's alone"
    subprocess.run(["sh", "-c", command], cwd=repo.root, check=True)
    ann._call("Bash", {"command": f"{command}; true"}, "PostToolUse", tool_response={"stdout": "", "stderr": ""})
    with repo.client() as client:
        until(lambda: ann.name not in {one.locked_by for one in client.call(rq.Locks()).items})
    said, code, _ = bob.shell(command)
    assert code == 0, said
    with repo.client() as client:
        assert client.call(rq.Locks()).items == []


def test_what_an_edit_or_a_person_has_leased_is_kept_though_git_ignores_it(repo: Repo) -> None:
    repo.write(".gitignore", ".env\nout/\n")
    ann, bob = both(repo)
    assert ann.edit(".env", "A=1\n") == ""
    with repo.client() as client:
        client.call(rq.Acquire(agent=ann.name, resources=["out/"]))
    said, code, _ = ann.shell("echo B=2 >> .env; mkdir -p out; touch out kept")
    assert code == 0, said
    assert {name for name, who in held(repo).items() if who == ann.name} == {".env", "out/", "kept"}
    assert bob.shell("echo C=3 >> .env")[1] == -1 and bob.shell("rm -rf out")[1] == -1


#: What is held and not there, what a command makes of it, and what a review names.
ABSENT = [
    ("n.py", "f=n; mkdir $f.py; echo x > $f.py/x", ["n.py/x"]),
    ("n.py", "f=n; mkdir $f.py", ["n.py"]),
    ("n.py", "f=n; mkfifo $f.py", ["n.py"]),
    ("n.py", "f=n; ln -s a.py $f.py", ["n.py"]),
    ("n.py", "f=n; ln a.py $f.py", ["n.py"]),
    ("far/n.py", "f=far; mkdir $f; echo x > $f/n.py", ["far/n.py"]),
    ("newd/", "f=newd; mkdir $f", ["newd"]),
    ("newd/", "f=newd; cp -r d $f", ["newd/e/y.py", "newd/x.py"]),
    ("newd/", "f=newd; mv d $f", ["newd/e/y.py", "newd/x.py"]),
    ("newd/", "f=newd; ln -s d $f", ["newd"]),
    ("newd/", "f=newd; echo x > $f", ["newd"]),
    ("newd/", "f=newd; mkdir -p $f/e; echo x > $f/e/n", ["newd/e/n"]),
]


def test_whatever_comes_to_stand_where_a_held_name_was_absent_is_found(repo: Repo) -> None:
    ann, bob = both(repo)
    for name, command, names in ABSENT:
        hold(repo, bob, name)
        said, code, _ = ann.shell(command)
        assert code == 0, command
        found = flagged(repo)
        assert sorted(found) == names and all(one.change == "created" and one.kept for one in found.values()), (command, found)
        assert names[0] in said and "held by claude-code-bob" in said, command
        assert "A command of claude-code-ann changed" in told(repo, bob), command
        assert ann.shell("true")[0] == "", "it is told once"
        with repo.client() as client:
            client.call(rq.Release(agent=bob.name, resources=[name]))
        subprocess.run(["sh", "-c", "[ -e d ] || mv newd d; rm -rf n.py far newd"], cwd=repo.root, check=True)


@pytest.mark.parametrize(("held", "attack", "undo"), [
    ("a.py", "f=a; echo HACK > $f.py", "git checkout -q a.py"),
    ("pkg/deep/g.py", "f=tmp; mkdir -p $f; echo HACK > $f/g.py; python3 swap.py tmp pkg/deep", "python3 swap.py tmp pkg/deep"),
    ("pkg/deep/g.py", "f=pkg/deep; mv $f pkg/away; mkdir $f; echo HACK > $f/g.py", "rm -r pkg/deep; mv pkg/away pkg/deep"),
])
def test_the_same_write_again_is_found_again(repo: Repo, held: str, attack: str, undo: str) -> None:
    """Though somebody has put back what was there, and the watcher has not seen that yet."""
    ann, bob = both(repo)
    hold(repo, bob, held)
    for _ in range(2):
        assert ann.shell(attack)[1] == 0
        found = flagged(repo)
        assert list(found) == [held] and found[held].kept and found[held].baseline_hash, found
        assert f"A command of claude-code-ann changed {held}" in told(repo, bob)
        subprocess.run(["sh", "-c", undo], cwd=repo.root, check=True)


#: By hand, or by a program that is not git: what is told of it has what was there before.
BY_HAND = [
    "git rev-parse topic > .git/refs/heads/trunk",
    "git pack-refs --all; sed -i \"s/^.* refs.heads.trunk$/$(git rev-parse topic) refs\\/heads\\/trunk/\" .git/packed-refs",
    "echo ref: refs/heads/topic > .git/HEAD",
    "f=$(git rev-parse topic); echo $f > .git/HEAD",
    "f=$(git rev-parse topic); rm .git/logs/HEAD; echo $f > .git/HEAD",
]


def test_git_that_is_written_by_hand_is_found_and_can_be_put_back(repo: Repo) -> None:
    ann, bob = both(repo)
    hold(repo, bob, "a.py")
    before = git(repo, "rev-parse", "HEAD")
    git(repo, "commit", "-q", "--amend", "--allow-empty", "-m", "one and only")
    before = git(repo, "rev-parse", "HEAD")
    for command in BY_HAND:
        said, code, _ = ann.shell(command)
        assert code == 0 and "Your command moved HEAD while claude-code-bob" in said, (command, said)
        heard = told(repo, bob)
        assert f"Before it, HEAD was on refs/heads/trunk, at {before}." in heard, (command, heard)
        git(repo, "symbolic-ref", "HEAD", "refs/heads/trunk")
        git(repo, "update-ref", "refs/heads/trunk", before)
        assert ann.shell("true")[0] == "", "it is told once"


def test_what_the_index_has_of_anothers_file_is_looked_at(repo: Repo) -> None:
    ann, bob = both(repo)
    hold(repo, bob, "a.py", "newd/")
    entry = git(repo, "ls-files", "-s", "a.py").split("\t")[0].rpartition(" ")[0]
    for command, was in (("timeout 9 git update-index --force-remove a.py", entry), ("f=.git/index; rm $f", entry),
                         ("timeout 9 git update-index --add --cacheinfo 100644,$(git hash-object -w b.py),newd/n.py", "nothing")):
        assert ann.shell(command)[1] == 0
        heard = told(repo, bob)
        assert "changed what git's index has of" in heard and f"it was {was}, and is" in heard, (command, heard)
        git(repo, "reset", "-q")


def test_ordinary_work_in_git_is_nobodys_business(repo: Repo) -> None:
    """One's own commits, with and without git's log; a commit while another's command runs; git that only looks."""
    ann, bob, eve = *both(repo), Claude(repo, "eve")
    hold(repo, bob, "a.py")
    given = {"command": "make", "description": "x"}
    eve._call("Bash", given)
    repo.write("b.py", "ann's\n")
    for command in ("git add b.py", "git commit -qm mine -- b.py", "touch b.py; git status -s", "git tag v1; git branch side", "git log --oneline -1",
                    "git -c core.logAllRefUpdates=false commit -q --allow-empty -m more",
                    "git update-ref refs/heads/trunk $(git commit-tree -p HEAD -m by-hand $(git write-tree))", "git fetch -q ."):
        said, code, out = ann.shell(command)
        assert (said, code) == ("", 0), (command, out)
    said = eve._call("Bash", given, "PostToolUse", tool_response={})
    assert "additionalContext" not in said, said
    assert told(repo, bob) == told(repo, eve) == told(repo, ann) == ""
    assert not flagged(repo)


def test_a_holders_own_commit_is_not_blamed_on_whoever_runs_something_meanwhile(repo: Repo) -> None:
    ann, bob = both(repo)
    assert bob.edit("a.py", "bob's\n") == ""
    given = {"command": "make", "description": "x"}
    ann._call("Bash", given)
    assert bob.shell("git commit -qm mine -- a.py")[1] == 0
    said = ann._call("Bash", given, "PostToolUse", tool_response={})
    assert "additionalContext" not in said and told(repo, bob) == "", said


@pytest.mark.parametrize("command", ["touch b.py", "echo n > n.py; mv n.py b.py"])
def test_what_another_removed_can_be_made_anew(repo: Repo, command: str) -> None:
    ann, bob = both(repo)
    assert ann.edit("b.py", "ann's\n") == ""
    with repo.client() as client:
        client.call(rq.Release(agent=ann.name, resources=["b.py"]))
    assert bob.shell("rm b.py")[1] == 0
    with repo.client() as client:
        until(lambda: not client.call(rq.Locks()).items or client.call(rq.Release(agent=bob.name, resources=["b.py"])))
    assert ann.shell(command)[1] == 0 and (repo.root / "b.py").exists()


@pytest.mark.parametrize(("lease", "moves", "writes", "new"), [
    ("d/", "D=d; mv $D dd", "E=dd; echo more > $E/x.py", "dd/x.py"),
    ("d/", "mkdir k; D=d; mv $D k/dd; rm k/dd/x.py", "E=k/dd; echo more > $E/e/y.py", "k/dd/e/y.py"),
    ("a.py", "A=a.py; mv $A z.py", "Z=z.py; echo more > $Z", "z.py"),
    ("a.py", "A=a.py; mv $A d/z.py; echo new > $A.x", "Z=d/z.py; echo more > $Z", "d/z.py"),
])
def test_a_lease_has_followed_before_the_next_command(repo: Repo, lease: str, moves: str, writes: str, new: str) -> None:
    """agents-16: the lease followed when the watcher had heard; what was written there before, nobody found."""
    ann, bob = both(repo)
    hold(repo, bob, lease)
    said, code, _ = ann.shell(moves)
    assert code == 0 and lease in said
    flagged(repo)
    with repo.client() as client:
        (held,) = (one for one in client.call(rq.Locks()).items if one.resource.startswith(new.split("/")[0]))
    assert f"{new}/".startswith(held.resource.rstrip("/") + "/") and held.locked_by == bob.name
    said, code, _ = ann.shell(writes)
    assert code == 0 and new in said and f"{new}" in told(repo, bob)
    assert flagged(repo)[new].change == "modified"


@pytest.mark.parametrize("seconds", [0, 1])
def test_a_parent_that_becomes_a_link_is_found_whoever_hears_of_it_first(make_repo: Callable[..., Repo], seconds: int) -> None:
    """The watcher, while the command runs still, or the comparison after it: the mover got the lease, and nobody looked."""
    repo = make_repo()
    repo.write("pkg/deep/g.py", "g\n")
    with repo.client() as client:
        client.call(rq.Health())
    ann, bob = both(repo)
    hold(repo, bob, "pkg/deep/g.py")
    said, code, _ = ann.shell(f"D=pkg/deep; mv $D pkg/away; mkdir tmp; echo HACK > tmp/g.py; ln -s ../tmp $D; sleep {seconds}")
    assert code == 0 and "changed pkg/deep/g.py" in said and "g.py" in told(repo, bob)
    assert "pkg/deep/g.py" in flagged(repo)
    with repo.client() as client:
        until(lambda: {one.resource for one in client.call(rq.Locks()).items if one.locked_by == bob.name} == {"pkg/deep/g.py", "pkg/away/g.py"})


def test_what_is_gone_is_not_taken_for_what_came(repo: Repo) -> None:
    """A new file may get the number of one that was deleted just now."""
    ann, bob = both(repo)
    hold(repo, bob, "a.py", "d/")
    assert ann.shell("A=a.py; D=d; rm -r $A $D; for n in 1 2 3 4 5 6 7 8; do echo one > n$n.py; mkdir d$n; echo y > d$n/y.py; done")[1] == 0
    with repo.client() as client:
        assert {one.resource for one in client.call(rq.Locks()).items if one.locked_by == bob.name} == {"a.py", "d/"}


PARTS = "def g():\n    return 1\n\n\ndef h():\n    return 2\n\n\ndef k():\n    return 3\n"


@pytest.mark.parametrize(("change", "watched"), crossed([
    ("s/return 1/return 11/", False), ("s/return 3/return 33/", False), ("s/return 1/return 11/;s/return 2/return 22/", True),
    ("1i import os", True), ("s/def h/def hh/", True),
], [False, True, "first"]))
def test_a_command_that_changes_a_file_of_which_another_holds_a_part(make_repo: Callable[..., Repo], change: tuple[str, bool],
                                                                     watched: bool | str) -> None:
    """It is told of what is the other's, not of the rest of the file."""
    sed, theirs = change
    repo = make_repo(config="[watch]\ndebounce_s = 0.05\n" if watched else LATE)
    repo.write("m.py", PARTS)
    repo.write("change.sh", f"sed -i '{sed}' m.py\n" + ("sleep 0.5\n" if watched == "first" else ""))
    with repo.client() as client:
        client.call(rq.Health())
    ann, bob = both(repo)
    hold(repo, ann, "m.py::g")
    hold(repo, bob, "m.py::h")
    told, code, _ = ann.shell("sh change.sh")
    assert code == 0
    if watched:
        repo.write("last.py", "x\n")
        hold(repo, ann, "last.py")
        time.sleep(0.5)
    with repo.client() as client:  # (the watcher may have been first: then it is told by a notice)
        told += "".join(one.text for one in client.call(rq.Heartbeat(agent=ann.name)).notices)
    assert ("without a lease" in told) == theirs, told
    found = flagged(repo)
    assert ("m.py" in found) == theirs
    with repo.client() as client:
        notices = [one.text for one in client.call(rq.Heartbeat(agent=bob.name)).notices]
    assert any("which you hold" in one for one in notices) == theirs, notices


@pytest.mark.parametrize(("change", "mine"), crossed(
    [("s/return 1/return 11/", False), ("s/return 3$/return 33/", False), ("s/return 3 - 1/return 22/", True)], ["m.py::g", "other.py"]))
def test_a_program_that_writes_another_file_first_and_renames_it_is_judged_by_what_it_changed(make_repo: Callable[..., Repo], change: tuple[str, bool],
                                                                                              mine: str) -> None:
    """As formatters and `sed -i` do. The watcher has seen the new file by then, and leased it to the agent."""
    sed, theirs = change
    repo = make_repo(config="[watch]\ndebounce_s = 0.05\n")
    repo.write("m.py", PARTS)
    repo.write("change.sh", f"sed '{sed}' m.py > .m.tmp\nsleep 0.7\nmv .m.tmp m.py\n")
    with repo.client() as client:
        client.call(rq.Health())
    ann, bob = both(repo)
    hold(repo, ann, mine)
    hold(repo, bob, "m.py::h")
    assert bob.edit("m.py", PARTS.replace("return 2", "return 3 - 1")) == ""  # (his own, and none of what she does)
    said, code, _ = ann.shell("sh change.sh")
    assert code == 0
    time.sleep(0.7)
    said += told(repo, ann)
    assert ("do not write there" in said.lower()) == theirs, said
    assert ("m.py" in told(repo, bob)) == theirs
    with repo.client() as client:
        held = {one.resource for one in client.call(rq.Locks()).items if one.locked_by == ann.name}
    assert ".m.tmp" not in held, held
    assert ("m.py::k" in held) == ("return 3$" in sed), held
    assert ("m.py" in flagged(repo)) == theirs


@pytest.mark.parametrize("command", [
    "python3 mk.py", "sh -c 'ln -s one two/new; ln -s two latest'", "ln -sfn two current", "ln -sfn two.txt current.txt"])
def test_a_link_that_a_command_makes_is_no_work_on_what_it_leads_to(make_repo: Callable[..., Repo], command: str) -> None:
    """Neither leased to the agent nor taken out by a revert."""
    repo = make_repo(config="[watch]\ndebounce_s = 0.05\n")
    for name in ("one/f", "two/f", "one.txt", "two.txt"):
        repo.write(name, f"{name}\n")
    repo.write("mk.py", "import os\nos.symlink('two', 'latest'); os.symlink('../two.txt', 'one/alias.txt')\n")
    for name, to in (("current", "one"), ("current.txt", "one.txt")):
        (repo.root / name).symlink_to(to)
    with repo.client() as client:
        client.call(rq.Health())
    ann, bob = both(repo)
    repo.write("two/person.txt", "mine\n")
    repo.write("two.txt", "two.txt\nmine\n")
    time.sleep(0.4)
    assert ann.shell(command)[1] == 0
    time.sleep(0.6)
    with repo.client() as client:
        held = {one.resource for one in client.call(rq.Locks()).items}
        assert not held & {"two/", "two.txt", "two/f", "two/person.txt"}, held
        assert bob.edit("two/more.txt", "bob's\n") == "" and bob.edit("two.txt", "two.txt\nmine\nbob's\n") == ""
        client.call(rq.Leave(agent=ann.name, clean=False, reason="killed"))
        for one in client.call(rq.Reviews()).items:
            assert {file.path for file in one.files} <= {"two/new", "latest", "current", "current.txt", "one/alias.txt"}, one  # (its own)
            client.call(rq.ReviewDecide(review=one.review, verdict="revert"))
    assert (repo.root / "current").readlink() == Path("one") and (repo.root / "current.txt").readlink() == Path("one.txt")
    assert not any((repo.root / name).is_symlink() for name in ("latest", "two/new", "one/alias.txt"))
    assert repo.read("two/f") == "two/f\n" and repo.read("two/person.txt") == "mine\n" and repo.read("two.txt") == "two.txt\nmine\nbob's\n"


@pytest.mark.parametrize(("over", "held", "times"), crossed(
    ["python3 -c \"open('c'+'.txt','w').write('A over')\"", "rm c.tx[t]", "c=c; mv b.tx[t] $c.txt"], ["./", "", "c.txt"], [1, 2],
    possible=lambda over, held, times: "mv" not in over or held != "./"))  # (what it moves is held, too)
def test_what_a_command_wrote_is_kept_before_anothers_can_destroy_it(make_repo: Callable[..., Repo], over: str, held: str, times: int) -> None:
    """Whether its agent had the file before, has it by that, or has the directory."""
    repo = make_repo(config="[watch]\ndebounce_s = 0.05\n")
    for name in ("b", "c"):
        repo.write(f"{name}.txt", f"{name}\n")
    repo.write("gen.sh", 'echo "$1 made this" >> "$2"\n')
    git(repo, "add", "-A")
    git(repo, "-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-qm", "x")
    with repo.client() as client:
        client.call(rq.Health())
    ann, bob = both(repo)
    if held:
        hold(repo, bob, "c.txt" if held == "c.txt" else "*.txt")
    for n in range(times):
        assert bob.shell(f"sh gen.sh bob{n} c.txt")[1] == 0
        time.sleep(0.3)
    made = repo.read("c.txt")
    assert made == "c\n" + "".join(f"bob{n} made this\n" for n in range(times))
    assert ann.shell(over)[1] == 0
    with repo.client() as client:
        until(lambda: client.call(rq.Reviews()).items)
        (review,) = [one for one in client.call(rq.Reviews()).items if "c.txt" in [file.path for file in one.files]]
        (file,) = [one for one in client.call(rq.ReviewShow(review=review.review)).files if one.path == "c.txt"]
        assert file.note == "" and file.diff is not None and f"-bob{times - 1} made this" in file.diff, file
        client.call(rq.Release(agent=bob.name, resources=["*.txt" if held == "./" else "c.txt"]))
        client.call(rq.ReviewDecide(review=review.review, verdict="revert"))
    assert repo.read("c.txt") == made


@pytest.mark.parametrize("large", [0, 5_000_000])
def test_what_a_command_wrote_is_its_agents_when_it_has_ended(make_repo: Callable[..., Repo], large: int) -> None:
    """Whatever the watcher waits for by itself, and however much it has to read."""
    repo = make_repo(config="[watch]\ndebounce_s = 1.0\n")
    for name in ("big.bin", "b.txt", "c.txt"):
        repo.write(name, name)
    repo.write("w.py", f"import os, sys\nfor n in sys.argv[1:]:\n    open(n, 'wb').write(os.urandom({large} if n.endswith('bin') else 8).hex().encode())\n")
    git(repo, "add", "-A")
    git(repo, "-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-qm", "x")
    with repo.client() as client:
        client.call(rq.Health())
    ann, bob = both(repo)
    assert ann.shell("python3 w.py big.bin b.txt")[1] == 0
    with repo.client() as client:
        assert {(one.resource, one.locked_by) for one in client.call(rq.Locks()).items} == {("big.bin", ann.name), ("b.txt", ann.name)}
    made = repo.read("b.txt")
    told, _, _ = bob.shell("f=b; python3 w.py $f.txt c.txt")
    assert "changed b.txt, held by claude-code-ann, without a lease" in told
    with repo.client() as client:
        (review,) = client.call(rq.Reviews()).items
        (file,) = client.call(rq.ReviewShow(review=review.review)).files
        assert file.path == "b.txt" and file.diff is not None and f"-{made}" in file.diff


def is_followed_at_once(move: tuple[str, str], held: str) -> bool:
    """What is moved out of a leased directory is told of a moment later; of a file that is new no lease knows by itself
    yet, and its directory is watched anew."""
    return not (held == "dir/" and "x.py" in move[0]) and not (held == "new" and "; mv" in move[0])


@pytest.mark.parametrize(("move", "held"), crossed([
    ("mv d1 e$((1))", "e1/x.py"), ("python3 -c 'import os; os.rename(\"d1\", \"e1\")'", "e1/x.py"), ("mv d1/x.py d1/y$((1)).py", "d1/y1.py"), ("mv d1 e$((1)); mv e1/x.py f$((1)).py", "f1.py")],
    ["new", "dir/", "old", "region"], possible=is_followed_at_once))
def test_what_a_holder_renames_is_nobody_elses_when_its_command_has_ended(make_repo: Callable[..., Repo], move: tuple[str, str], held: str) -> None:
    """Not for the moment until the watcher has told of it either."""
    command, to = move
    repo = make_repo()
    with repo.client() as client:
        client.call(rq.Health())
    ann, bob = both(repo)
    for n in range(examples(4)):
        if held != "new":
            repo.write(f"d{n}/x.py", PARTS)
        if held == "dir/":
            hold(repo, ann, f"d{n}/")
        elif held == "region":
            hold(repo, ann, f"d{n}/x.py::g")
        assert ann.edit(f"d{n}/x.py", PARTS.replace("return 1", "return 1000")) == ""
        time.sleep(0.3)  # (a new directory is watched)
        mine = command.replace("d1", f"d{n}").replace("e1", f"e{n}").replace("$((1))", f"$(({n}))")
        assert ann.shell(mine)[1] == 0
        said, code, _ = bob.shell(f"sed -i 's/1000/2000/' {to.replace('1', str(n))}")
        assert code != 0 and f"leased by {ann.name}" in said, (n, said)


def can_be_renamed(command: str, kind: str) -> bool:
    """Git does not know what is unknown; to add to a link would write what it leads to."""
    return not (kind == "unknown" and "git" in command) and not (kind == "link" and "more" in command)


@pytest.mark.parametrize(("command", "kind"), crossed(
    ["mv b.txt B$((1 + 1)).txt", "python3 -c 'import os; os.rename(\"b.txt\", \"B2.txt\")'", "git mv b.txt B$((1 + 1)).txt",
     "mv b.txt B$((1 + 1)).txt; echo more >> B$((1 + 1)).txt"], ["unknown", "link", "committed", "changed"], possible=can_be_renamed))
def test_both_names_of_what_a_command_renames_are_its_agents(make_repo: Callable[..., Repo], command: str, kind: str) -> None:
    """Held by nobody, and in a review if the agent is killed; the revert gives all back."""
    repo = make_repo(config="[watch]\ndebounce_s = 0.05\n")
    repo.write("a.txt", "a\n")
    if kind == "link":
        (repo.root / "b.txt").symlink_to("a.txt")
    elif kind != "unknown":
        repo.write("b.txt", "committed\n")
    git(repo, "add", "-A")
    git(repo, "-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-qm", "x")
    if kind in ("changed", "unknown"):
        repo.write("b.txt", "a person's\n")
    with repo.client() as client:
        client.call(rq.Health())
    before = (repo.root / "b.txt").readlink() if kind == "link" else repo.read("b.txt")
    ann, bob = both(repo)
    time.sleep(1.2)  # (it was written before)
    assert ann.shell(command)[1] == 0

    def held() -> set[tuple[str, str]]:
        with repo.client() as client:
            return {(one.resource, one.locked_by) for one in client.call(rq.Locks()).items}

    until(lambda: {("b.txt", ann.name), ("B2.txt", ann.name)} <= held())
    if kind != "link":  # (through a link an edit writes what it leads to)
        assert bob.edit("B2.txt", "bob's\n") != "" and bob.edit("b.txt", "bob's\n") != ""
    with repo.client() as client:
        (review,) = client.call(rq.Leave(agent=ann.name, clean=False, reason="killed")).reviews
        assert {one.path for one in client.call(rq.ReviewShow(review=review)).files} == {"b.txt", "B2.txt"}
        for name in ("b.txt", "B2.txt") if kind != "link" else ():
            until(lambda name=name: (name, bob.name) in held())  # (he was next in line)
            client.call(rq.Release(agent=bob.name, resources=[name]))
        client.call(rq.ReviewDecide(review=review, verdict="revert"))
    assert ((repo.root / "b.txt").readlink() if kind == "link" else repo.read("b.txt")) == before
    assert not (repo.root / "B2.txt").exists() and repo.read("a.txt") == "a\n"


@pytest.mark.parametrize(("command", "name"), crossed(
    ["ln -sfn three{} {}", "ln -s three{} new; mv -T new {}", "rm {}", "git rm -q {}", "mv {} moved"], ["current", "current.txt"]))
def test_a_link_that_a_command_leads_elsewhere_is_its_agents(make_repo: Callable[..., Repo], name: str, command: str) -> None:
    """The link itself: others go on with what it leads to, and led to."""
    repo = make_repo(config=LATE)
    ending = name.removeprefix("current")
    for one in ("one", "two", "three"):
        repo.write(f"{one}/f", f"{one}\n")
        repo.write(f"{one}.txt", f"{one}\n")
    (repo.root / name).symlink_to(f"one{ending}")
    git(repo, "add", "-A")
    git(repo, "-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-qm", "x")
    command = command.format(*[ending, name] if "three" in command else [name])
    with repo.client() as client:
        client.call(rq.Health())
    ann, bob = both(repo)
    assert ann.shell(f"ln -sfn two{ending} {name}")[1] == 0
    assert (repo.root / name).readlink() == Path(f"two{ending}")
    said, code, _ = bob.shell(command)
    assert code != 0 and f"{name} is leased by {ann.name}" in said, said
    assert bob.edit("two/f", "bob's\n") == "" and bob.edit("two.txt", "bob's\n") == "" and bob.edit("one.txt", "bob's\n") == ""
    with repo.client() as client:
        assert {one.resource for one in client.call(rq.Locks()).items if one.locked_by == ann.name} == {name}
        (review,) = client.call(rq.Leave(agent=ann.name, clean=False, reason="killed")).reviews
        (file,) = client.call(rq.ReviewShow(review=review)).files
        assert file.path == name and file.change == "modified" and file.diff is not None
        assert f"-one{ending}\n" in file.diff and f"+two{ending}\n" in file.diff
        until(lambda: (name, bob.name) in {(one.resource, one.locked_by) for one in client.call(rq.Locks()).items})  # (he was next in line)
        client.call(rq.Release(agent=bob.name, resources=[name]))
        client.call(rq.ReviewDecide(review=review, verdict="revert"))
    assert (repo.root / name).readlink() == Path(f"one{ending}")
    assert repo.read("two/f") == repo.read("two.txt") == repo.read("one.txt") == "bob's\n"
    assert bob.shell(command)[1] == 0


@pytest.mark.parametrize("watched", [False, True])
def test_commands_of_two_in_their_own_parts_of_a_file_accuse_nobody(make_repo: Callable[..., Repo], watched: bool) -> None:
    """One after the other, without a pause: what was there before each is known."""
    repo = make_repo(config="[watch]\ndebounce_s = 0.05\n" if watched else LATE)
    repo.write("m.py", PARTS)
    repo.write("step.py", "import sys\nt = open('m.py').read()\nopen('m.py', 'w').write(t.replace(sys.argv[1], sys.argv[2]))\n")
    with repo.client() as client:
        client.call(rq.Health())
    ann, bob = both(repo)
    hold(repo, ann, "m.py::g")
    hold(repo, bob, "m.py::h")
    repo.write("m.py", PARTS.replace("return 1", "return 1000").replace("return 2", "return 2000") + "# a person's\n")
    time.sleep(0.3)
    for n in range(examples(6)):
        for who, base in ((ann, 1000), (bob, 2000)):
            told, code, _ = who.shell(f"python3 step.py 'return {base + n}' 'return {base + n + 1}'")
            assert code == 0 and "without a lease" not in told, told
        assert "without a lease" not in bob.shell("ls; git status")[0]
    time.sleep(0.3)
    with repo.client() as client:
        assert [one.summary for one in client.call(rq.Reviews()).items] == []
        for who in (ann, bob):
            assert not [one.text for one in client.call(rq.Heartbeat(agent=who.name)).notices if "command" in one.text]


@pytest.mark.parametrize("first", ["own", "other's"])
def test_a_free_part_that_a_command_changes_is_its_agents_from_then_on(make_repo: Callable[..., Repo], first: str) -> None:
    repo = make_repo(config="[watch]\ndebounce_s = 0.05\n")
    repo.write("m.py", PARTS)
    repo.write("change.sh", "sed -i 's/return 3/return 33/;$a def new(): pass' m.py\n")
    with repo.client() as client:
        client.call(rq.Health())
    ann, bob = both(repo)
    for who in (ann, bob) if first == "own" else (bob, ann):
        hold(repo, who, "m.py::g" if who is ann else "m.py::h")
    time.sleep(0.2)
    told, code, _ = ann.shell("sh change.sh")
    assert code == 0 and "without a lease" not in told

    def held() -> set[tuple[str, str]]:
        with repo.client() as client:
            return {(one.resource, one.locked_by) for one in client.call(rq.Locks()).items}

    until(lambda: {("m.py::k", ann.name), ("m.py::new", ann.name)} <= held())
    with repo.client() as client:
        (review,) = client.call(rq.Leave(agent=ann.name, clean=False)).reviews
        (file,) = client.call(rq.ReviewShow(review=review)).files
        assert file.diff is not None and "-    return 3\n+    return 33\n" in file.diff and "+def new(): pass" in file.diff
        assert held() == {("m.py::h", bob.name)}
        client.call(rq.Release(agent=bob.name, resources=["m.py::h"]))
        client.call(rq.ReviewDecide(review=review, verdict="revert"))
    assert repo.read("m.py") == PARTS
