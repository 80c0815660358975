#!/bin/sh
# What coord's {plugin} runs: `coord-plugin`, a command that comes with coord. On a machine
# without it nothing is asked and nothing is felt; where the repository uses coord all the same, a
# session that begins says so, once.
PATH=$PATH:${HOME:-/}/.local/bin # where pipx and uv put commands; not all programs have it on PATH
project=${{project}:-}
if command -v coord-plugin >/dev/null 2>&1; then
    case $1 in
    mcp) [ -z "$(coord-plugin socket "$project")" ] || exec coord-plugin "$@" ;;
    guard) # one whose Python is gone stops the write, too: 126 and 127 would let it pass
        coord-plugin "$@" "$project" && exit 0
        exit 2 ;;
    *) exec coord-plugin "$@" "$project" ;;
    esac
fi

uses_coord() {
    at=${project:-$PWD}
    while [ -n "$at" ]; do
        [ -d "$at/.coord" ] && return 0
        at=${at%/*}
    done
    return 1
}

# An MCP server that offers nothing of use: one that fails is shown to a person who did nothing wrong.
answer() {
    printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"
}
serve_nothing() {
    while read -r line; do
        id=$(printf '%s' "$line" | sed -nE 's/.*"id" *: *("[^"]*"|[0-9]+).*/\1/p')
        [ -n "$id" ] || continue
        case $line in
        *'"method":"initialize"'*)
            version=$(printf '%s' "$line" | sed -nE 's/.*"protocolVersion" *: *"([^"]*)".*/\1/p')
            answer '"result":{"protocolVersion":"'"$version"'","capabilities":{offers},"serverInfo":{"name":"coord","version":"0"}}'
            ;;
        *'"method":"ping"'*) answer '"result":{}' ;;
        *'"method":"tools/list"'*) answer '"result":{"tools":[]}' ;;
        *'"method":"prompts/list"'*)
            answer '"result":{"prompts":[{"name":"coord-is-not-used","description":"This repository does not use coord (coord init), or coord is not installed"}]}'
            ;;
        *) answer '"error":{"code":-32601,"message":"coord is not used in this repository, or not installed"}' ;;
        esac
    done
}

case $1 in
mcp) serve_nothing ;;
begin)
    case $(cat) in
    *'"source":"compact"'* | *'"source":"clear"'*) ;; # the same session goes on
    *)
        uses_coord && printf '%s\n' '{"systemMessage": "coord: this repository uses coord, but its command coord-plugin is not on this machine, so nothing is asked before a write. Install coord, or take its plugin out."}'
        ;;
    esac
    ;;
*) cat >/dev/null ;;
esac
exit 0
