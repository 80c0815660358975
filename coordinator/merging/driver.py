"""The program that git runs for a file changed on both sides: `merge.coord.driver` (`installing`).

Called as `python -P -m coordinator.merging.driver BASE OURS THEIRS MARKER_SIZE PATH [LABELS]`, in
the directory that git merges in. Writes the result into OURS, as git wants it, and ends with
`CLEAN` or `CONFLICT`. After a fault of ours or of the machine it ends with another code. OURS is
then unchanged, and the command in git's settings runs `git merge-file`, as without coord.

The project's own `.gitattributes` take precedence over coord: union, no merge, another driver.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from coordinator.files.git import TIMEOUT_S

#: Exit codes that no failure of a process gives.
CLEAN, CONFLICT = 40, 41
_ATTRIBUTES = ".gitattributes"


def main(arguments: list[str]) -> int:
    """Merge, and return the exit code. Raises any failure: the caller falls back to git."""
    base, ours, theirs, size, path = arguments[:5]
    text = project_says(path)
    if text not in ("unspecified", "set", "text", "coord"):
        return _as_the_project_says(text, arguments[:5])
    from coordinator.merging.act import Manner, merge_texts
    from coordinator.merging.model import Side

    before, mine, other = (
        name if name and not name.startswith("%") else instead for name, instead in zip(
            [*arguments[5:8], "", "", ""], ("base", "ours", "theirs"), strict=False))
    done = merge_texts(
        Path(base).read_bytes(), Path(ours).read_bytes(), Path(theirs).read_bytes(), path,
        Manner(Side(mine), before, Side(other), int(size)),
    )
    _replace(Path(ours), done.data)
    for clash in done.conflicts:
        sys.stderr.write(_line(f"coord: {path}: conflict in {clash.name}: {clash.why}"))
    if done.by == "regions":
        sys.stderr.write(_line(f"coord: {path}: merged by region"))
    if done.by == "conflict":
        for note in done.notes:
            sys.stderr.write(_line(f"coord: {path}: {note}"))
    return CONFLICT if done.by == "conflict" else CLEAN


def _line(text: str) -> str:
    from coordinator.words import texts

    return texts.harmless(" ".join(text.split())) + "\n"


def _replace(path: Path, data: bytes) -> None:
    """Write git's temporary file in one step, so that half a result never looks like a result."""
    with tempfile.NamedTemporaryFile(
            dir=path.parent, prefix=".merge_file_coord", delete=False) as new:
        new.write(data)
    try:
        Path(new.name).chmod(path.stat().st_mode & 0o7777)
        Path(new.name).replace(path)
    except BaseException:
        Path(new.name).unlink(missing_ok=True)
        raise


def project_says(path: str) -> str:
    """Ask git how the project's own `.gitattributes` merge this file. The attributes of this clone
    are left out, because they called this driver."""
    folders = [Path(), *list(Path(path).parents)[-2::-1]]
    if not any(_speaks(folder / _ATTRIBUTES) for folder in folders):
        return "unspecified"
    with tempfile.TemporaryDirectory(prefix="coord-merge-") as place:
        bare = Path(place)  # a repository that has no attributes of its own
        (bare / "objects").mkdir()
        (bare / "refs").mkdir()
        (bare / "HEAD").write_text("ref: refs/heads/main\n")
        stdout = subprocess.run(
            ["git", "check-attr", "-z", "merge", "--", path], check=True, capture_output=True,
            stdin=subprocess.DEVNULL, timeout=TIMEOUT_S,
            env={**os.environ, "GIT_DIR": place, "GIT_WORK_TREE": str(Path.cwd()),
                 "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1",
                 "GIT_INDEX_FILE": str(bare / "index")},
        ).stdout
    return os.fsdecode(stdout.split(b"\0")[2])


def _speaks(file: Path) -> bool:
    try:
        text = file.read_bytes()
    except OSError:
        return False
    return b"merge" in text or b"binary" in text or b"[attr]" in text


def _as_the_project_says(text: str, arguments: list[str]) -> int:
    base, ours, theirs, size, path = arguments
    if text in ("unset", "binary"):
        return CONFLICT  # ours stays as it is, and git reports the conflict
    if text == "union":
        done = subprocess.run(
            ["git", "merge-file", "-p", "-q", "--union", ours, base, theirs], check=True,
            capture_output=True, stdin=subprocess.DEVNULL, timeout=TIMEOUT_S)
        _replace(Path(ours), done.stdout)
        return CLEAN
    command = subprocess.run(
        ["git", "config", f"merge.{text}.driver"], check=False, capture_output=True, text=True,
        stdin=subprocess.DEVNULL, timeout=TIMEOUT_S).stdout.removesuffix("\n")
    if not command:
        raise LookupError(f"no driver {text}")
    for sign, value in (("%O", base), ("%A", ours), ("%B", theirs), ("%L", size),
                        ("%P", shlex.quote(path))):
        command = command.replace(sign, value)
    code = subprocess.run(command.replace("%%", "%"), shell=True, check=False).returncode
    if 0 <= code < 128:
        return CONFLICT if code else CLEAN
    raise OSError(f"the driver {text} ended with {code}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
