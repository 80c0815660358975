#!/bin/sh
# What coord's {plugin} runs: `coord-plugin`, a command that comes with coord. On a machine
# without it nothing is asked and nothing is felt; where the repository uses coord all the same, a
# session that begins says so, once.
PATH=$PATH:${HOME:-/}/.local/bin # where pipx and uv put commands, which a desktop's PATH may not have
if command -v coord-plugin >/dev/null 2>&1; then
    case $1 in
    mcp) exec coord-plugin "$@" ;;
    *) exec coord-plugin "$@" "${{project}:-}" ;;
    esac
fi

uses_coord() {
    at=${{project}:-$PWD}
    while [ -n "$at" ]; do
        [ -d "$at/.coord" ] && return 0
        at=${at%/*}
    done
    return 1
}

case $1 in
begin)
    case $(cat) in
    *'"source":"compact"'* | *'"source":"clear"'*) exit 0 ;; # the same session goes on
    esac
    uses_coord && printf '%s\n' '{"systemMessage": "coord: this repository uses coord, but the command coord-plugin is not installed here, so nothing is asked before a write. Install coord (docs/install.md), or remove this plugin."}'
    exit 0
    ;;
mcp) # a server without tools: one that fails is shown to a person who did nothing wrong
    while read -r line; do
        id=$(printf '%s' "$line" | sed -n 's/.*"id" *: *\("[^"]*"\|[0-9][0-9]*\).*/\1/p')
        [ -n "$id" ] || continue
        case $line in
        *'"method":"initialize"'*)
            version=$(printf '%s' "$line" | sed -n 's/.*"protocolVersion" *: *"\([^"]*\)".*/\1/p')
            printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"%s","capabilities":{},"serverInfo":{"name":"coord","version":"0"}}}\n' "$id" "$version"
            ;;
        *'"method":"ping"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{}}\n' "$id" ;;
        *) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"coord is not installed here"}}\n' "$id" ;;
        esac
    done
    ;;
*) cat >/dev/null ;;
esac
exit 0
