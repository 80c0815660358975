"""The site of the documents: what gathers its pages, and finds links that lead nowhere. (`make site` builds it, strictly.)"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts/site.py"


@pytest.fixture
def site(tmp_path: Path) -> ModuleType:
    """Of a small repository."""
    spec = importlib.util.spec_from_file_location("documents_site", SCRIPT)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    made.ROOT, made.SITE, made.PAGES = tmp_path, tmp_path / ".site", tmp_path / ".site/pages"
    made.CHECKED, made.MORE = ("README.md",), {}
    for name, text in {
        "README.md": "[docs](docs/index.md#two-words)\n", "code.py": "",
        "docs/index.md": "# One\n\n## Two `words`\n\n[up](guides/a.md) [code](../code.py) [away](https://example.org/x.md)\n![picture](p.svg)\n`[no](link.md)`\n",
        "docs/guides/a.md": "# A\n\n[archive](../../context_archive/b.md#b) [self](#a)\n\n```text\n# no title\n[no](link.md)\n```\n",
        "docs/p.svg": "<svg/>", "context_archive/b.md": "# B\n\n[back](../docs/index.md)\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return made


def test_links_lead_to_where_the_pages_lie_on_the_site(site: ModuleType) -> None:
    assert site.broken() == []
    site.gather()
    read = {path.relative_to(site.PAGES).as_posix(): path.read_text() for path in site.PAGES.rglob("*.*")}
    assert set(read) == {"index.md", "guides/a.md", "archive/b.md", "p.svg"}
    assert "[up](guides/a.md) code [away](https://example.org/x.md)\n![picture](p.svg)\n`[no](link.md)`" in read["index.md"]
    assert "[archive](../archive/b.md#b) [self](a.md#a)" in read["guides/a.md"] and "[no](link.md)\n```" in read["guides/a.md"]
    assert read["archive/b.md"].endswith("[back](../index.md)\n")


@pytest.mark.parametrize(("link", "said"), [
    ("[x](guides/none.md)", "docs/index.md: there is no docs/guides/none.md"),
    ("[x](guides/a.md#nowhere)", "docs/guides/a.md has no title for #nowhere"),
    ("[x](../../out.md)", "there is no ../out.md"),
    ("![x](none.png)", "there is no docs/none.png"),
])
def test_a_link_that_leads_nowhere_is_told(site: ModuleType, link: str, said: str) -> None:
    (site.ROOT / "docs/index.md").write_text(f"# One\n\n## Two words\n\n{link}\n")
    (wrong,) = site.broken()
    assert said in wrong
