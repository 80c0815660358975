"""What agents' own installers find (`plugins/`) says what the profiles say, and names no machine."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path
from types import ModuleType

from coordinator.profiles import load

ROOT = Path(__file__).resolve().parents[2]


def _maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_plugins", ROOT / "scripts/plugins.py")
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_the_plugins_are_current() -> None:
    assert _maker().stale() == [], "make plugins"


def test_they_ask_at_the_moments_that_init_wires() -> None:
    for profile, folder in (("claude-code", "claude-code"), ("gemini", "gemini")):
        hooks = json.loads((ROOT / "plugins" / folder / "hooks/hooks.json").read_text("utf-8"))["hooks"]
        wired = {piece.at[1] for entry in load(profile, ROOT).wire for piece in entry.add}
        assert set(hooks) == wired
        assert "guard" in json.dumps(hooks["PreToolUse" if profile == "claude-code" else "BeforeTool"])


def test_no_path_of_a_machine_is_in_them() -> None:
    for path in [ROOT / ".claude-plugin/marketplace.json", *(ROOT / "plugins").rglob("*")]:
        if path.is_file():
            text = path.read_text("utf-8")
            assert str(ROOT) not in text and sys.executable not in text, path
            assert not re.search(r'"/(home|usr|root|opt|tmp)/', text), path
