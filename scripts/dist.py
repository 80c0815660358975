"""Build the sdist and the wheel of it, check both, and try the wheel where nothing else is.

    python scripts/dist.py [--release]

With COORD_REPOSITORY_URL set, links and project URLs lead there (hatch_build.py). `--release` asks
besides that this is the very commit of the version's tag, with nothing uncommitted, and that the
address was named. Uploads nothing: what to type for that is printed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
ADDRESS = os.environ.get("COORD_REPOSITORY_URL", "")
#: What a machine has that never saw coord.
BARE = {name: value for name, value in os.environ.items()
        if name in ("PATH", "LANG", "TMPDIR", "PIP_INDEX_URL", "PIP_CONFIG_FILE", "PIP_CERT",
                    "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")}


def run(*words: str | Path, cwd: Path = ROOT, env: dict[str, str] | None = None) -> str:
    """Standard output; a failure ends this program, with what was said."""
    done = subprocess.run(list(map(str, words)), cwd=cwd, env=env, capture_output=True, text=True,
                          check=False)
    if done.returncode:
        print(done.stdout + done.stderr, file=sys.stderr)
        raise SystemExit(f"dist: failed ({done.returncode}): {' '.join(map(str, words))}")
    return done.stdout


def python(*words: str | Path) -> str:
    """One of the tools that this interpreter has."""
    return run(sys.executable, "-m", *words)


def releasable() -> None:
    """Raises SystemExit, with what is missing."""
    if not ADDRESS:
        raise SystemExit("dist: name the address: make release REPOSITORY_URL=https://…")
    if run("git", "status", "--porcelain").strip():
        raise SystemExit("dist: there is something uncommitted (git status)")
    tags = run("git", "tag", "--points-at", "HEAD").split()
    if f"v{VERSION}" not in tags:
        raise SystemExit(f"dist: this commit has no tag v{VERSION}: git tag -a v{VERSION}")
    told = (ROOT / "CHANGELOG.md").read_text("utf-8")
    if re.search(rf"^## {re.escape(VERSION)} - \d{{4}}-\d\d-\d\d$", told, re.MULTILINE) is None:
        raise SystemExit(f"dist: CHANGELOG.md has no section `## {VERSION} - YYYY-MM-DD`")


def build() -> tuple[Path, Path]:
    """The sdist, and the wheel that was made of it: what the sdist lacks, the wheel lacks, too."""
    shutil.rmtree(DIST, ignore_errors=True)
    python("build", "--outdir", DIST, ROOT)
    (sdist,), (wheel,) = DIST.glob("*.tar.gz"), DIST.glob("*.whl")
    return sdist, wheel


def check_page(wheel: Path) -> None:
    """Whether the browser page travels in the wheel; a release is not made without it."""
    with zipfile.ZipFile(wheel) as archive:
        names = {f"coordinator/web/{name}.html" for name in ("index", "report")}
        has_page = names <= set(archive.namelist())
    if not has_page and "--release" in sys.argv[1:]:
        raise SystemExit("dist: the browser page is not in the wheel: install npm, and repeat")
    print("dist: the browser page is in the wheel" if has_page else
          "dist: the browser page is not in the wheel (`make web` needs npm)")


def tried(wheel: Path) -> None:
    """In a fresh environment and a fresh home: installed, used, taken out again."""
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        home, repository, there = place / "home", place / "repository", place / "there"
        home.mkdir()
        repository.mkdir()
        env = {**BARE, "HOME": str(home), "PATH": f"{there / 'bin'}:{os.environ['PATH']}"}
        run(sys.executable, "-m", "venv", there, env=env)
        run(there / "bin/python", "-m", "pip", "install", "--quiet", wheel, env=env, cwd=place)

        def coord(*words: str) -> str:
            return run(there / "bin" / "coord", *words, cwd=repository, env=env)

        assert VERSION in coord("--version")
        run("git", "init", "-q", cwd=repository, env=env)
        (repository / "a.py").write_text("a = 1\n")
        coord("init", "--agent", "claude-code", "--yes")
        try:
            coord("lock", "a.py", "--agent", "ann")
            assert "ann" in coord("locks")
            assert "a" in coord("regions", "a.py")
            said = run(there / "bin" / "coord-plugin", "socket", cwd=repository, env=env)
            assert said.startswith("/"), said
            coord("doctor")
            coord("init", "--remove", "--yes")
        finally:
            coord("down")
        run(there / "bin/python", "-m", "pip", "uninstall", "--quiet", "--yes", "coord", env=env,
            cwd=place)
        left = sorted(path.name for path in (there / "bin").glob("coord*"))
        assert not left, left


def main() -> int:
    """The exit code."""
    if "--release" in sys.argv[1:]:
        releasable()
    sdist, wheel = build()
    check_page(wheel)
    print(f"dist: built {sdist.name} ({sdist.stat().st_size // 1024} kB), "
          f"{wheel.name} ({wheel.stat().st_size // 1024} kB)")
    python("twine", "check", "--strict", sdist, wheel)
    python("check_wheel_contents", wheel)
    print("dist: twine and check-wheel-contents find nothing")
    tried(wheel)
    print("dist: installed, used and removed in a fresh environment")
    if not ADDRESS:
        print("dist: no address was named (REPOSITORY_URL=https://…), so the README's links are "
              "relative: to be installed, not to be published")
    else:
        print(f"dist: links lead to {ADDRESS}. To publish: twine upload {sdist} {wheel}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
