#!/bin/sh
# coord's guard, as pre-commit runs it: the same question as git's own hook asks (`coord guard
# install`). A machine without coord has no coordinator of which anybody could hold a file.
PATH=$PATH:${HOME:-/}/.local/bin # where pipx and uv put commands
command -v coord-plugin >/dev/null 2>&1 || exit 0
exec coord-plugin git pre-commit
