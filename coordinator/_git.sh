#!/bin/sh
# Stands in for git in an agent's session: asks before what changes more than the files it names,
# then becomes the real git. What only reads, or names its files, gets out of the way at once.
# @REAL@ is the real git, @PYTHON@ asks (coordinator/git_guard/turn.py).
real=@REAL@
name=${0##*/}

# Is what this takes into the index, or the commit, held by nobody else? Then all is said. Whatever
# is not plain is left to the whole check, which takes ten times as long to start.
nobodys() {
    [ "$1" = "$sub" ] || return 1
    [ -z "${COORD_GUARD-}${GIT_DIR-}${GIT_WORK_TREE-}${GIT_INDEX_FILE-}${GIT_COMMON_DIR-}" ] || return 1
    [ -z "${GIT_OBJECT_DIRECTORY-}${GIT_NAMESPACE-}" ] || return 1
    shift
    last= amends=
    for word do
        case $word in
            --) case $last in --*=*) ;; --*|-*[mFCct]) return 1 ;; esac  # is it a message?
                break ;;
            --p*|--i*|--e*) return 1 ;;  # these ask the user, or read more names
            --am*) amends=1 ;;
            --*) case $sub$word in rm--q*) return 1 ;; esac ;;
            -*[pi]*) return 1 ;;
            -*q*) [ "$sub" != rm ] || return 1 ;;
            -*e*) [ "$sub" = commit ] || return 1 ;;
        esac
        last=$word
    done
    head=
    [ "$sub" != commit ] || head=$("$real" rev-parse --verify "HEAD${amends:+^}" 2>/dev/null) || return 1
    place=$("$real" rev-parse --show-toplevel --git-path MERGE_HEAD 2>/dev/null) || return 1
    top=${place%
*}
    [ ! -e "${place##*
}" ] || return 1
    case $sub in
        add|stage) asked=add ours=--dry-run ;;
        rm) asked=rm ours=--dry-run ;;
        commit) asked=commit ours='--dry-run --porcelain -z' ;;
        *) return 1 ;;
    esac
    # Of two options that say the opposite the last is meant: ours come after all others.
    set -- "$asked" "$@"
    count=$# placed=
    while [ "$count" -gt 0 ]; do
        if [ "$1" = -- ] && [ -z "$placed" ]; then placed=1; set -- "$@" $ours; fi
        set -- "$@" "$1"
        shift
        count=$((count - 1))
    done
    [ -n "$placed" ] || set -- "$@" $ours
    {
        printf '%s\0' "$top" "$asked${head:+ $head}${amends:+ amends}"
        "$real" -c core.quotePath=false -c core.fsmonitor=false -c submodule.recurse=false "$@" </dev/null
        printf '\0%s' "$?"
    } 2>/dev/null | @PYTHON@ -I -S -E @HOOK@ - =git closed 5 >/dev/null 2>&1
}

# Has this repository a hook of its own that git runs for a commit?
hooked() {
    hooks=$("$real" rev-parse --git-path hooks 2>/dev/null) || return 1
    for hook in pre-commit prepare-commit-msg commit-msg post-commit; do
        [ -x "$hooks/$hook" ] || continue
        [ ! -e "$hooks/coord-kept/$hook" ] && grep -q 'the whole file is its' "$hooks/$hook" || return 0
    done
    return 1
}

# The git directory of the call, whose first N words are options of git.
own_dir() {
    options=$1; shift
    others=$(($# - options))
    while [ "$options" -gt 0 ]; do set -- "$@" "$1"; shift; options=$((options - 1)); done
    shift "$others"
    "$real" "$@" rev-parse --absolute-git-dir 2>/dev/null
}

# Become PROGRAM once no other git of a session uses this index (coordinator/_git_queue.py).
queue() {
    program=$1; shift
    [ -z "${GIT_INDEX_FILE-}" ] && [ -x @PYTHON@ ] && place=$(own_dir "$before" "$@") || return 0
    exec @PYTHON@ -I -S -E @QUEUE@ "$place" "$sub" "$program" "$@"
}

# A hook in a view adds what it has changed: from now on the index tells of every file
# (coordinator/git_guard/commit_view.py).
# A manager that puts all aside takes what git tells of, and not what another has begun meanwhile.
see_all() {
    [ -n "${COORD_COMMIT_VIEW-}" ] || return 0
    case $sub in
        add|stage|update-index|commit)
            "$real" ls-files -z ":/" | "$real" update-index --no-assume-unchanged -z --stdin 2>/dev/null ;;
        checkout)
            case $* in *"checkout -- .")
                "$real" diff --quiet --relative && exit 0
                "$real" diff --name-only --relative -z |
                    "$real" checkout -q --pathspec-from-file=- --pathspec-file-nul
                exit ;;
            esac ;;
    esac
}

ask() {
    # A git that is called by one which was let through, is part of that.
    if [ -n "${COORD_GIT_TURN-}" ] && [ -d "/proc/$COORD_GIT_TURN" ]; then see_all "$@"; return; fi
    queued=1
    # What these ask git beforehand locks the index, too, so they queue first, and come back here.
    case $sub in add|stage|rm|mv|update-index|commit)
        [ "${COORD_GIT_INDEX-}" = "$$" ] || [ "$name" != git ] || queue "$0" "$@"
        queued= ;;
    esac
    if [ "$sub" = commit ]; then
        if ! hooked && nobodys "$@"; then return; fi
        if [ -x @PYTHON@ ]; then exec @PYTHON@ -P -m coordinator.git_guard commit "$real" "$@"; fi
    elif [ -x @PYTHON@ ] && { [ "$sub" = apply ] || [ "$sub" = stash ]; }; then
        # The patch may be read only once; the stash may need an index of its own.
        exec @PYTHON@ -P -m coordinator.git_guard "$sub" "$real" "$@"
    elif nobodys "$@"; then return; fi
    @PYTHON@ -P -m coordinator.git_guard turn "$real" "$$" "$@"
    case $? in
        0) ;;
        10) COORD_GIT_TURN=$$; export COORD_GIT_TURN ;;
        126|127) echo "coord: its Python is gone, so it cannot be asked; git was not run." >&2
                 exit 1 ;;
        *) exit 1 ;;
    esac
}

case $name in git-*) set -- "${name#git-}" "$@" ;; esac
sub= value= before=0 queued=
for word do
    if [ -n "$value" ]; then value=; before=$((before + 1)); continue; fi
    case $word in
        -C|-c|--git-dir|--work-tree|--namespace|--config-env|--super-prefix|--attr-source) value=1; before=$((before + 1)) ;;
        -*) before=$((before + 1)) ;;
        *) sub=$word; break ;;
    esac
done
tried=0
while :; do
    case $sub in
        @ASKS@) ask "$@"; break ;;
        branch) case " $* " in *" -m"*|*" -M"*|*" -f"[mM]*|*" --mov"*) ask "$@" ;; esac; break ;;
        fetch) case " $* " in *" -u"*|*" --update-h"*) ask "$@" ;; esac; break ;;
        worktree) case " $* " in *" remove "*|*" move "*) ask "$@"; queued= ;; esac; break ;;
        symbolic-ref)  # with one name it reads, and prompts of shells do that all the time
            names=0
            for word do case $word in -d|--delete) names=9 ;; -*) ;; *) names=$((names + 1)) ;; esac; done
            [ "$names" -le 2 ] || ask "$@"
            break ;;
        # These lock the index only to note what they have read, and others' gits would fail.
        status|diff|describe)
            : "${GIT_OPTIONAL_LOCKS=0}"; export GIT_OPTIONAL_LOCKS; break ;;
        ''|@PASSES@) break ;;
    esac
    # Its own name for a command? What a shell does for it comes back here by itself.
    tried=$((tried + 1))
    [ "$tried" -le 10 ] || break
    meant=$("$real" config --get "alias.$sub" 2>/dev/null) || break
    case $meant in
        '!'*) break ;;
        -*) ask "$@"; break ;;
    esac
    sub=${meant%%[!A-Za-z0-9-]*}
done
[ -z "$queued" ] || queue "$real" "$@"
exec "$real" "$@"
