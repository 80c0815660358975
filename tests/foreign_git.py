"""A home whose git is set up in every way that differs from the usual: `python foreign_git.py HOME`.

Each of these is in somebody's `~/.gitconfig`. What would make git itself useless (a `safe.directory`
that excludes all) is not among them.
"""

from __future__ import annotations

import sys
from pathlib import Path

SETTINGS = """\
[init]
    defaultBranch = foreign
    templateDir = {home}/template
[user]
    useConfigOnly = true
[core]
    hooksPath = {home}/hooks
    autocrlf = true
    safecrlf = false
    fsmonitor = {home}/fsmonitor
    untrackedCache = true
    quotePath = true
    splitIndex = true
    preloadIndex = true
    excludesFile = {home}/ignore
    attributesFile = {home}/attributes
    pager = false
    editor = false
    askPass = false
    commentChar = "!"
    abbrev = 40
    logAllRefUpdates = always
    whitespace = cr-at-eol
[commit]
    gpgSign = true
    verbose = true
    status = false
[tag]
    gpgSign = true
[gpg]
    program = {home}/hooks/pre-commit
[diff]
    noprefix = true
    mnemonicPrefix = true
    external = false
    renames = copies
    relative = true
    ignoreSubmodules = all
    submodule = log
    colorMoved = zebra
    orderFile = {home}/order
    algorithm = patience
    wordRegex = .
[status]
    showUntrackedFiles = no
    short = true
    branch = true
    relativePaths = false
    submoduleSummary = true
[color]
    ui = always
    diff = always
    status = always
[column]
    ui = always
[log]
    showSignature = true
    follow = true
    date = relative
    decorate = full
    showRoot = false
[format]
    pretty = oneline
[merge]
    conflictStyle = diff3
    ff = false
    renames = false
    default = union
[pull]
    rebase = true
[push]
    default = nothing
[rebase]
    autoStash = true
[submodule]
    recurse = true
[index]
    version = 4
    threads = true
[grep]
    lineNumber = true
[blame]
    date = relative
[fetch]
    prune = true
[gc]
    auto = 1
[transfer]
    fsckObjects = true
[worktree]
    guessRemote = true
[checkout]
    defaultRemote = nowhere
[advice]
    detachedHead = true
[alias]
    log = status
"""


def lay_out(home: Path) -> Path:
    """Make the home; its `.gitconfig`."""
    for name in ("hooks", "template"):
        (home / name).mkdir(parents=True, exist_ok=True)
    for name in ("pre-commit", "post-checkout", "post-index-change", "post-commit"):
        # they say that they ran, and refuse
        (home / "hooks" / name).write_text(f"#!/bin/sh\necho {name} >> '{home}/ran'\nexit 1\n")
        (home / "hooks" / name).chmod(0o755)
    # as a monitor that is not there any more: git then looks at every file itself
    (home / "fsmonitor").write_text("#!/bin/sh\nexit 1\n")
    (home / "fsmonitor").chmod(0o755)
    (home / "template" / "description").write_text("from a template\n")
    (home / "ignore").write_text("*.bak\n.idea/\n.DS_Store\n")
    (home / "attributes").write_text("*.txt text\n")
    (home / "order").write_text("*.z\n*.a\n")
    config = home / ".gitconfig"
    config.write_text(SETTINGS.format(home=home))
    return config


if __name__ == "__main__":
    lay_out(Path(sys.argv[1]))
