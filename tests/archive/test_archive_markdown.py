"""How Markdown becomes numbered sections, and what ties them to code."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.archive.excerpt_budget import ELLIPSIS, cut, shares, size
from coordinator.archive.markdown import Section, document, sections

SOURCE = "context_archive/architecture.md"


def outline(text: str) -> list[tuple[str, str]]:
    return [(s.number, s.title) for s in sections(text, SOURCE)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # A lone title names the document; the sections below it count from 1.
        ("# T\n\n## a\nx\n## b\ny\n### c\nz", [("1", "a"), ("2", "b"), ("2.1", "c")]),
        # Prose under the title is section 0.
        ("# T\nintro\n## a\nx", [("0", "T"), ("1", "a")]),
        ("intro\n\n# a\nx\n# b\ny", [("0", "a"), ("1", "a"), ("2", "b")]),
        ("only prose", [("0", "architecture")]),
        ("", []),
        ("# T", [("0", "T")]),
        # Several headings of level one are sections.
        ("# a\nx\n# b\n## c\n", [("1", "a"), ("2", "b"), ("2.1", "c")]),
        # A written number wins, is taken out of the title, and is counted on from.
        (
            "# T\n## 4 Parsers\n### 4.2 Normalization architecture\n### Next\n## After",
            [
                ("4", "Parsers"),
                ("4.2", "Normalization architecture"),
                ("4.3", "Next"),
                ("5", "After"),
            ],
        ),
        ("## 4.2. Normalization\n## Next", [("4.2", "Normalization"), ("4.3", "Next")]),
        ("# 7. Parsers\nx\n## Rows\ny", [("7", "Parsers"), ("7.1", "Rows")]),
        ("## §3.1 Rows", [("3.1", "Rows")]),
        ("## 2026 in review", [("1", "2026 in review")]),
        ("## 3.1", [("1", "3.1")]),
        # A number that is taken is not given twice.
        ("## a\n## 3 b\n## 2 c\n## d", [("1", "a"), ("3", "b"), ("2", "c"), ("4", "d")]),
        # Skipped levels nest by one; a heading in a quotation or a code block is text.
        ("## a\n#### b\n> # no\n\n```\n# no\n```\n", [("1", "a"), ("1.1", "b")]),
        ("Setext `code`\n===\nx\n\nSecond\n===\n", [("1", "Setext code"), ("2", "Second")]),
    ],
)
def test_numbers_and_titles(text: str, expected: list[tuple[str, str]]) -> None:
    assert outline(text) == expected


def test_a_section_carries_its_own_text_and_the_line_of_its_heading() -> None:
    text = "---\ntitle: Parsers\n---\n# T\r\n\r\n## a\r\none\r\n\r\n### b\ntwo\n\n\n## c\n"
    found = {s.title: s for s in sections(text, SOURCE)}
    assert [(s.body, s.line, s.level) for s in found.values()] == [
        ("one", 6, 2),
        ("two", 9, 3),
        ("", 13, 2),
    ]
    assert document(text, SOURCE).title == "Parsers"


def test_front_matter_ties_every_section() -> None:
    text = "---\npaths: [utils/*.py, ./parsers/]\nkeywords: norm\n---\n## a\nx\n## b\ny\n"
    for section in sections(text, SOURCE):
        assert section.paths == ("utils/*.py", "parsers")
        assert section.keywords == ("norm",)


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        ("---\npaths: [a\nb: }\n---\n## h\nx", 3, 2, "expected"),
        ("---\ntitle: x\npaths: {a: b}\n---\n## h\nx", 3, 1, "`paths` must be"),
        ("---\n- a\n---\n## h\nx", 2, 1, "expected `name: value`"),
        ("---\npaths: a\n", 1, 1, "never closed"),
        ("---\npaths: \t\x07\n---\n## h\nx", 2, 1, "front matter"),
    ],
)
def test_malformed_front_matter_is_a_remark(
    text: str, line: int, column: int, words: str
) -> None:
    (remark,) = document(text, SOURCE).remarks
    assert (remark.line, remark.column) == (line, column)
    assert words in remark.message
    assert str(remark).startswith(f"{SOURCE}:{line}:{column}: ")


def test_mentions_are_code_spans_links_and_bare_paths() -> None:
    text = """## a
`utils/constants.py` and `./utils/rows.py:12`, `src/pay.py::Payment.charge`, `normalize()`,
`Payment.charge`, [one](../utils/linked.py#L3 "t"), [two](docs/own.md), <https://x.org/a/b.py>,
and in prose core/types.py. Not `two words`, nor [mail](mailto:a@b.c).

```
src/tree/leaf.py
```
"""
    (section,) = sections(text, SOURCE)
    assert section.mentions == (
        "utils/constants.py",
        "utils/rows.py",
        "src/pay.py::Payment.charge",
        "normalize",
        "Payment.charge",
        "utils/linked.py",
        "context_archive/docs/own.md",
        "docs/own.md",
        "core/types.py",
        "src/tree/leaf.py",
    )


PIECES = st.sampled_from(
    ["# a\n", "## 4.2 b\n", "### \n", "---\n", "paths: [", "]\n", "`x/y.py`", "[l](a/b)", "> "]
) | st.sampled_from(["- ", "```\n", "\n\n", "\r\n", "text. ", "\t", "1.", "![", "\0", "&:*x\n"])
MARKDOWN = st.one_of(st.text(max_size=200), st.lists(PIECES, max_size=30).map("".join))


@given(MARKDOWN)
def test_any_text_is_read_and_no_line_is_lost(text: str) -> None:
    read = document(text, SOURCE)
    lines = [s.line for s in read.sections]
    assert lines == sorted(lines)
    assert all(isinstance(s, Section) and s.number for s in read.sections)
    kept = sum(len(s.body) for s in read.sections)
    assert kept <= len(text) + 1


@given(st.lists(st.integers(0, 1000), max_size=8), st.integers(0, 2000))
def test_shares_are_fair_and_within_the_budget(sizes: list[int], budget: int) -> None:
    given_ = shares(sizes, budget)
    assert sum(given_) <= budget
    assert all(g <= s for g, s in zip(given_, sizes, strict=True))
    # Whoever got less than asked got at least as much as anybody else, but for rounding.
    short = [g for g, s in zip(given_, sizes, strict=True) if g < s]
    assert not short or max(given_) <= min(short) + 1
    assert sum(given_) == min(budget, sum(sizes))


@given(st.text(), st.integers(0, 120), st.lists(st.text(max_size=5), max_size=2))
def test_a_cut_keeps_to_its_budget(text: str, budget: int, around: list[str]) -> None:
    result = cut(text, budget, around)
    assert size(result) <= budget
    assert result == text or result == "" or "…" in result
    assert result.removeprefix("… ").removesuffix(ELLIPSIS) in text


def test_a_cut_ends_where_a_reader_would() -> None:
    text = "One sentence here. Another one follows it. And a third, longer than the others."
    assert cut(text, 60) == "One sentence here. Another one follows it." + ELLIPSIS
    assert cut("Zürich ist schön", 12) == "Zürich" + ELLIPSIS


def test_a_cut_begins_at_the_paragraph_that_names_the_resource() -> None:
    text = "Long preface. " * 20 + "\n\nThe table in `utils/x.py` is sorted.\n\n" + "More. " * 50
    found = cut(text, 100, ["utils/x.py"])
    assert found.startswith("… The table in `utils/x.py` is sorted.")
