"""What a profile wants written into its agent's settings, what its sessions bring along, and how it
tells whether its agent trusts coord's hooks: data, with places to fill in.

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

from typing import Literal

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


class Trust(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """The `[trust]` section of a profile.

    Attributes:
        kind: `folders`: the JSON file `file` maps folders to one of `trusted`, or names them in one
            of its `lists`; `app-server`: the program `command` speaks JSON-RPC and lists hooks with
            their trust; `plugin`: `command` loads the agent's plugins, ours among them, and ends.
    """

    kind: Literal["folders", "app-server", "plugin"]
    file: str = ""
    trusted: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()
    command: tuple[str, ...] = ()


class SessionFile(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """One file: the given `text`, or what is wired into the file `like`."""

    file: str
    like: str = ""
    text: str = ""
    on_top_of: tuple[str, ...] = ()


class Session(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """What a session brings along where its agent would not read the repository's settings.

        [session]                                # for an agent that reads them only where it starts
        arguments = ["--plugin-dir", "{folder}"] # before all others
        elsewhere = ["-C"]                       # options with which it works somewhere else
        only_roots = true                        # it takes no file that others than root can write
        [session.env]
        SYSTEM_DEFAULTS = "{folder}/settings.json"
        [[session.files]]
        file = "settings.json"                   # in `{folder}`, which is coord's own
        like = ".gemini/settings.json"           # all that `wire` puts into this file
        on_top_of = ["$SYSTEM_DEFAULTS", "/etc/agent/defaults.json"]

    `on_top_of` is what the file replaces: the first of these whose variables are set. A person's
    content there stays in force, and coord's is added to it.
    """

    arguments: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    only_roots: bool = False
    env: dict[str, str] = {}
    files: tuple[SessionFile, ...] = ()
