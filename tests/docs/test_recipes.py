"""The page of recipes: each program runs in a repository of its own, and its types are checked."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Repo

PAGE = (Path(__file__).resolve().parent.parent.parent / "docs" / "recipes.md").read_text("utf-8")
#: Title -> its program.
RECIPES = dict(re.findall(r"^## (.+?)\n.*?^```python\n(.*?)^```", PAGE, re.M | re.S))
#: What a program prints, where that tells whether it did what the page says.
PRINTS = {
    "Hold a file while you write it": "<Held settings.ini (fencing token 1)>",
    "Do something else when it is taken": "ann has it;",
    "Several files, or none": "['old.py', 'new.py', 'tests/**']",
    "Work through a backlog": "T-1 Sort the imports ['a.py']\nT-2 Then run the tests []",
    "Many things at once, with asyncio": "no task for now",
    "A value that many change": "{'runs': 1}",
    "Say something, and ask for a file": "I have to add one column",
    "Act as a person": "0 leases, 0 reviews to decide",
    "Follow what happens": "T-1",
    "See where the time went": "0 s lost to waiting",
}


@pytest.mark.parametrize("title", RECIPES)
def test_a_recipe_runs(repo: Repo, title: str) -> None:
    done = subprocess.run([sys.executable, "-c", RECIPES[title]], cwd=repo.root, capture_output=True, text=True,
                          check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert PRINTS.get(title, "") in done.stdout, done.stdout
    assert repo.client().locks().items == [] or "ask for a file" in title, "it gives back what it held"


def test_every_block_is_a_recipe_and_is_typed(tmp_path: Path) -> None:
    assert len(RECIPES) == PAGE.count("```python") == len(re.findall(r"^## ", PAGE, re.M)) and set(PRINTS) <= set(RECIPES)
    for number, text in enumerate(RECIPES.values()):
        (tmp_path / f"recipe_{number}.py").write_text(text)
    checked = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"),
                              *map(str, sorted(tmp_path.glob("*.py")))], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout
