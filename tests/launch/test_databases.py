"""Two agents with a real PostgreSQL: each has a database of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from coordinator.words import requests as rq
from tests.conftest import Repo
from tests.launch.test_environments import Start, add, configure

pytestmark = pytest.mark.slow


def find_programs() -> Path | None:
    """The folder of PostgreSQL's programs. Debian does not put them on PATH."""
    on_path = shutil.which("initdb")
    folders = [Path(on_path).resolve().parent] if on_path else sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in folders if (folder / "createdb").exists()), None)


@pytest.fixture
def postgres() -> Iterator[tuple[Path, Path]]:
    """The folder of the programs, and that of the socket of a server that runs. It does not run as root."""
    programs = find_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed")
    user = "nobody" if os.geteuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="pg"))  # a socket's path has at most 107 bytes
    if user:
        shutil.chown(folder, user)

    def run(*words: str) -> None:
        subprocess.run([str(programs / words[0]), *words[1:]], check=True, user=user, cwd=folder, stdout=subprocess.DEVNULL,
                       env={**os.environ, "LC_ALL": "C"})

    data = str(folder / "data")
    run("initdb", "-D", data, "-U", "app", "-A", "trust", "--no-sync")
    run("pg_ctl", "-D", data, "-w", "-l", str(folder / "log"), "-o", f"-k {folder} -h '' -F", "start")
    try:
        yield programs, folder
    finally:
        run("pg_ctl", "-D", data, "-m", "immediate", "stop")
        shutil.rmtree(folder, ignore_errors=True)


WORKS = """
psql -qAt "$DATABASE_URL" -c "CREATE TABLE work (title text); INSERT INTO work VALUES ('$COORD_TASK')" || exit 1
echo "$DATABASE_URL" >> used
while [ "$(wc -l < used)" -lt 2 ]; do sleep 0.1; done
[ "$(psql -qAt "$DATABASE_URL" -c 'SELECT title FROM work')" = "$COORD_TASK" ]
"""


def test_two_agents_do_not_meet_in_a_database(repo: Repo, launch: Start, postgres: tuple[Path, Path],
                                              monkeypatch: pytest.MonkeyPatch) -> None:
    programs, folder = postgres
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    configure(repo, f"""
[pools.db]
values = ["app_1", "app_2"]
env = "DATABASE_URL"
template = "postgresql://app@/{{value}}?host={folder}"
create = "createdb -h {folder} -U app $COORD_VALUE"
drop = "dropdb -h {folder} -U app $COORD_VALUE"
""")
    for title in ("one", "two"):
        add(repo, title, "--needs", "db")
    report = launch(WORKS).report()
    assert report["tasks"] == {"done": 2}, report
    used = repo.read("used").split()
    assert len(set(used)) == 2, used
    left = subprocess.run([str(programs / "psql"), "-qAt", "-h", str(folder), "-U", "app", "-d", "postgres", "-c",
                           "SELECT datname FROM pg_database WHERE datname LIKE 'app%'"], capture_output=True, text=True, check=True)
    assert left.stdout == "", "each was dropped before its value went back"
    with repo.client() as client:
        assert client.call(rq.Locks()).items == []
