"""Build the documents as a site: `make site`.

Gathers the pages (`docs/`, `context_archive/`, the changelog, the benchmarks' page) into
`.site/pages`, with their links turned to where they lie there, and has Zensical build them,
strictly: a warning fails the build. Before that each link between files of the repository is
checked, those of README.md and CONTRIBUTING.md too.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / ".site"
PAGES = SITE / "pages"
#: Pages beside `docs/` and `context_archive/`, and where they lie on the site.
MORE = {"CHANGELOG.md": "changelog.md", "benchmarks/README.md": "benchmarks.md"}
#: Read by people in the repository only; their links are checked.
CHECKED = ("README.md", "CONTRIBUTING.md", "examples/README.md")
_CODE = re.compile(r"^(```|~~~).*?^\1[ \t]*$|(?<!`)(`+)(?!`).*?(?<!`)\2(?!`)", re.M | re.S)
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")
_TITLE = re.compile(r"^#{1,6} +(.+?)\s*#*$", re.M)
#: What follows a title in a browser's address: what the site makes of it.
_NOT_IN_ANCHOR = re.compile(r"[^\w\s-]")


def places() -> dict[str, str]:
    """Page in the repository -> page on the site."""
    out = dict(MORE)
    for path in sorted((ROOT / "docs").rglob("*.md")):
        out[path.relative_to(ROOT).as_posix()] = path.relative_to(ROOT / "docs").as_posix()
    for path in sorted((ROOT / "context_archive").glob("*.md")):
        out[f"context_archive/{path.name}"] = f"archive/{path.name}"
    return out


def files() -> dict[str, str]:
    """The same, of pictures and schemas."""
    out = {path.relative_to(ROOT).as_posix(): path.relative_to(ROOT / "docs").as_posix()
           for path in (ROOT / "docs").rglob("*") if path.suffix in (".svg", ".json")}
    for path in (ROOT / "context_archive").glob("*.svg"):
        out[f"context_archive/{path.name}"] = f"archive/{path.name}"
    return out


def anchors(text: str) -> set[str]:
    """The anchors of a page's titles."""
    bare = _CODE.sub(lambda found: "" if found[1] else found[0].strip("`"), text)
    return {re.sub(r"[-\s]+", "-", _NOT_IN_ANCHOR.sub("", title.lower()).strip())
            for title in _TITLE.findall(bare)}


def links(text: str) -> Iterator[re.Match[str]]:
    """Links and pictures, but for those that are code."""
    code = [found.span() for found in _CODE.finditer(text)]
    for found in _LINK.finditer(text):
        if not any(begin <= found.start() < end for begin, end in code):
            yield found


def target(page: str, link: str) -> tuple[str, str] | None:
    """(what a link leads to in the repository, its anchor); None: it leads elsewhere."""
    if re.match(r"[a-z][a-z0-9+.-]*:", link):
        return None
    path, _, anchor = link.partition("#")
    return os.path.normpath(Path(page).parent / path) if path else page, anchor


def broken() -> list[str]:
    """Links that lead nowhere."""
    out = []
    texts = {page: (ROOT / page).read_text("utf-8") for page in (*places(), *CHECKED)}
    for page, text in texts.items():
        for found in links(text):
            leads = target(page, found[3])
            if leads is None:
                continue
            path, anchor = leads
            if path.startswith("..") or not (ROOT / path).exists():
                out.append(f"{page}: there is no {path} ({found[0]})")
            elif anchor and path in texts and anchor not in anchors(texts[path]):
                out.append(f"{page}: {path} has no title for #{anchor}")
    return out


def turned(page: str, place: str, text: str, known: dict[str, str]) -> str:
    """A page's text with links as they are on the site; of what is no page there the words stay."""
    changes = []
    for found in links(text):
        leads = target(page, found[3])
        if leads is None:
            continue
        path, anchor = leads
        there = known.get(path) or files().get(path)
        new = found[2]
        if there is not None:
            relative = os.path.relpath(there, Path(place).parent)
            new = f"{found[1]}[{found[2]}]({relative}{'#' + anchor if anchor else ''})"
        changes.append((found.span(), new))
    for (begin, end), new in reversed(changes):
        text = text[:begin] + new + text[end:]
    return text


def gather() -> None:
    """Write `.site/pages`."""
    shutil.rmtree(SITE, ignore_errors=True)
    known = places()
    for file, place in files().items():
        to = PAGES / place
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / file, to)
    for page, place in known.items():
        to = PAGES / place
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(turned(page, place, (ROOT / page).read_text("utf-8"), known), "utf-8")


def configure() -> None:
    """Put the settings beside the pages: Zensical builds nothing outside of their folder."""
    shutil.copyfile(ROOT / "docs" / "zensical.toml", SITE / "zensical.toml")


def not_in_navigation() -> list[str]:
    """Pages that nobody would find, and entries without a page."""
    config = tomllib.loads((ROOT / "docs" / "zensical.toml").read_text("utf-8"))
    named = set(re.findall(r"'([\w/-]+\.md)'", str(config["project"]["nav"])))
    there = set(places().values())
    return [f"docs/zensical.toml: {name}" for name in sorted(named ^ there)]


def main() -> int:
    """Exit code: 1 when a link is broken, or the build has a warning."""
    wrong = broken() + not_in_navigation()
    for line in wrong:
        print(line, file=sys.stderr)
    if wrong:
        return 1
    gather()
    configure()
    done = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--clean", "--strict"], cwd=SITE, check=False)
    if done.returncode == 0:
        print(f"Open {SITE / 'html' / 'index.html'}")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
