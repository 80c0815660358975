"""Wherever coord starts a Python, that one imports nothing from the directory it is started in."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PLACES = [ROOT / "coordinator", ROOT / "agents", ROOT / "benchmarks", ROOT / "generators"]
PYTHON = sorted(file for place in PLACES for file in place.rglob("*.py"))
TEXTS = sorted(file for place in PLACES for file in place.rglob("*")
               if file.suffix in (".py", ".toml", ".ts", ".js", ".mjs", ".sh"))
SAFE = ("-P", "-I")


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def sequences(tree: ast.AST) -> Iterator[list[ast.expr]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.List | ast.Tuple):
            yield node.elts
        elif isinstance(node, ast.Call):
            yield node.args


def unsafe(path: Path) -> list[int]:
    """Lines on which a Python is started, as words of a command, that would import from there."""
    text, found = path.read_text("utf-8"), []
    if "executable" not in text and "-m" not in text:
        return []
    for words in sequences(ast.parse(text)):
        said = [word.value if isinstance(word, ast.Constant) else ast.unparse(word) for word in words]
        for at, word in enumerate(said):
            begins = word == "sys.executable" and at + 1 < len(said) and str(said[at + 1]).startswith("-")
            ours = word == "-m" and at + 1 < len(said) and str(said[at + 1]).startswith("coordinator")
            if (begins and said[at + 1] not in SAFE) or (ours and not set(said[:at]) & set(SAFE)):
                found.append(words[at].lineno)
    return found


def unsafe_text(text: str) -> list[str]:
    """The same where a command is one text, or the data of a profile."""
    spaced = [found[0] for found in re.finditer(r"((?<!\S)\S+ )?-m coordinator[.\w]*", text) if not found[0].startswith(SAFE)]
    quoted = [found[0] for found in re.finditer(r"""\{python\}\\?"(?!\n)[^\n-]*(-\w+)?""", text) if found[1] not in SAFE]
    listed = [found[0] for found in re.finditer(r"""(\\?"-\w+\\?", ?)?\\?"-m\\?", ?\\?"coordinator""", text)
              if not any(flag in found[0] for flag in SAFE)]
    return spaced + quoted + listed


def unsafe_texts(path: Path) -> list[str]:
    """The same in each text of a module."""
    source = path.read_text("utf-8")
    if "-m" not in source and "python" not in source:
        return []
    texts = [node.value for node in ast.walk(ast.parse(source))
             if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return [bad for text in texts for bad in unsafe_text(text)]


def test_commands_in_words() -> None:
    assert {name(path): lines for path in PYTHON if (lines := unsafe(path))} == {}


def test_commands_in_data() -> None:
    assert {name(path): bad for path in TEXTS if path.suffix != ".py"
            and (bad := unsafe_text(path.read_text("utf-8")))} == {}


def test_commands_in_texts() -> None:
    assert {name(path): bad for path in PYTHON if (bad := unsafe_texts(path))} == {}


def test_these_rules_would_see_one(tmp_path: Path) -> None:
    bad = tmp_path / "bad.py"
    for line in ('run([sys.executable, "-m", "pip"])', 'run(["python", "-m", "coordinator.x"])',
                 'f(*("-m", "coordinator.x"))'):
        bad.write_text(line)
        assert unsafe(bad), line
    for text in ('exec python -m coordinator.cli.main', '["{python}", "-m", "coordinator.x"]',
                 '{"command": "{python}", "args": ["-m", "coordinator.cli.main"]}', r'{command=\"{python}\",args=[\"-m\",\"coordinator.x\"]}'):
        assert unsafe_text(text), text
    for text in ('exec python -P -m coordinator.cli.main', '["{python}", "-P", "-m", "coordinator.x"]',
                 '{"command": "{python}", "args": ["-P", "-m", "coordinator.cli.main"]}'):
        assert not unsafe_text(text), text
