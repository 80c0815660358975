"""The glossary gives each word one meaning, and the code uses its words."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
GLOSSARY = (ROOT / "context_archive" / "glossary.md").read_text("utf-8")
WORDS, NOT_USED = GLOSSARY.split("## Words that are not used")
QUOTED = re.compile(r"`(\w+)`")


def read_table(text: str) -> list[tuple[str, str, str]]:
    """The rows of its one table, without the head and without headings in it."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| ")]
    return [(first, second, third) for first, second, third in rows[1:] if not first.startswith("**")]


@cache
def list_names() -> dict[str, bool]:
    """The names of all classes and functions of the program; whether it is a class."""
    names: dict[str, bool] = {}
    for path in (ROOT / "coordinator").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                names[node.name] = names.get(node.name, False) or isinstance(node, ast.ClassDef)
    return names


def to_words(name: str) -> str:
    """`_one_by_one_` of a name in either case."""
    return "_" + re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).strip("_").lower() + "_"


def test_no_word_is_defined_twice() -> None:
    words = [word.strip() for first, _, _ in read_table(WORDS) for word in first.split(",")]
    assert len(words) > 80
    assert sorted(set(words)) == sorted(words)


def test_no_word_is_defined_and_not_used() -> None:
    words = {word.strip().removeprefix("to ") for first, _, _ in read_table(WORDS) for word in first.split(",")}
    assert not words & {part.replace("_", " ") for first, _, _ in read_table(NOT_USED) for part in QUOTED.findall(first)}


def test_the_classes_that_it_names_are_there() -> None:
    classes = {name for _, named, _ in read_table(WORDS) for name in QUOTED.findall(named)}
    assert len(classes) > 30
    assert sorted(name for name in classes if not list_names().get(name)) == []


@pytest.mark.parametrize(("not_used", "left"), [(first, third) for first, _, third in read_table(NOT_USED)])
def test_a_word_that_is_not_used_is_in_no_name(not_used: str, left: str) -> None:
    """But in those that are left. One that is gone is taken out of the glossary."""
    parts = QUOTED.findall(not_used)
    assert parts
    names = sorted(name for name in list_names() if any(f"_{part}_" in to_words(name) for part in parts))
    assert names == sorted(QUOTED.findall(left))
