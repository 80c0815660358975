#!/bin/sh
{mark} for {program}. `coord shims remove` takes it away.
real= IFS=:
set -f
for folder in $PATH; do
    [ "${{folder:-.}}" -ef {folder} ] && continue
    if [ -f "${{folder:-.}}/{program}" ] && [ -x "${{folder:-.}}/{program}" ]; then
        real=${{folder:-.}}/{program}
        break
    fi
done
unset IFS
set +f
if [ -z "$real" ]; then
    echo 'coord: {program} is not installed; only its shim is on PATH.' >&2
    exit 127
fi
case ${{1-}} in --version | --help | -v | -V | -h) exec "$real" "$@" ;; esac
if [ -z "${{COORD_AGENT_TOKEN-}}" ] && [ -x {python} ]; then
    at=$PWD
    while [ -n "$at" ]; do
        main=$at
        if [ -f "$at/.git" ]; then # of a worktree, or of a submodule
            read -r main < "$at/.git"
            main=${{main#gitdir: }}
            case $main in /*) ;; *) main=$at/$main ;; esac
            main=${{main%/.git/*}}
        fi
        if [ -d "$at/.coord" ] || [ -d "$main/.coord" ]; then
            exec {python} -P -m coordinator.cli.main run --where-possible \
                --program {program} {profile} -- "$@"
        fi
        at=${{at%/*}}
    done
fi
exec "$real" "$@"
