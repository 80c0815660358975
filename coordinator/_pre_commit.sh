#!/bin/sh
# Is nothing of what this commit has held by anybody else? Exit code 0 if so; any other: the whole
# check has to tell. Run by git's pre-commit hook, with the Python to be used and the hook's file.
# What it asks is answered in coordinator/daemon/git_questions.py.
[ -z "${COORD_GUARD-}" ] || exit 1
# May this hook, $2, put unstaged work aside? The whole check looks whose that is.
aside='pre[-_]commit|prek|lint-staged|lefthook|overcommit|git (stash|checkout|restore|reset)'
if [ -z "${COORD_COMMIT_VIEW-}" ]; then
    for hook in "$2" "${2%/*}/coord-kept/pre-commit" "${2%/*}/../pre-commit"; do
        sed '/^# >>> coord guard/,/^# <<< coord guard/d' "$hook" 2>/dev/null
    done | grep -Eq "$aside" && exit 1
fi
place=$(git rev-parse --show-toplevel --git-path MERGE_HEAD 2>/dev/null) || exit 1
top=${COORD_COMMIT_VIEW:-${place%
*}}
[ ! -e "${place##*
}" ] || exit 1
{
    printf '%s\0' "$top" pre-commit
    git diff --cached --raw -z --no-renames --no-relative --no-color --no-ext-diff \
        --ignore-submodules=none
    printf '\0%s' "$?"
} 2>/dev/null | "$1" -I -S -E "${0%/*}/_hook.py" - =git closed 5 >/dev/null 2>&1
