#!/bin/sh
# Stands in for git in an agent's session: asks before what changes more than the files it names,
# then becomes the real git. What only reads, or names its files, gets out of the way at once.
# @REAL@ is the real git, @PYTHON@ asks (coordinator/git_guard/turn.py).
real=@REAL@
name=${0##*/}

ask() {
    # A git that is called by one which was let through, is part of that.
    if [ -n "${COORD_GIT_TURN-}" ] && [ -d "/proc/$COORD_GIT_TURN" ]; then return; fi
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
sub= value=
for word do
    if [ -n "$value" ]; then value=; continue; fi
    case $word in
        -C|-c|--git-dir|--work-tree|--namespace|--config-env|--super-prefix|--attr-source) value=1 ;;
        -*) ;;
        *) sub=$word; break ;;
    esac
done
tried=0
while :; do
    case $sub in
        @ASKS@) ask "$@"; break ;;
        branch) case " $* " in *" -m"*|*" -M"*|*" -f"[mM]*|*" --mov"*) ask "$@" ;; esac; break ;;
        fetch) case " $* " in *" -u"*|*" --update-h"*) ask "$@" ;; esac; break ;;
        symbolic-ref)  # with one name it reads, and prompts of shells do that all the time
            names=0
            for word do case $word in -d|--delete) names=9 ;; -*) ;; *) names=$((names + 1)) ;; esac; done
            [ "$names" -le 2 ] || ask "$@"
            break ;;
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
exec "$real" "$@"
