"""Git in a session: what changes the whole working tree waits its turn, whoever calls it; the rest is never held up."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.namespaces.conftest import ONCE, Agent, Stand
from tests.namespaces.test_session_hooks import asked
from tests.waiting import until


@pytest.fixture
def repo(stand: Stand) -> Stand:
    """A repository with a branch that changes two files and adds one."""
    stand.run("git", "config", "user.name", "One")
    stand.run("git", "config", "user.email", "one@localhost")
    for path in ("a.py", "b.py"):
        stand.write(path, "one\n")
    stand.write("Makefile", "up:\n\tgit merge -q topic\n")
    stand.run("git", "add", "-A")
    stand.run("git", "commit", "-qm", "one")
    stand.run("git", "branch", "-M", "trunk")
    stand.run("git", "switch", "-qc", "topic")
    for path in ("a.py", "b.py", "new.py"):
        stand.write(path, "topic\n")
    stand.run("git", "add", "-A")
    stand.run("git", "commit", "-qm", "topic")
    stand.run("git", "switch", "-q", "trunk")
    stand.write("coord.toml", "[hooks]\ngit_wait_s = 0\n")
    return stand


def state(stand: Stand) -> list[str]:
    """What a half-done command would leave different."""
    out = [stand.run("git", *words).stdout for words in (
        ("rev-parse", "HEAD", "topic", "trunk"), ("symbolic-ref", "HEAD"), ("diff", "--cached"), ("stash", "list"))]
    return out + [f"{file.name} {file.read_text()}" for file in sorted(stand.root.glob("*.py"))]


#: Each would change the whole tree, or its branch: by git, by what calls git, by another way to call it.
WIDE = ("git merge -q topic", "git switch topic", "git checkout topic", "git reset -q topic", "git reset --hard topic", "git rebase topic",
        "git cherry-pick topic", "git stash", "git checkout -- .", "git clean -fd", "git restore .", "bash -c 'git merge topic'",
        "timeout 60 git merge topic", "make -s up", "env -i PYTHONPATH=\"$PYTHONPATH\" /usr/bin/git merge topic", "git -c user.name=x merge topic", "git -C . merge topic",
        "\"$(git --exec-path)/git\" merge topic", "python3 -c \"import subprocess, sys; sys.exit(subprocess.call(['git', 'merge', 'topic']))\"",
        "git config alias.up 'merge topic'; git up", "git config alias.there '!git merge topic'; git there", "git fetch -q . && git pull -q . topic")


#: What moves the branch that all work on, and no file.
OF_HEAD = (
    "git symbolic-ref HEAD refs/heads/topic", "git symbolic-ref -d HEAD", "git update-ref refs/heads/trunk topic", "git update-ref -d HEAD",
    "git update-ref HEAD $(git commit-tree -m x topic^{tree})", "echo \"update HEAD $(git rev-parse topic)\" | git update-ref --stdin",
    "git switch -c other", "git checkout -b other", "git checkout -B trunk", "git switch --orphan other", "git branch -M other", "git branch -m trunk other", "git fetch -q -u . topic:trunk", "echo 'reset refs/heads/trunk' | git fast-import --quiet")


def test_named_files_of_ones_own_are_put_aside_while_others_are_at_work(repo: Stand) -> None:
    """As the refusal of a `git stash` of all advises; of what another holds nothing is touched."""
    agent = repo.agent()
    repo.coord("lock", "a.py", "--agent", "ann")
    repo.write("a.py", "hers\n")
    repo.write("b.py", "mine\n")
    before = state(repo)
    for command in ("git stash push -- a.py", "git stash push -q -- a.py b.py", "git stash -- a.py"):
        assert agent.does(f"({command}) 2>&1") != 0 and "a.py: held by ann" in "\n".join(agent.said), (command, agent.said)
        assert state(repo) == before, command
    repo.write("new.py", "hers\n")
    repo.coord("lock", "new.py", "--agent", "ann")
    before = state(repo)
    for flag in ("-u", "-qu", "--include-untracked", "-a", "--all"):
        assert agent.does(f"(git stash push {flag} -- new.py) 2>&1") != 0 and "new.py: held by ann" in "\n".join(agent.said), (flag, agent.said)
        assert state(repo) == before, flag
    assert agent.does("git stash push -q -- b.py") == 0, agent.said
    assert repo.read("b.py") != "mine\n" and repo.read("a.py") == "hers\n"
    assert agent.does("git checkout -q 'stash@{0}' -- b.py") == 0 and repo.read("b.py") == "mine\n", agent.said
    assert agent.does("(git stash) 2>&1") != 0


#: Files that are named, of which the index (and the file) would be as a commit has them.
NAMED = ("git checkout topic -- b.py", "git checkout topic b.py", "git checkout topic -- '*.py'", "git restore --source topic -SW b.py",
         "git restore -s topic --staged b.py", "git restore --source=topic b.py a.py", "git reset -q topic -- b.py", "git reset -q topic b.py",
         "git checkout topic -- new.py", "(cd sub && git checkout topic -- ../b.py)")


@pytest.mark.slow
def test_what_the_index_has_of_others_files_is_not_brought_back_from_a_commit(repo: Stand) -> None:
    repo.coord("lock", "b.py", "new.py", "--agent", "ann")
    repo.write("sub/x", "x\n")
    agent = repo.agent()
    before = state(repo)
    for command in NAMED:
        assert agent.does(command) != 0, command
        assert state(repo) == before, command
    errors = repo.errors()
    assert errors.count("ann") >= len(NAMED) and "would change what the index has" in errors
    # Its own, and what takes out of the index again what was added, is never held up.
    for command in ("git checkout topic -- a.py", "git restore --staged a.py", "git restore -s topic a.py", "git checkout -- a.py",
                    "git restore --staged b.py", "git reset -q -- b.py", "git reset -q HEAD b.py", "git checkout -q trunk -- a.py"):
        assert agent.does(command) == 0, (command, repo.errors()[len(errors):])
    assert state(repo) == before
    repo.coord("unlock", "b.py", "new.py", "--agent", "ann")
    for command in NAMED[:4]:
        assert agent.does(command) == 0, command


@pytest.mark.slow
def test_nothing_changes_the_tree_while_others_are_at_work(repo: Stand) -> None:
    agent = repo.agent()
    repo.coord("lock", "a.py", "--agent", "ann", "--description", "rewriting it")
    before = state(repo)
    for command in WIDE:
        assert agent.does(f"({command}) 2>&1") != 0, command
        assert "ann" in "\n".join(agent.said) and "a.py" in "\n".join(agent.said), (command, agent.said)
        assert state(repo) == before, command
    assert not repo.asks("review", "list")["items"]


def test_a_repository_of_its_own_below_the_root_is_another(repo: Stand) -> None:
    """A fixture, a clone, a submodule: git there waits for whoever holds a file of that one, and for nobody else."""
    for words in (("init", "-q", "own"), ("clone", "-q", ".", "../other")):
        repo.run("git", *words)
    repo.write("own/x", "x\n")
    for words in (("add", "-A"), ("-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "x")):
        repo.run("git", "-C", "own", *words)
    repo.coord("lock", "a.py", "--agent", "ann")
    repo.write("a.py", "hers\n")
    agent = repo.agent()
    for command in ("git -C own checkout -q -- . && cd own && echo y >> x && git stash -q && git switch -qc z && git reset -q --hard && git clean -fdq; code=$?; cd ..; (exit $code)",
                    "git clone -q ../other cl && git -C cl checkout -qb z", "git -c protocol.file.allow=always submodule --quiet add ../other sub && git -C sub checkout -q -- ."):
        assert agent.does(f"({command}) 2>&1") == 0, (command, agent.said)
    repo.coord("lock", "own/x", "sub/b.py", "--agent", "carl")
    for command in ("git -C own reset --hard", "git -C sub checkout -qb q", "GIT_DIR=$PWD/.git GIT_WORK_TREE=$PWD/cl git checkout -- .", "GIT_WORK_TREE=$PWD git -C cl checkout -- .", "git checkout -- ."):
        assert agent.does(f"({command}) 2>&1") != 0, (command, agent.said)
        said = "\n".join(agent.said)
        assert ("carl" in said and "ann" not in said) if command.startswith("git -C") else "ann" in said, said
    assert agent.does("git -C cl reset -q --hard") == 0 and repo.read("a.py") == "hers\n"


def test_a_branch_that_only_a_remote_has_is_waited_for(repo: Stand) -> None:
    """git makes one of it and changes to it; unless a file is called so."""
    agent = repo.agent()
    repo.run("git", "remote", "add", "origin", ".")
    for name in ("theirs", "b.py"):
        repo.run("git", "update-ref", f"refs/remotes/origin/{name}", "topic")
    repo.coord("lock", "a.py", "--agent", "ann")
    before = state(repo)
    assert agent.does("git checkout theirs 2>&1") != 0
    assert "a.py" in "\n".join(agent.said), agent.said
    assert state(repo) == before
    agent.does("git checkout b.py 2>&1")
    assert "ann" not in "\n".join(agent.said), agent.said


def test_what_is_nobody_elses_is_never_held_up(repo: Stand) -> None:
    """And is as it is without coord: output, exit codes, the name that git was called by."""
    agent = repo.agent()
    repo.coord("lock", "a.py", "--agent", "ann")
    plain = ("git --version", "git log --oneline -1", "git diff", "git blame a.py", "git fetch .", "git branch other", "git nonsense", "git status -s",
             "git commit -q", "git rev-parse --git-dir", "git --exec-path", "git -C /nowhere status", "git", "git config --get user.name",
             "git worktree list", "git symbolic-ref HEAD", "git symbolic-ref -q --short HEAD", "git branch -v", "\"$(git --exec-path)/git-rev-parse\" HEAD", "git help -a | head -3", "git checkout nothing-of-the-kind")
    for command in plain:
        bare = repo.run("sh", "-c", command)
        code = agent.does(f"({command}) 2>&1")
        if command != "git branch other":
            assert (code, agent.said) == (bare.returncode, (bare.stdout + bare.stderr).splitlines()), command
    repo.write("b.py", "mine\n")
    for command in ("git add b.py", "git commit -qm mine -- b.py", "git checkout -q HEAD~ -- b.py", "git restore --staged b.py",
                    "git commit -qam all", "git checkout b.py", "git stash list"):
        assert agent.does(f"({command}) 2>&1") == 0, (command, agent.said)


#: Under this no Python starts that looks at its environment: only what a bare interpreter can tell is told.
BARE = "PYTHONHOME=/nowhere"


@ONCE
def test_what_is_nobody_elses_is_told_by_a_bare_interpreter(repo: Stand) -> None:
    """The whole check takes ten times as long to start: it is asked only where others hold something of it."""
    agent = repo.agent()
    repo.coord("lock", "a.py", "--agent", "ann")
    for name in ("b.py", "c.py", "with space.py", "ü.py"):
        repo.write(name, "mine\n")
    for command in ("git add b.py", "git add -v c.py 'with space.py'", "git stage ü.py", "git commit -qm 'mine' -- b.py", "git commit -qm more", "git rm -r c.py",
                    "git commit -q --amend --no-edit", "git add -A", "git add .", "git add -- b.py", "git rm --cached --no-dry-run b.py",
                    "git commit -q --long --allow-empty -m x --branch", "git -c user.name=x log -1"):
        assert agent.does(f"({BARE} {command}) 2>&1") == 0, (command, agent.said)
    assert agent.does(f"git reset -q --mixed -- .; echo more >> b.py; {BARE} git commit -qam last") == 0, agent.said
    assert agent.does("git log --format=%s -3") == 0 and agent.said == ["last", "more", "mine"], agent.said


@ONCE
def test_the_message_of_a_commit_is_amended_whoever_holds_its_files(repo: Stand) -> None:
    """git lists what such a commit has against the one before; against this one nothing changes."""
    agent = repo.agent()
    repo.write("b.py", "committed\n")
    repo.run("git", "commit", "-qam", "b")
    repo.coord("lock", "b.py", "--agent", "ann")
    assert agent.does("git commit -q --amend -m again 2>&1") == 0, agent.said
    repo.write("c.py", "mine\n")
    assert agent.does("git add c.py && git commit -q --amend -m more 2>&1") == 0, agent.said
    repo.write("b.py", "ann's, half done\n")
    assert agent.does("git commit -q --amend -am all 2>&1") != 0 and "held by ann" in "\n".join(agent.said), agent.said
    assert agent.does("git commit -q --amend -m last 2>&1") == 0, agent.said


@ONCE
def test_what_is_not_plain_is_weighed(repo: Stand) -> None:
    """Of others' files, odd words and other repositories a bare interpreter says nothing."""
    agent = repo.agent()
    repo.coord("lock", "a.py", "--agent", "ann")
    for name in ("a.py", "b.py"):
        repo.write(name, "mine\n")
    repo.run("git", "init", "-q", "inner")
    repo.write("inner/x.py", "x\n")
    for command in ("git add a.py", "git add -A", "git commit -qam x", "git commit -qm x -- a.py", "git rm -q --cached b.py", "git -C . add b.py", "git add -p b.py",
                    "git add --pathspec-from-file=- <<E\na.py\nE", "git commit -m -- b.py", "git mv b.py c.py", "git -C inner add x.py", "cd inner; git add x.py",
                    "GIT_INDEX_FILE=/tmp/other git add b.py"):
        assert agent.does(f"(export {BARE}; {command}) 2>&1") != 0, (command, agent.said)
    assert agent.does("git rm -q --cached b.py && git reset -q -- b.py && git -C inner add x.py") == 0, agent.said


@pytest.mark.slow
@ONCE
def test_the_branch_that_all_work_on_stays_where_it_is(repo: Stand) -> None:
    """By whatever plumbing; what leaves it there passes."""
    agent = repo.agent()
    repo.coord("lock", "a.py", "--agent", "ann")
    before = state(repo)
    for command in OF_HEAD:
        assert agent.does(f"({command}) 2>&1") != 0, command
        assert "ann" in "\n".join(agent.said) and state(repo) == before, (command, agent.said)
    repo.write("b.py", "mine\n")
    for command in ("git branch other && git branch -m other another && git update-ref refs/heads/side HEAD", "git mv b.py c.py && git rm -qf --cached c.py",
                    "git update-index --add c.py && git update-index -q --refresh",
                    "git update-ref refs/heads/side $(git commit-tree -p HEAD -m plumbed $(git write-tree)) && git update-ref HEAD trunk"):
        assert agent.does(f"({command}) 2>&1") == 0, (command, agent.said)


@pytest.mark.slow
@ONCE
def test_what_others_hold_is_not_committed_whatever_hooks_are_left_out(repo: Stand) -> None:
    agent = repo.agent()
    repo.coord("lock", "a.py", "--agent", "ann")
    repo.write("a.py", "half of it\n")
    for command in ("git commit --no-verify -qm x -- a.py", "git commit -n -qam x", "git add a.py", "git add -A", "git add .", "git commit -o a.py -nm x",
                    "git -c core.hooksPath=/dev/null commit -am x", "git stage :/", "git config alias.ci 'commit -n'; git ci -am x",
                    "git rm --cached a.py", "git rm -qr --cached .", "git mv a.py z.py", "git update-index a.py", "git update-index --force-remove a.py",
                    "git update-index --add --cacheinfo 100644,$(git hash-object b.py),a.py",
                    # What they say of themselves is no more to be believed, …
                    *(f"git commit -n {odd} -am x" for odd in ("--long", "--short", "--branch", "--no-porcelain --no-dry-run", "--no-null -v", "-e")),
                    "git commit -n --no-dry-run -m -- -a", "git commit -nm x --no-dry-run -- a.py", "git commit -nm x --end-of-options a.py",
                    "git add --no-dry-run a.py", "git rm --no-dry-run -q --cached a.py", "git add -f --no-dry-run -- a.py",
                    # … nor is what they read only once, or ask for.
                    "printf a.py | git commit -nm x --pathspec-from-file=-", "printf a.py | git add --pathspec-from-f -", "printf a.py | git add -vf --pathspec-from-file=-",
                    "printf a.py | git rm --cached --pathspec-from-file=/dev/stdin", "bash -c 'git add --pathspec-from-file <(echo a.py)'",
                    "echo a.py > names; git add --pathspec-from-file names", "printf 'y\\ny\\n' | git commit -n --pat -m x",
                    "printf 'y\\ny\\n' | git commit -npm x", "printf '5\\n1\\n\\ny\\ny\\nq\\n' | git commit -nm x --inter"):
        assert agent.does(f"({command}) 2>&1") != 0, command
        assert "a.py: held by ann" in "\n".join(agent.said), (command, agent.said)
    assert repo.run("git", "diff", "--cached", "--name-only").stdout == ""
    repo.run("git", "add", "a.py")  # a person's doing
    assert agent.does("git commit -n -qm x 2>&1") != 0 and "a.py: held by ann" in "\n".join(agent.said)
    assert repo.run("git", "log", "--format=%s").stdout == "one\n"
    repo.coord("unlock", "a.py", "--agent", "ann")
    assert agent.does("git commit -qm x 2>&1") == 0, agent.said


@ONCE
def test_a_merge_takes_nothing_along_that_others_hold(repo: Stand) -> None:
    """What a branch brings was committed there; what lies beside it in the working tree was not."""
    agent = repo.agent()
    repo.write("d.py", "one\n")
    repo.run("git", "add", "d.py")
    repo.run("git", "commit", "-qm", "d")
    assert agent.does("git merge -q --no-commit --no-ff topic") == 0, agent.said
    repo.coord("lock", "d.py", "--agent", "ann")
    repo.write("d.py", "half of it\n")
    assert agent.does("git commit -n -qam x 2>&1") != 0 and "d.py: held by ann" in "\n".join(agent.said)
    assert agent.does("git commit -n -qm merged 2>&1") == 0, agent.said
    assert repo.run("git", "show", "HEAD:d.py").stdout == "one\n" and repo.run("git", "show", "HEAD:a.py").stdout == "topic\n"


@ONCE
def test_of_a_file_that_two_share_each_commits_what_is_its_own(repo: Stand) -> None:
    two = "def f():\n    return 1\n\n\ndef g():\n    return 2\n"
    repo.write("two.py", two)
    repo.run("git", "add", "two.py")
    repo.run("git", "commit", "-qm", "two")
    agent = repo.agent()
    repo.coord("lock", "two.py::g", "--agent", "ann")
    repo.write("two.py", two.replace("return 1", "return 10"))
    for command in ("git add two.py", "git commit -qm f", "git commit --amend -qm again"):
        assert agent.does(f"({command}) 2>&1") == 0, (command, agent.said)
    repo.write("two.py", two.replace("return 2", "return 20"))
    for command in ("git add two.py", "git add -A", "git commit -n -qam x", "git commit -n -qm x -- two.py", "git rm --cached two.py", "git mv two.py new.py"):
        assert agent.does(f"({command}) 2>&1") != 0, command
        assert "two.py (as two.py::g): held by ann" in "\n".join(agent.said), (command, agent.said)
    repo.write("two.py", two.replace("return 1", "return 11").replace("return 2", "return 20"))
    for command in ("git add two.py", "git commit -qm x -- two.py"):
        assert agent.does(f"({command}) 2>&1") != 0, command
    said = "\n".join(agent.said)
    assert "git add -p, then git commit" in said, said
    assert agent.does("(printf 's\\ny\\nn\\n' | git add -p two.py && git commit -qm part) 2>&1") == 0, agent.said
    assert repo.run("git", "show", "HEAD:two.py").stdout == two.replace("return 1", "return 11")
    repo.write("b.py", "mine\n")
    assert agent.does("(echo y | git add -p b.py && echo y | git reset -p -- b.py && echo y | git add -p b.py && git commit -qm own) 2>&1") == 0, agent.said
    assert agent.does("(printf 's\\nn\\ny\\n' | git add -p two.py; git commit -qm theirs) 2>&1") != 0, "what is another's part is in no commit"


def during(stand: Stand, agent: Agent, command: str) -> subprocess.Popen[str]:
    """The agent's command, while it works."""
    assert agent.does(f"({command}) > said 2>&1 & echo $!") == 0
    until(lambda: any(one["resource"].startswith("git:index") for one in stand.asks("locks")["items"]))
    return agent.process


@ONCE
def test_nobody_is_granted_anything_while_a_tree_changes(repo: Stand) -> None:
    """And whoever waits has it as soon as git has ended, however it ends."""
    repo.write(".git/hooks/post-merge", "#!/bin/sh\nwhile [ ! -e go ]; do sleep 0.02; done\n")
    (repo.root / ".git/hooks/post-merge").chmod(0o755)
    one, two = repo.agent(), repo.agent()
    during(repo, one, "git merge -q topic")
    refused = repo.tries("lock", "b.py", "--agent", "ann")
    assert refused.returncode == 3 and "git merge" in refused.stderr, refused.stderr
    assert two.does("(git merge topic) 2>&1") != 0 and "git merge" in "\n".join(two.said), two.said
    waiting = subprocess.Popen([*repo.become, repo.python, "-P", "-m", "coordinator.cli.main", "lock", "b.py", "--agent", "ann", "--wait", "20s"],
                               cwd=repo.root, env=repo.env, stdout=subprocess.DEVNULL)
    repo.write("go", "")
    assert waiting.wait(20) == 0
    assert (repo.root / "new.py").exists()
    assert [one["resource"] for one in repo.asks("locks")["items"]] == ["b.py"]


@ONCE
def test_a_killed_git_has_no_turn_any_more(repo: Stand) -> None:
    repo.write(".git/hooks/post-merge", "#!/bin/sh\necho $PPID > pid; exec sleep 60\n")
    (repo.root / ".git/hooks/post-merge").chmod(0o755)
    agent = repo.agent()
    during(repo, agent, "git merge -q topic")
    until(lambda: (repo.root / "pid").exists() and repo.read("pid").strip())
    os.kill(int(Path(repo.root, "pid").read_text()), 9)
    repo.coord("lock", "b.py", "--agent", "ann", "--wait", "10s")


@ONCE
def test_it_waits_for_a_quiet_moment(repo: Stand) -> None:
    repo.write("coord.toml", "[hooks]\ngit_wait_s = 30\n")
    agent = repo.agent()
    repo.coord("lock", "a.py", "--agent", "ann")
    assert agent.does("git merge -q topic > said 2>&1 & echo $!") == 0
    until(lambda: (repo.root / "said").exists() and "waiting" in repo.read("said"))
    repo.coord("unlock", "a.py", "--agent", "ann")
    until((repo.root / "new.py").exists)


@ONCE
def test_linked_worktrees_do_not_wait_for_each_other(repo: Stand) -> None:
    repo.run("git", "worktree", "add", "-q", str(repo.home / "tree"), "-b", "side")
    agent = repo.agent()
    repo.coord("lock", "a.py", "--agent", "ann")
    tree = repo.home / "tree"
    assert agent.does(f"(cd '{tree}' && git merge -q topic) 2>&1") == 0, agent.said
    assert (tree / "new.py").exists() and not (repo.root / "new.py").exists()


@ONCE
def test_where_nobody_uses_coord_git_is_git(repo: Stand) -> None:
    agent = repo.agent()
    repo.coord("lock", "a.py", "--agent", "ann")
    other = repo.home / "other"
    assert agent.does(f"git clone -q . '{other}' 2>&1 && cd '{other}' && git checkout -q -b x && git merge -q origin/topic 2>&1") == 0, agent.said
    assert (other / "new.py").exists()


@ONCE
def test_an_index_or_a_repository_of_its_own_is_nobodys_business(repo: Stand) -> None:
    """Some agents keep what they may have to put back in a git directory apart, or in an index apart."""
    agent = repo.agent()
    repo.write("a.py", "half of it\n")
    repo.coord("lock", "a.py", "--agent", "ann")
    before = state(repo)
    apart = f"--git-dir='{repo.home}/apart' --work-tree=."
    for command in (f"git {apart} init -q", f"git {apart} add -A", f"git {apart} -c user.name=x -c user.email=x@x commit -qam kept",
                    "export GIT_INDEX_FILE=$HOME/index; git read-tree HEAD && git add -A && git write-tree; unset GIT_INDEX_FILE"):
        assert agent.does(f"{command} 2>&1") == 0, (command, agent.said)
        assert state(repo) == before
    assert agent.does(f"git {apart} checkout -- . 2>&1") != 0, "that is our tree"


@ONCE
def test_what_git_did_in_its_turn_is_held_against_nobody(repo: Stand) -> None:
    """Though others are at work again when the command ends."""
    agent = repo.agent()
    asked(repo, agent, "SessionStart", source="startup")
    repo.coord("lock", "a.py", "--agent", "ann")
    call = {"tool_name": "Bash", "tool_input": {"command": "make -s up"}, "tool_use_id": "t"}
    asked(repo, agent, "PreToolUse", **call)
    repo.coord("unlock", "a.py", "--agent", "ann")
    assert agent.does("make -s up 2>&1") == 0, agent.said
    repo.coord("lock", "a.py", "--agent", "ann")
    assert asked(repo, agent, "PostToolUse", **call, tool_response={"stdout": "", "stderr": ""}) == {}


#: What would end the tree in which another works, or give its branch another name.
OF_TREES = ("git worktree remove --force ../w1", "git worktree remove ../w1 -f", "git worktree move ../w1 ../w9", "git -C . worktree move ../w1 ../w9",
            "cd sub && git worktree remove -f ../../w1", "git branch -m side other", "git branch -M side other", "git branch --move side other")


@ONCE
def test_the_tree_in_which_another_works_is_not_taken_away(repo: Stand) -> None:
    tree = repo.root.parent / "w1"
    repo.run("git", "worktree", "add", "-q", "-b", "side", "../w1")
    repo.write("sub/x", "x\n")
    repo.coord("lock", "a.py", "--agent", "ann", cwd="../w1")
    (tree / "a.py").write_text("hers\n")
    (tree / "untracked").write_text("a program of hers\n")
    before = sorted(path.name for path in tree.iterdir())
    agent = repo.agent()
    for command in OF_TREES:
        assert agent.does(f"({command}) 2>&1") != 0 and "ann" in "\n".join(agent.said), (command, agent.said)
        assert sorted(path.name for path in tree.iterdir()) == before and (tree / "a.py").read_text() == "hers\n", command
        assert str(tree) in repo.run("git", "worktree", "list").stdout and "side" in repo.run("git", "branch").stdout
    # What is nobody's goes, and what only reads is never asked about.
    repo.coord("unlock", "a.py", "--agent", "ann", cwd="../w1")
    for command in ("git worktree list", "git worktree prune", "git worktree add -q ../w2", "git worktree move ../w2 ../w3", "git worktree remove ../w3",
                    "git branch -m side other", "git branch -q loose && git branch -m loose moved && git branch -D moved", "git worktree remove -f ../w1"):
        assert agent.does(f"({command}) 2>&1") == 0, (command, agent.said)
    assert not tree.exists()


@ONCE
def test_a_submodule_in_which_another_works_is_not_emptied(repo: Stand) -> None:
    """What is held elsewhere does not matter to it."""
    repo.run("git", "clone", "-q", ".", "../part")
    for name in ("one", "two"):
        repo.run("git", "-c", "protocol.file.allow=always", "submodule", "add", "-q", "../part", name)
    repo.run("git", "commit", "-qm", "parts")
    repo.coord("lock", "a.py", "--agent", "cyd")
    repo.coord("lock", "one/a.py", "--agent", "ann")
    repo.write("one/a.py", "hers\n")
    agent = repo.agent()
    for command in ("git submodule deinit -f one", "git submodule --quiet deinit --force -- one", "git submodule deinit -f one two", "git submodule deinit -f --all",
                    "git submodule deinit --all --force"):
        assert agent.does(f"({command}) 2>&1") != 0 and "ann" in "\n".join(agent.said), (command, agent.said)
        assert repo.read("one/a.py") == "hers\n" and (repo.root / "two/a.py").exists(), command
    assert agent.does("(git submodule deinit -f two) 2>&1") == 0 and not (repo.root / "two/a.py").exists(), agent.said
    repo.coord("unlock", "one/a.py", "--agent", "ann")
    assert agent.does("(git submodule deinit -f --all) 2>&1") == 0 and not (repo.root / "one/a.py").exists(), agent.said


#: What would take the other's commit out of the branch.
REPLACES = ("git commit -q --amend -m mine", "git commit --amend --no-edit -q", "echo 3 > b.py; git add b.py; git -c user.name=Me commit -q --amend -m mine",
            "git reset -q --soft HEAD~1", "git reset -q --soft HEAD^", "git reset -q HEAD~1", "git reset -q --hard HEAD~2", "git rebase -q HEAD~1 --autosquash",
            "git rebase -q --onto topic HEAD~2")


@ONCE
def test_a_commit_of_another_is_not_replaced(repo: Stand) -> None:
    repo.run("git", "commit", "-q", "--allow-empty", "-m", "two")
    ann, bob = repo.agent(), repo.agent()
    assert ann.does("echo 2 > a.py; git add a.py; git commit -qm hers -- a.py") == 0, ann.said
    before = repo.run("git", "log", "--format=%H").stdout
    for command in REPLACES:
        assert bob.does(f"({command}) 2>&1") != 0 and "would replace a commit of" in "\n".join(bob.said), (command, bob.said)
        assert repo.run("git", "log", "--format=%H").stdout == before, command
        bob.does("git restore --staged b.py; git checkout -q -- b.py")
    # Its own it may say otherwise, also below another's that it does not touch; and a person does what a person does.
    assert ann.does("git commit -q --amend -m better") == 0 and repo.run("git", "log", "--format=%s", "-1").stdout == "better\n", ann.said
    assert bob.does("echo 4 > b.py; git add b.py; git commit -qm his -- b.py && git commit -q --amend -m 'his own' && git reset -q --soft HEAD~1 && git commit -qm again -- b.py") == 0, bob.said
    assert repo.run("git", "log", "--format=%s", "-3").stdout.split("\n")[:2] == ["again", "better"]
    assert repo.run("git", "commit", "-q", "--amend", "-m", "a person").returncode == 0
    # Two that begin at one commit in two working trees have a commit each.
    repo.run("git", "worktree", "add", "-q", "-b", "apart", "../apart", "HEAD~1")
    assert bob.does("(cd ../apart && echo 9 > b.py && git add b.py && git commit -qm apart -- b.py) 2>&1") == 0, bob.said
    repo.run("git", "reset", "-q", "--hard", "HEAD~1")
    assert ann.does("echo 8 > a.py; git add a.py; git commit -qm hers -- a.py") == 0, ann.said
    assert bob.does("(cd ../apart && git commit -q --amend -m 'apart, better') 2>&1") == 0, bob.said
    # The commit of an agent that has left is kept from who was here when it was made, and believes it to be its own.
    assert bob.does("git commit -q --amend -m 'once more'") == 0
    assert ann.ends() == 0
    repo.run("git", "reset", "-q", "--soft", "HEAD~1")
    repo.coord("down")
    repo.coord("up")
    assert bob.does("(git commit -q --amend -m 'taken over') 2>&1") != 0 and "would replace a commit of" in "\n".join(bob.said), bob.said
    carl = repo.agent()
    assert carl.does("(git commit -q --amend -m 'taken over') 2>&1") == 0, carl.said


@ONCE
def test_a_patch_and_a_stash_are_judged_by_their_files(repo: Stand) -> None:
    """One's own just work while another holds a file; a patch of hers is refused before anything is touched."""
    agent = repo.agent()
    repo.write("sub/x", "x\n")
    repo.coord("lock", "a.py", "--agent", "ann")
    agent.does("(git stash drop; git stash pop; git apply sub; git apply nowhere; echo x | git apply) 2>&1")  # there is none
    assert "No stash entries found." in "\n".join(agent.said) and "ann" not in "\n".join(agent.said), agent.said
    repo.coord("unlock", "a.py", "--agent", "ann")
    for command in ("git add sub; git commit -qm x -- sub", "echo 2 >> b.py; git diff -- b.py > .git/mine.diff; git checkout -q -- b.py",
                    "echo 2 >> a.py; git diff -- a.py > .git/hers.diff; cat .git/mine.diff .git/hers.diff > .git/both.diff; git checkout -q -- a.py",
                    "echo 3 > a.py; git stash push -q -- a.py", "git mv b.py moved.py; git diff --cached -M > .git/rename.diff; git mv moved.py b.py"):
        assert agent.does(f"({command}) 2>&1") == 0, (command, agent.said)
    repo.coord("lock", "a.py", "--agent", "ann")
    for command in ("git apply .git/mine.diff && git apply -R .git/mine.diff", "git apply --include=b.py .git/both.diff && git apply -R --exclude=a.py .git/both.diff",
                    "cd sub && git apply --directory=. ../.git/mine.diff; cd ..; git checkout -q -- b.py", "git apply --index .git/mine.diff && git reset -q -- b.py && git checkout -q -- b.py",
                    "git -C . apply -3 .git/mine.diff && git restore -SW b.py", "git apply < .git/mine.diff && cat .git/mine.diff | git apply -R",
                    "echo 2 >> b.py; git diff -- b.py | git apply -R && git diff --quiet -- b.py", "cat .git/both.diff | git -c core.x=1 apply --include=b.py - && git checkout -q -- b.py",
                    "echo s >> b.py; git stash push -q -- b.py && git stash pop -q && git stash push -q -- b.py && git stash apply -q && git stash drop -q && git checkout -q -- b.py",
                    "echo s >> b.py; git add b.py; git stash store -m mine $(git stash create) && git stash apply -q --index stash@{0} && git stash drop -q && git restore -SW b.py",
                    "echo s > own; git stash push -qu -- own && git stash pop -q stash@{0} && rm own"):
        assert agent.does(f"({command}) 2>&1") == 0, (command, agent.said)
    # What a tool has put aside of hers and left in the tree, it drops again; hers of another content stays.
    hers = repo.read("a.py")
    repo.write("a.py", "hers now\n")
    assert agent.does("git stash store -m tool $(git stash create) && git stash drop -q") == 0 and repo.read("a.py") == "hers now\n", agent.said
    repo.write("a.py", hers)
    before = state(repo)
    for command in ("git apply .git/hers.diff", "git apply .git/both.diff", "git apply --index .git/hers.diff", "git apply -R --apply --stat .git/hers.diff", "git stash pop",
                    "git stash apply 0", "git stash drop", "git stash drop stash@{0}", "git stash clear", "git apply < .git/hers.diff", "git apply .git/rename.diff",
                    "cat .git/hers.diff | git apply", "cat .git/both.diff | git apply -", "git apply < /dev/null; git apply .git/hers.diff"):
        assert agent.does(f"({command}) 2>&1") != 0 and "ann" in "\n".join(agent.said), (command, agent.said)
        assert state(repo) == before, command


@ONCE
@pytest.mark.parametrize("overlap", ["tell", "ignore"])
def test_a_commit_and_a_merge_tell_what_another_tree_changes_too(repo: Stand, overlap: str) -> None:
    repo.write("coord.toml", f'[worktrees]\noverlap = "{overlap}"\n')
    repo.write(".gitignore", "w2\nw3\n")
    repo.run("git", "worktree", "add", "-q", "w2", "topic")
    agent = repo.agent()
    assert agent.does("echo mine >b.py; echo free >free.py; git add free.py .gitignore; git commit -qm free -- free.py .gitignore 2>&1") == 0, agent.said
    assert agent.said == [], "nobody changes this"
    said = [] if overlap == "ignore" else ["coord: b.py: in trunk and in topic; conflict: the lines of both"]
    for form in ("git commit -qm mine -- b.py", "git commit -qm again --allow-empty-message --amend --no-verify -- b.py"):
        assert agent.does(f"{form} 2>&1") == 0, agent.said
        assert agent.said == said
        agent.does("echo more >b.py")
    agent.does("git checkout -q -- b.py; git worktree add -q -b third w3 topic~1 && echo third >w3/b.py")
    assert agent.does("git merge topic 2>&1") == 1, agent.said
    assert [line for line in agent.said if line.startswith("coord")] == [line.replace("trunk", "topic").replace(
        "in topic;", "in third;") for line in said], agent.said
    assert any(line.startswith("CONFLICT") for line in agent.said), "git merges all the same"


@ONCE
@pytest.mark.parametrize("name", ["pre-commit", "lint-staged"])
def test_a_hook_manager_that_is_typed_has_the_turn_until_it_ends(repo: Stand, name: str) -> None:
    """What it has put aside comes back at its end, and fits only where nobody has written meanwhile."""
    repo.write(f"bin/{name}", "#!/bin/sh\ngit diff > .git/aside; git checkout -q -- . || exit 3\ntouch aside; while ! test -e go; do sleep 0.02; done\ngit apply .git/aside\n")
    repo.run("chmod", "+x", f"bin/{name}")
    agent = repo.agent()
    repo.write("a.py", "nobody's\n")
    assert agent.does(f"bin/{name} & while ! test -e aside; do sleep 0.02; done") == 0
    assert repo.tries("lock", "b.py", "--agent", "ann").returncode != 0
    repo.write("go", "")
    assert agent.does("wait $!") == 0 and repo.read("a.py") == "nobody's\n", agent.said
    until(lambda: repo.tries("lock", "b.py", "--agent", "ann").returncode == 0)
    repo.run("rm", "aside", "go")
    assert agent.does(f"(bin/{name}) 2>&1") == 3 and repo.read("a.py") == "nobody's\n", "and it begins while nobody else is at work"
