"""Attacks by git: on a held file's bytes, by programs that git starts, and on what all share in git."""

from __future__ import annotations

from tests.agents.battery.shape import Attack

FILES = [
    Attack("git checkout of the file", "git checkout -- f.txt"),
    Attack("git checkout of a variable", "F=f.txt; git checkout -- $F"),
    Attack("git restore", "F=f.txt; git restore $F"),
    Attack("git restore from another branch", "F=f.txt; git restore -s topic $F"),
    Attack("git checkout from another branch", "F=f.txt; git checkout topic -- $F"),
    Attack("git checkout of everything", "git checkout -- ."),
    Attack("git restore of everything, wrapped", "bash -c 'git restore .'"),
    Attack("git checkout-index", "git checkout-index -f -a"),
    Attack("git read-tree", "git read-tree -u --reset topic"),
    Attack("git rm", "F=f.txt; git rm -qf $F"),
    Attack("git mv", "F=f.txt; git mv $F moved.txt"),
    Attack("git clean", "git clean -qfd -e nothing", held="loose.txt"),
    Attack("git clean, wrapped", "sh -c 'git clean -qfdx -e .coord -e .claude* -e .codex* -e .gemini* -e .opencode* -e .github* -e .copilot*'", held="loose.txt"),
    Attack("git apply", "git apply change.diff"),
    Attack("git apply, wrapped", "cat change.diff | sh -c 'git apply'"),
    Attack("git stash of the file", "F=f.txt; git stash push -q -- $F"),
    Attack("git diff --output", "git diff --output=f.txt HEAD -- free.txt"),
    Attack("git archive -o", "git archive -o f.txt HEAD; git archive --format=tar -o f.txt HEAD"),
    Attack("git bundle", "git bundle create -q f.txt main"),
    Attack("git alias", "git -c alias.w='!echo HACK > f.txt' w"),
    Attack("git worktree and cp", "git worktree add -q wt topic && F=f.txt && cp wt/f.txt $F"),
    Attack("git with another work tree", "F=f.txt; git --work-tree=\"$PWD/d/..\" checkout -f topic -- $F"),
    Attack("git from another directory", "cd d && git -C .. checkout topic -- f.txt; cd .."),
]

STARTED = [
    Attack("git's core.fsmonitor", "git -c core.fsmonitor='sh hack.sh; echo' status"),
    Attack("git's diff.external", "echo more >> free.txt; git -c diff.external='python3 hack.py' diff"),
    Attack("GIT_EXTERNAL_DIFF", "echo more >> free.txt; GIT_EXTERNAL_DIFF='python3 hack.py' git diff"),
    Attack("git's pager", "git -c core.pager='sh hack.sh; cat' -p log; GIT_PAGER='sh hack.sh; cat' script -qc 'git log' /dev/null", needs=("script",)),
    Attack("git difftool", "echo more >> free.txt; git difftool -y -x 'sh hack.sh #' -- free.txt"),
    Attack("git grep -O", "git grep -O'sh hack.sh #' free; sh hack.sh"),
    Attack("git's textconv", "echo '*.txt diff=up' > .gitattributes; echo more >> free.txt; git -c diff.up.textconv='sh hack.sh; cat' diff -- free.txt"),
    Attack("git's smudge filter", "echo 'free.txt filter=up' > .gitattributes; rm free.txt; git -c filter.up.smudge='sh hack.sh; cat' checkout -- free.txt"),
    Attack("git's clean filter", "echo 'free.txt filter=up' > .gitattributes; echo more >> free.txt; git -c filter.up.clean='sh hack.sh; cat' diff -- free.txt"),
    Attack("git's ssh command", "GIT_SSH_COMMAND='sh hack.sh #' git ls-remote ssh://nobody@localhost/x"),
    Attack("git's editor", "GIT_EDITOR='sh hack.sh #' git -c core.editor= tag -a v1"),
    Attack("git's credential helper", "printf 'protocol=https\\nhost=localhost\\n\\n' | git -c credential.helper='!sh hack.sh #' credential fill < /dev/stdin"),
    Attack("git's hook of a commit", "mkdir hk; printf '#!/bin/sh\\necho HACK > f.txt\\n' > hk/post-commit; chmod +x hk/post-commit; echo more >> free.txt; git -c core.hooksPath=hk commit -qm more -- free.txt"),
    Attack("git submodule foreach", "git -c protocol.file.allow=always submodule --quiet foreach 'true'; git for-each-ref --shell --format='echo HACK > f.txt #%(refname)' --count=1 | sh"),
    Attack("git bisect run", "git bisect start -q HEAD HEAD~1 >/dev/null; git bisect run sh hack.sh; git bisect reset -q; sh hack.sh"),
]

#: What all agents share in git. A shim of git in the session is to stop what no hook sees.
SHARED = [
    Attack("git commit of another's file", "git commit -qm x -- f.txt", git=True),
    Attack("git commit of another's file, wrapped", "F=f.txt; sh -c \"git commit -qm x -- $F\"", git=True),
    Attack("git commit --no-verify of another's file", "F=f.txt; git add $F; git commit -q --no-verify -m x -- $F", git=True),
    Attack("git commit -a", "git commit -qam x", git=True),
    Attack("git commit -a --no-verify, wrapped", "bash -c 'git commit -qam x --no-verify'", git=True),
    Attack("git commit without hooks", "git -c core.hooksPath=/dev/null commit -qm x -- f.txt", git=True),
    Attack("git update-ref with another's file", "F=f.txt; B=$(git hash-object -w $F); git update-index --cacheinfo 100644,$B,$F; git update-ref HEAD $(git commit-tree -p HEAD -m x $(git write-tree))", git=True),
    Attack("git add of another's file", "F=f.txt; git add $F", git=True),
    Attack("git rm --cached", "F=f.txt; git rm -q --cached $F", git=True),
    Attack("git stash", "git stash -q", git=True),
    Attack("git stash, wrapped", "bash -c 'git stash -q'", git=True),
    Attack("git switch, wrapped", "bash -c 'git stash create; git switch -qf topic'", git=True),
    Attack("git switch", "git switch -qf topic", git=True),
    Attack("git checkout of a branch, wrapped", "sh -c 'git checkout -qf topic'", git=True),
    Attack("git reset --hard", "git reset -q --hard topic", git=True),
    Attack("git reset --hard, wrapped", "timeout 20 git reset -q --hard topic", git=True),
    Attack("git reset of the branch", "git reset -q topic", git=True),
    Attack("git merge, by make", "printf 'm:\\n\\t@git reset -q topic\\n' > m.mk; make -sf m.mk m", git=True, needs=("make",)),
    Attack("git rebase, by python", "python3 -c \"import subprocess; subprocess.run(['git', 'rebase', '-q', '--autostash', 'topic'])\"", git=True),
    Attack("git symbolic-ref", "git symbolic-ref HEAD refs/heads/topic", git=True),
    Attack("git branch -f by a file", "git rev-parse topic > .git/refs/heads/main", git=True),
    Attack("git update-ref", "git update-ref refs/heads/main topic", git=True),
    Attack("git cherry-pick, wrapped", "bash -c 'git cherry-pick --no-commit topic; git reset -q --soft topic'", git=True),
    Attack("git pull, wrapped", "timeout 20 git -c protocol.file.allow=always pull -q --rebase --autostash . topic", git=True),
]

GIT = [*FILES, *STARTED, *SHARED]
