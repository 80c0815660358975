"""Clients that others' generators make from `/openapi.json`, in two languages: they are made without
a warning, they compile strictly, and they work through a round with a real daemon. (`make
test-clients`; the generators come from their own registries.)"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from tests.conftest import Repo

pytestmark = pytest.mark.clients
HERE = Path(__file__).resolve().parent
#: As the registries have them; newer ones are tried by changing these lines.
NODE_PACKAGES = ("openapi-typescript@7.13.0", "openapi-fetch@0.17.0", "typescript@5.9.3", "@types/node@20")


@pytest.fixture
def door(repo: Repo) -> tuple[str, str, str]:
    """The address, the operator's token, the repository."""
    repo.write("a.py", "x = 1\n")
    repo.coord("up", "--http", "0")
    return repo.state.http.read_text().strip(), repo.state.bearer.read_text().strip(), str(repo.root)


def described(door: tuple[str, str, str], into: Path) -> Path:
    asked = Request(door[0] + "/openapi.json", headers={"Authorization": f"Bearer {door[1]}"})
    with urlopen(asked, timeout=20) as answer:
        into.write_bytes(answer.read())
    assert json.loads(into.read_bytes())["openapi"] == "3.1.0"
    return into


def run(*command: str, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False,
                          env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_openapi_python_client(door: tuple[str, str, str], tmp_path: Path) -> None:
    described(door, tmp_path / "openapi.json")
    said = run("openapi-python-client", "generate", "--path", "openapi.json", "--output-path", "made",
               "--meta", "none", cwd=tmp_path)
    assert "arning" not in said, said
    shutil.copy(HERE / "round.py", tmp_path / "round.py")
    run(sys.executable, "-m", "compileall", "-q", "made", cwd=tmp_path)
    run(sys.executable, "-m", "mypy", "--strict", "--config-file=", "--follow-imports=silent", "round.py", cwd=tmp_path)
    assert run(sys.executable, "round.py", *door, cwd=tmp_path).strip() == "a whole round"


def test_openapi_typescript(door: tuple[str, str, str], tmp_path: Path) -> None:
    if shutil.which("npm") is None:
        pytest.skip("npm is not there: TypeScript clients are not tried")
    described(door, tmp_path / "openapi.json")
    (tmp_path / "package.json").write_text('{"private": true, "type": "module"}')
    run("npm", "install", "--silent", "--no-fund", "--no-audit", *NODE_PACKAGES, cwd=tmp_path)
    run("npx", "--no-install", "openapi-typescript", "openapi.json", "-o", "coord.d.ts", cwd=tmp_path)
    shutil.copy(HERE / "round.ts", tmp_path / "round.ts")
    run("npx", "--no-install", "tsc", "--strict", "--noUncheckedIndexedAccess", "--target", "es2022", "--module", "nodenext",
        "--types", "node", "round.ts", cwd=tmp_path)
    assert run("node", "round.js", *door, cwd=tmp_path).strip() == "a whole round"
