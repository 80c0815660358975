"""What is built of this: nothing is missing, and the README's links lead where the release says."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.message import Message
from email.parser import HeaderParser
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
ADDRESS = "https://code.example/somebody/coord"
RELATIVE = re.compile(r"\]\((?!https?:|#)[^)]*\)")


def built(kind: str, target: Path, place: Path = ROOT, address: str = "", **more: str) -> Path:
    env = {"COORD_PAGE": "off", **os.environ, "COORD_REPOSITORY_URL": address, **more}
    done = subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(target)], cwd=place,
                          env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = target.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return found


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [one for one in archive.namelist() if one.endswith(".dist-info/METADATA")]
        return HeaderParser().parsestr(archive.read(name).decode())


def readme(wheel: Path) -> str:
    """Its text without what stands in code blocks."""
    return re.sub(r"^```.*?^```", "", str(metadata(wheel).get_payload()), flags=re.M | re.S)


def test_the_sdist_has_all_that_git_tracks(tmp_path: Path) -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("this is no git checkout: nothing tells what belongs to it")
    told = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    tracked = {name for name in told.split("\0") if name and (ROOT / name).is_file()}
    with tarfile.open(built("sdist", tmp_path)) as archive:
        names = {one.name.partition("/")[2] for one in archive.getmembers() if one.isfile()}
    assert tracked - names == set()
    assert {name for name in names - tracked if "/" not in name} <= {"PKG-INFO"}


def test_a_release_has_links_that_lead_to_its_address_also_when_built_from_its_sdist(tmp_path: Path) -> None:
    sdist = built("sdist", tmp_path / "sdist", address=ADDRESS)
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))  # type: ignore[arg-type]
    wheel = built("wheel", tmp_path / "wheel", tmp_path / f"coord-{VERSION}")  # its builder names none
    urls = dict(str(one).split(", ") for one in metadata(wheel).get_all("Project-URL", []))
    assert urls["Repository"] == ADDRESS and urls["Changelog"] == f"{ADDRESS}/blob/v{VERSION}/CHANGELOG.md"
    text = readme(wheel)
    assert RELATIVE.findall(text) == []
    source = (ROOT / "README.md").read_text("utf-8")
    for path in re.findall(r"!\[[^\]]*\]\(([^):]+)\)", source):
        assert f"]({ADDRESS}/raw/v{VERSION}/{path})" in text, "a picture is fetched, not shown in a page"
    for path in re.findall(r"(?<!!)\[[^\]]*\]\(([\w./-]+\.md)\)", source):
        assert f"]({ADDRESS}/blob/v{VERSION}/{path})" in text


def test_no_address_is_invented(tmp_path: Path) -> None:
    wheel = built("wheel", tmp_path)
    assert metadata(wheel).get_all("Project-URL") is None
    assert readme(wheel).strip() == re.sub(r"^```.*?^```", "", (ROOT / "README.md").read_text("utf-8"), flags=re.M | re.S).strip()


def _hook() -> ModuleType:
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_links_are_made_absolute_and_code_is_left_alone() -> None:
    text = "[a](docs/a.md#b) ![p](p.svg) [out](https://x.example/y) [here](#there) [m](mailto:a@b)\n```sh\ncoord x](y)\n```\n"
    assert _hook().absolute(text, ADDRESS, "1.2") == (
        f"[a]({ADDRESS}/blob/v1.2/docs/a.md#b) ![p]({ADDRESS}/raw/v1.2/p.svg) [out](https://x.example/y) [here](#there)"
        " [m](mailto:a@b)\n```sh\ncoord x](y)\n```\n")


def test_an_address_that_is_none_stops_the_build(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COORD_REPOSITORY_URL", "somewhere")
    with pytest.raises(ValueError, match="https://HOST/PATH"):
        _hook().address_of(ROOT)


def test_the_version_has_one_place() -> None:
    """What else names it is written from there (`make plugins`), or told by the installed distribution."""
    sources = [*(ROOT / "coordinator").rglob("*.py"), *(ROOT / "scripts").iterdir(), ROOT / "Makefile", ROOT / "hatch_build.py"]
    named = [path for path in sources if path.is_file() and re.search(rf'["\']v?{re.escape(VERSION)}["\']', path.read_text("utf-8"))]
    assert named == []


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A checkout with little in it, and an `npm` that builds the page in a moment."""
    root = tmp_path / "checkout"
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE", "schema.sql", ".gitignore"):
        (root / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    for name in ("agents/shell.toml", "coordinator/__init__.py", "web/package.json", "web/src/main.tsx"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    npm = tmp_path / "bin" / "npm"
    npm.parent.mkdir()
    npm.write_text(f"#!/bin/sh\necho $* >> {tmp_path}/asked\n[ $1 = ci ] && exit\nmkdir -p ../coordinator/web && echo page > ../coordinator/web/index.html\n")
    npm.chmod(0o755)
    return root


def names_in(built_file: Path) -> set[str]:
    if built_file.suffix == ".whl":
        with zipfile.ZipFile(built_file) as archive:
            return set(archive.namelist())
    with tarfile.open(built_file) as archive:
        return {one.name.partition("/")[2] for one in archive.getmembers()}


def test_the_page_is_built_where_npm_is_and_travels(small: Path, tmp_path: Path) -> None:
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    asked = tmp_path / "asked"
    for kind in ("sdist", "wheel"):
        assert "coordinator/web/index.html" in names_in(built(kind, tmp_path / kind, small, PATH=path, COORD_PAGE=""))
        assert asked.read_text() == "ci --no-fund --no-audit\nrun build\n", "one that is fresh is not built again"
    later = (small / "coordinator/web/index.html").stat().st_mtime + 10
    os.utime(small / "web/src/main.tsx", (later, later))
    built("wheel", tmp_path / "again", small, PATH=path, COORD_PAGE="")
    assert asked.read_text().count("build") == 2


def test_without_npm_all_but_the_page_is_built(small: Path, tmp_path: Path) -> None:
    names = names_in(built("wheel", tmp_path / "wheel", small, PATH="/nowhere", COORD_PAGE=""))
    assert "coordinator/__init__.py" in names and not [name for name in names if name.startswith("coordinator/web/")]
