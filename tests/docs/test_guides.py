"""The guides: the `bash` of each page is run, from top to bottom, in a repository of its own, and what the page shows comes out of it;
the `python` of a page runs and is typed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Repo

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in [*DOCS.glob("guides/*.md"), DOCS / "task-file.md", DOCS / "concepts.md", DOCS / "index.md"])


def blocks(page: str, *languages: str) -> list[tuple[str, str]]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", (DOCS / page).read_text("utf-8"), re.M | re.S)
    return [(language, text) for language, text in found if language in languages]


def curl_is_too_old() -> bool:
    if shutil.which("curl") is None:
        return True
    version = re.match(r"curl (\d+)\.(\d+)", subprocess.run(["curl", "--version"], capture_output=True, text=True, check=True).stdout)
    return version is None or (int(version[1]), int(version[2])) < (7, 82)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "bash")])
def test_what_a_page_types_runs_and_says_what_it_shows(repo: Repo, page: str) -> None:
    script = "".join(text for _, text in blocks(page, "bash"))
    if "curl" in script and curl_is_too_old():
        pytest.skip("no curl with --json here: the page on HTTP is not tried")
    for name, text in (("src/pay.py", "def charge(): ...\n"), ("docs/api.md", "# API\n")):
        repo.write(name, text)
    git = ["git", "-c", "user.name=m", "-c", "user.email=m@example.org"]
    for words in (["add", "-A"], ["commit", "-qm", "begin"]):
        subprocess.run([*git, *words], cwd=repo.root, check=True)
    kept = {k: v for k, v in os.environ.items() if not k.startswith("COORD_")}
    env = {**kept, "PATH": f"{Path(sys.executable).parent}:{kept['PATH']}", "GIT_AUTHOR_NAME": "m", "GIT_AUTHOR_EMAIL": "m@example.org",
           "GIT_COMMITTER_NAME": "m", "GIT_COMMITTER_EMAIL": "m@example.org"}
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=repo.root, env=env, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False, timeout=120)
    assert done.returncode == 0, done.stdout
    rest = done.stdout
    for line in (line for _, text in blocks(page, "text") for line in text.splitlines()):
        found = re.search(".*?".join(re.escape(part.strip()) for part in line.split("…")), rest)
        assert found is not None, f"{line!r} is not in what came then:\n{rest}\n\nof:\n{done.stdout}"
        rest = rest[found.end():]


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")])
def test_the_python_of_a_page_runs_and_is_typed(repo: Repo, tmp_path: Path, page: str) -> None:
    programs = []
    for number, (_, text) in enumerate(blocks(page, "python")):
        programs.append(tmp_path / f"program_{number}.py")
        programs[-1].write_text(text, "utf-8")
        done = subprocess.run([sys.executable, "-P", str(programs[-1])], cwd=repo.root, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done.stderr
    checked = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), *map(str, programs)],
                             capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout
    if page == "guides/python.md":
        assert done.stdout == "['part 0', 'part 1', 'part 2', 'part 3']\n"


def test_pages_type_no_language_that_is_not_tried() -> None:
    for page in PAGES:
        assert set(re.findall(r"^```(\w+)", (DOCS / page).read_text("utf-8"), re.M)) <= {"bash", "python", "text", "json", "jsonl", "yaml", "markdown", "mermaid", "toml", "sh"}, page
