#!/bin/sh
# Is nothing of what this commit has held by anybody else? Exit code 0 if so; any other: the whole
# check has to tell. Run by git's pre-commit hook, with the Python to be used. What it asks is
# answered in coordinator/daemon/git_questions.py.
[ -z "${COORD_GUARD-}" ] || exit 1
place=$(git rev-parse --show-toplevel --git-path MERGE_HEAD 2>/dev/null) || exit 1
top=${place%
*}
[ ! -e "${place##*
}" ] || exit 1
{
    printf '%s\0' "$top" pre-commit
    git diff --cached --raw -z --no-renames --no-relative --no-color --no-ext-diff \
        --ignore-submodules=none
    printf '\0%s' "$?"
} 2>/dev/null | "$1" -I -S -E "${0%/*}/_hook.py" - =git closed 5 >/dev/null 2>&1
