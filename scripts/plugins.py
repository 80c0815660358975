"""Write `plugins/` and the marketplace file: coord as agent CLIs install their extensions.

    python scripts/plugins.py           # tells what is not current, and exits with 1
    python scripts/plugins.py --write

All of it follows from the profiles' own `[[wire]]` entries (`agents/*.toml`), so that a plugin asks
at the same moments as `coord init` has the CLI ask. No path of a machine is in it: each command is
the launcher beside it, which runs `coord-plugin` from PATH (`coordinator/_plugin.py`).
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

from coordinator.profiles import Profile, load

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "coordinator" / "plugins"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
ABOUT = "Asks the coordinator before each write, and gives the model coord's tools"
INSTALL = "docs/install.md"


class Made:
    """Texts by path, below the repository's root."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def text(self, path: str, text: str) -> None:
        self.texts[path] = text

    def json(self, path: str, value: Any) -> None:
        self.texts[path] = json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def claude(made: Made) -> None:
    """A plugin, and the marketplace that a checkout of this repository is."""
    home, here = "plugins/claude-code", "${CLAUDE_PLUGIN_ROOT}"
    hooks, server = _wired(load("claude-code", ROOT), here)
    made.json(f"{home}/.claude-plugin/plugin.json", {
        "name": PROJECT["name"], "version": PROJECT["version"], "description": ABOUT,
        "author": {"name": "The coord authors"}, "license": PROJECT["license"],
        "keywords": PROJECT["keywords"],
    })
    made.json(f"{home}/hooks/hooks.json", {"description": ABOUT, "hooks": hooks})
    made.json(f"{home}/.mcp.json", {"mcpServers": {"coord": server}})
    made.text(f"{home}/coord.sh", _launcher("plugin for Claude Code", "CLAUDE_PROJECT_DIR", "{}"))
    made.text(f"{home}/README.md", _readme(
        "Claude Code", f"claude plugin marketplace add PATH/OF/THIS/REPOSITORY\n"
        f"claude plugin install {PROJECT['name']}@coord",
        f"claude plugin uninstall {PROJECT['name']}@coord"))
    made.json(".claude-plugin/marketplace.json", {
        "name": "coord", "owner": {"name": "The coord authors"},
        "description": PROJECT["description"],
        "plugins": [{
            "name": PROJECT["name"], "source": f"./{home}", "version": PROJECT["version"],
            "description": ABOUT, "category": "development", "license": PROJECT["license"],
        }],
    })


def gemini(made: Made) -> None:
    """An extension."""
    home = "plugins/gemini"
    hooks, server = _wired(load("gemini", ROOT), "${extensionPath}")
    del server["trust"]  # a person's own decision: the CLI takes it from no extension
    made.json(f"{home}/gemini-extension.json", {
        "name": PROJECT["name"], "version": PROJECT["version"], "description": ABOUT,
        "mcpServers": {"coord": server},
    })
    made.json(f"{home}/hooks/hooks.json", {"hooks": hooks})
    made.text(f"{home}/coord.sh", _launcher(
        # it takes a server that offers nothing at all for a broken one
        "extension for Gemini CLI", "GEMINI_PROJECT_DIR", '{"prompts":{}}'))
    made.text(f"{home}/README.md", _readme(
        "Gemini CLI", f"gemini extensions install PATH/OF/THIS/REPOSITORY/{home}",
        f"gemini extensions uninstall {PROJECT['name']}"))


def opencode(made: Made) -> None:
    """An npm package; all it asks is in the plugin that `coord init` wires, too."""
    home = "plugins/opencode"
    texts = {name: (SOURCES / name).read_text("utf-8")
             for name in ("opencode.mjs", "ask.mjs", "opencode_package.js")}
    index = texts.pop("opencode_package.js").replace("{profile}", load("opencode", ROOT).name)
    made.text(f"{home}/index.js", index)
    for name, text in texts.items():
        made.text(f"{home}/{name}", text)
    made.json(f"{home}/package.json", {
        "name": "opencode-coord", "version": PROJECT["version"], "description": ABOUT,
        "license": PROJECT["license"], "type": "module", "main": "./index.js",
        "exports": {".": "./index.js", "./server": "./index.js"},
        "files": ["index.js", *texts], "keywords": ["opencode", *PROJECT["keywords"]],
    })
    made.text(f"{home}/README.md", _readme(
        "OpenCode", "# in opencode.json, of a project or your own (~/.config/opencode):\n"
        f"#   \"plugin\": [\"file:///PATH/OF/THIS/REPOSITORY/{home}\"]",
        "# the same line, taken out"))


def _wired(profile: Profile, here: str) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    """Its hooks and its MCP server, as `coord init` would wire them, with the launcher for each
    command. What only a person's settings can hold (`yields_to`) stays out."""
    assert profile.hooks is not None
    patience = f"{max(5.0, profile.hooks.timeout_s - 2.0):g}"
    hooks: dict[str, list[Any]] = {}
    server: dict[str, Any] = {}

    def command(found: re.Match[str]) -> str:
        event = f":{found[2]}" if found[2] else ""
        said = f'sh "{here}/coord.sh" {found[1]} {profile.name}{event} {patience}'
        return json.dumps(said)[1:-1]

    for entry in profile.wire:
        for piece in entry.add:
            assert piece.at[0] == "hooks", piece.at
            value = re.sub(r"\{(guard|notice|begin)(?::([A-Za-z]+))?\}", command, piece.value)
            hooks.setdefault(piece.at[1], []).append(_portable(value))
        for piece in entry.set:
            if piece.at == ("mcpServers", "coord"):
                server = _portable(piece.value.replace("{profile}", profile.name)
                                   .replace("{python}", "sh"))
                assert server["args"][:4] == ["-P", "-m", "coordinator.cli.main", "mcp"], server
                server["args"] = [f"{here}/coord.sh", "mcp", profile.name]
            else:
                assert piece.yields_to, f"{profile.name}: {piece.at} is not known to {__file__}"
    assert hooks and server, profile.name
    return hooks, server


def _portable(text: str) -> Any:
    value = json.loads(text)
    left = re.search(r"(?<!\$)\{[a-z]+\}", json.dumps(value))
    assert left is None, f"{left} would be left as it is"
    return value


def _launcher(plugin: str, project: str, offers: str) -> str:
    template = (ROOT / "scripts" / "plugin_launcher.sh").read_text("utf-8")
    return (template.replace("{plugin}", plugin).replace("{project}", project)
            .replace("{offers}", offers))


def _readme(cli: str, install: str, remove: str) -> str:
    return f"""\
# coord for {cli}

{ABOUT}: what other agents hold is refused, with
who holds it, why, and what to do meanwhile. In a repository that does not use coord (`coord init`),
and on a machine without coord, it does nothing.

```sh
{install}
```

It needs coord itself on your PATH: [{INSTALL}](../../{INSTALL}). Take it out again:

```sh
{remove}
```

What it does, and what `coord init --agent` does besides: [docs/plugins.md](../../docs/plugins.md).
Written by `make plugins`; do not edit it here.
"""


def everything() -> dict[str, str]:
    """Each file, and what it has to hold."""
    made = Made()
    for one in (claude, gemini, opencode):
        one(made)
    return made.texts


def stale() -> list[str]:
    """The files that are missing, out of date, or no longer made."""
    wanted = everything()
    there = {str(path.relative_to(ROOT)) for path in (ROOT / "plugins").rglob("*")
             if path.is_file()}
    return sorted({path for path, text in wanted.items() if _text(ROOT / path) != text}
                  | (there - set(wanted)))


def _text(path: Path) -> str | None:
    return path.read_text("utf-8") if path.is_file() else None


def main() -> int:
    """The exit code."""
    if "--write" not in sys.argv[1:]:
        for path in (found := stale()):
            print(f"{path} is not current: make plugins")
        return 1 if found else 0
    wanted = everything()
    for path in stale():
        target = ROOT / path
        if path not in wanted:
            target.unlink()
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(wanted[path], "utf-8")
        print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
