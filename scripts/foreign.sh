#!/usr/bin/env bash
# Run the tests as somebody else might: another home, git set up in another way, SIGINT ignored (as
# under `nohup ... &`), no locale, another seed, and a machine that is busy.
#   scripts/foreign.sh [PYTEST ARGUMENT...]
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-$PWD/.venv/bin/python}
seed=${SEED:-$(date +%s)}
busy=${BUSY:-4}

home=$(mktemp -d "${TMPDIR:-/tmp}/coord-foreign.XXXXXX")
workers=()
end() {
    for pid in ${workers[@]+"${workers[@]}"}; do kill "$pid" 2>/dev/null || true; done
    rm -rf "$home"
}
trap end EXIT

"$python" -P tests/foreign_git.py "$home"
for ((n = 0; n < busy; n++)); do
    "$python" -S -c 'while True: pass' &
    workers+=($!)
done
echo "foreign: HOME=$home, seed $seed, $busy busy processes"
# A subshell ignores SIGINT from here on, and so does all that it starts.
(
    trap '' INT
    unset LC_ALL LANGUAGE GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM XDG_CONFIG_HOME
    HOME=$home LANG=C LC_CTYPE=POSIX "$python" -m pytest -n 4 --dist worksteal \
        --hypothesis-seed="$seed" "$@"
)
