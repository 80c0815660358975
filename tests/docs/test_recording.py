"""The animated picture in the README: small, by itself, and what coord does say."""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "docs/images/two-agents.svg"
SVG = "{http://www.w3.org/2000/svg}"


def story(picture: Path) -> list[str]:
    told = ET.parse(picture).getroot().findtext(f"{SVG}desc")
    assert told is not None
    return told.splitlines()


def test_it_needs_nothing_from_elsewhere() -> None:
    text = KEPT.read_text("utf-8")
    assert len(text.encode()) < 300_000
    assert not re.search(r"<script|<image|<foreignObject|@import|@font-face|url\(|href=", text)
    assert set(re.findall(r"https?://[^\"']+", text)) == {"http://www.w3.org/2000/svg"}
    assert "prefers-reduced-motion" in text
    shown = "".join("".join(node.itertext()) for node in ET.parse(KEPT).getroot().iter(f"{SVG}text"))
    for line in story(KEPT):
        assert line.split(": $ ")[-1].strip() in shown


def test_it_is_recorded_by_a_real_run(tmp_path: Path) -> None:
    new = tmp_path / "new.svg"
    done = subprocess.run([sys.executable, "-m", "benchmarks", "recording", "--to", str(new)], cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    told = " ".join(story(new))
    assert "bob: $ coord lock shop/limits.py" in told and "LOCKED: shop/limits.py is leased by ann for T-1" in told
    assert "Meanwhile take" in told and re.search(r"bob shop/limits.py ann", re.sub(" +", " ", told)), told
    granted = re.sub(" +", " ", told.split("--wait 10m")[1])
    assert granted.startswith(" shop/limits.py exclusive bob for 30m token"), told
    commands = [[line for line in story(one) if ": $ " in line] for one in (KEPT, new)]
    assert commands[0] == commands[1], "`make recording` draws it anew"
