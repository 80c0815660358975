#!/usr/bin/env bash
# Install the coding agents that tests/agents runs, at the versions it was written for, each into a
# prefix of its own below a cache folder. What is there already is left alone; two runs at once wait
# for each other, one by one. The conformance suite of MCP's own project comes with them.
#   scripts/agents.sh [NAME...]      scripts/agents.sh --list
set -euo pipefail

root=${COORD_AGENTS_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/coord/agents}
python=${PYTHON:-python3}
usual="claude codex gemini opencode copilot aider mini conformance"

# name -> registry and what to ask it for; the first package carries the version.
pins() {
    case $1 in
        claude)   echo "npm @anthropic-ai/claude-code@2.1.332" ;;
        codex)    echo "npm @openai/codex@0.171.0" ;;
        gemini)   echo "npm @google/gemini-cli@0.61.0" ;;
        opencode) echo "npm opencode-ai@1.18.33" ;;
        copilot)  echo "npm @github/copilot@1.0.102" ;;
        qwen)     echo "npm @qwen-code/qwen-code@0.24.4" ;;
        pi)       echo "npm @mariozechner/pi-coding-agent@0.73.1" ;;
        aider)    echo "pip aider-chat==0.86.2" ;;
        mini)     echo "pip mini-swe-agent==2.4.6 mcp" ;; # litellm imports mcp and does not say so
        conformance) echo "npm @modelcontextprotocol/conformance@0.1.13" ;; # later ones need Node 22
        *) return 1 ;;
    esac
}

say() { echo "agents: $*"; }

# Node brings certificates of its own; those that the machine trusts besides are its owner's choice.
system_certificates=/etc/ssl/certs/ca-certificates.crt
if [ -z "${NODE_EXTRA_CA_CERTS:-}" ] && [ -r "$system_certificates" ]; then
    export NODE_EXTRA_CA_CERTS=$system_certificates
fi

from_npm() { # prefix package
    if ! command -v npm >/dev/null 2>&1; then
        say "npm is missing; install it: apt-get install npm (Debian, Ubuntu), brew install node (macOS)" >&2
        return 1
    fi
    # The pin decides, not what the package says of Node: Claude Code's binary runs without it.
    # OpenCode starts itself after it is installed: its settings are no concern of this person's.
    XDG_CONFIG_HOME=$1/.first XDG_DATA_HOME=$1/.first XDG_STATE_HOME=$1/.first XDG_CACHE_HOME=$1/.first \
        npm install --prefix "$1" --no-audit --no-fund --engine-strict=false --loglevel=error "$2"
}

from_pip() { # prefix package...
    local prefix=$1; shift
    "$python" -m venv "$prefix" 2>/dev/null || sh "$(dirname "$0")/venv.sh" "$python" "$prefix"
    "$prefix/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
}

install() { # name
    local name=$1 registry wanted prefix began
    read -r registry wanted <<<"$(pins "$name")"
    prefix=$root/$name
    # The lock stays with the descriptor when Python ends, and goes when this subshell does.
    exec 9>"$root/.$name.lock"
    "$python" -c 'import fcntl; fcntl.flock(9, fcntl.LOCK_EX)'
    if [ "$(cat "$prefix/.pinned" 2>/dev/null || true)" = "$wanted" ]; then
        say "$name: has $wanted"
        return 0
    fi
    began=$SECONDS
    rm -rf "$prefix"
    mkdir -p "$prefix"
    # shellcheck disable=SC2086  # a pin may name more than one package
    if "from_$registry" "$prefix" $wanted >"$root/$name.log" 2>&1 9>&-; then
        echo "$wanted" >"$prefix/.pinned"
        say "$name: installed $wanted in $((SECONDS - began)) s"
    else
        tail -n 15 "$root/$name.log" >&2
        say "$name: could not install $wanted (whole log: $root/$name.log)" >&2
        return 1
    fi
}

if [ "${1:-}" = --list ]; then
    for name in $usual qwen pi; do echo "$name $(pins "$name")"; done
    exit 0
fi
# shellcheck disable=SC2086
[ $# -gt 0 ] || set -- $usual
for name in "$@"; do
    pins "$name" >/dev/null || { say "no agent is called $name; known: $usual qwen pi" >&2; exit 2; }
done
mkdir -p "$root"
failed=0
running=()
for name in "$@"; do # two at a time: each is mostly waiting for its registry
    (install "$name") &
    running+=($!)
    if [ ${#running[@]} -ge 2 ]; then
        wait "${running[0]}" || failed=1
        running=("${running[@]:1}")
    fi
done
for one in "${running[@]}"; do wait "$one" || failed=1; done
say "in $root"
exit $failed
