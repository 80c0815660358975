"""What a profile wants written into its agent's settings: data, with places to fill in.

    [[wire]]
    file = ".claude/settings.local.json"     # below the repository; `~/…` below the user's home
    user_file = "~/.claude/settings.json"    # instead, with --user
    [[wire.add]]                             # a further item of a list
    at = ["hooks", "PreToolUse"]
    value = '{"matcher": "Edit", "hooks": [{"type": "command", "command": "{guard}"}]}'
    [[wire.set]]                             # a key of its own
    at = ["mcpServers", "coord"]
    value = '{"command": "{python}", "args": ["-P", "-m", "coordinator.cli.main", "mcp"]}'

    [[wire]]
    file = ".opencode/plugins/coord.js"
    copy = "opencode.js"                     # a whole file of coord's own (coordinator/plugins/)

Files are JSON with comments; one whose name ends in `.toml` is TOML (and has no lists to add to).

Places: `{guard}` the hook that stops a call without an answer, `{notice}` the one that does not,
`{begin}` the slower one that starts the coordinator; each with `:EVENT` where the payload does not
name it. `{python}`, `{root}`, `{socket}`, `{profile}`, `{plugins}`; `{prefix}`: the program that a
command is run by in its agent's session (wiring/command_prefix.py).

With `yields_to` a value stays out where a person has one of their own: in the file itself, in one
of those that are named, or in the environment under the last name of `at`.
"""

from __future__ import annotations

import msgspec


class Piece(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """One value and its place. `value` is JSON, with placeholders in its strings."""

    at: tuple[str, ...]
    value: str
    yields_to: tuple[str, ...] = ()

    @property
    def is_mcp(self) -> bool:
        """Whether it names coord's MCP server."""
        return '"coordinator.cli.main", "mcp"' in self.value


class Entry(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """One file that is wired."""

    file: str
    user_file: str = ""
    add: tuple[Piece, ...] = ()
    set: tuple[Piece, ...] = ()
    copy: str = ""


class Switch(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The setting that switches all hooks of an agent off: a value (JSON) in one of its settings
    files. The first of these files that has a value there is in force."""

    files: tuple[str, ...]
    at: tuple[str, ...]
    value: str = "true"
