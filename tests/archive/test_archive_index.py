"""The index over real files: search, show, excerpts, and that it may be lost at any time."""

import os
import string
import threading
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coordinator.archive.excerpt_budget import size
from coordinator.archive.index import FILE_BYTES_MAX, ArchiveIndex, UnknownSection
from coordinator.archive.markdown import Section

DOCS = {
    "architecture.md": """---
keywords: [overview]
---
# Architecture

## 4 Data

### 4.1 Reading

Rows come from `parsers/` one at a time.

### 4.2 Normalization architecture

All rules stand in `utils/constants.py`. Their order matters: the first that matches wins.

### 4.3 Payments

`src/pay.py::PaymentProcessor.charge` must stay idempotent. See `PaymentProcessor`.
""",
    "sql.md": """---
paths: ["src/**/*.sql", docs/]
---
# Statements

Every statement has a name.
""",
    "deep/other.md": "# Other\n\n## Reading\n\nNothing of note. Formats are listed elsewhere.\n",
}


def write(root: Path, docs: dict[str, str]) -> None:
    for name, text in docs.items():
        path = root / "context_archive" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[ArchiveIndex]:
    write(tmp_path, DOCS)
    index = ArchiveIndex(tmp_path / ".coord" / "archive.sqlite", tmp_path)
    assert len(index.refresh().added) == 3
    yield index
    index.close()


def whys(index: ArchiveIndex, *paths: str, words: str = "") -> list[tuple[str, str]]:
    return [(e.number, e.why) for e in index.excerpts(paths, 4000, words)]


def test_search_weighs_titles_and_marks_the_match(index: ArchiveIndex) -> None:
    best = index.search("normalization")[0]
    assert (best.number, best.title) == ("4.2", "Normalization architecture")
    assert "«matches»" in index.search("matching rules")[0].snippet
    assert index.search("overview")[0].source == "context_archive/architecture.md"


def test_search_falls_back_to_the_beginnings_of_words(index: ArchiveIndex) -> None:
    assert index.search("idempo")[0].number == "4.3"
    assert index.search("idempo zebra")[0].number == "4.3"
    assert index.search("zebra") == []


def test_show_takes_a_number_a_source_or_a_title(index: ArchiveIndex) -> None:
    assert index.show("4.2").title == "Normalization architecture"
    assert index.show("4.2@architecture.md").number == "4.2"
    assert index.show("payments").number == "4.3"
    assert index.show("Normalization").number == "4.2"
    assert index.show("1@other.md").title == "Reading"


def test_show_says_which_when_several_fit(index: ArchiveIndex) -> None:
    with pytest.raises(UnknownSection) as refused:
        index.show("Reading")
    assert refused.value.candidates == (
        "4.1@context_archive/architecture.md",
        "1@context_archive/deep/other.md",
    )
    with pytest.raises(UnknownSection) as refused:
        index.show("9.9")
    assert refused.value.candidates == ()


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        ("utils/constants.py", [("4.2", "mentions utils/constants.py")]),
        ("parsers/aoi.py", [("4.1", "describes parsers")]),
        ("src/db/make.sql", [("0", "covers src/**/*.sql")]),
        ("src/**/*.sql", [("0", "covers src/**/*.sql")]),
        ("docs/a/b.txt", [("0", "covers docs")]),
        (
            "src/pay.py::PaymentProcessor.charge",
            [("4.3", "explains src/pay.py::PaymentProcessor.charge")],
        ),
        ("src/pay.py::PaymentProcessor.refund", [("4.3", "mentions src/pay.py")]),
        ("other/x.py::PaymentProcessor.refund", [("4.3", "mentions PaymentProcessor")]),
        ("utils/", [("4.2", "describes utils/constants.py")]),
        ("utils/*.py", [("4.2", "describes utils/constants.py")]),
        ("lib/formats.py", [("1", "speaks of formats")]),
        ("key:zebra:1", []),
        ("key:payments:7", [("4.3", "speaks of payments")]),
        ("git:index", []),
        ("", []),
    ],
)
def test_excerpts_follow_the_strongest_tie(
    index: ArchiveIndex, resource: str, expected: list[tuple[str, str]]
) -> None:
    assert whys(index, resource) == expected


def test_of_equal_ties_the_task_decides(tmp_path: Path) -> None:
    write(tmp_path, {"a.md": "".join(f"## {t}\n\n`u/x.py` it.\n" for t in ("One", "Two", "Aoi"))})
    index = ArchiveIndex(tmp_path / "i.sqlite", tmp_path)
    index.refresh()
    assert index.excerpts(["u/x.py"], 200, "write the AOI parser")[0].title == "Aoi"
    assert [e.title for e in index.excerpts(["u/x.py"], 4000)] == ["One", "Two", "Aoi"]


def test_living_sections_are_replaced_as_a_whole(index: ArchiveIndex) -> None:
    def now(agent: str, path: str) -> Section:
        return Section("(living)", "L1", f"{agent} now", 1, f"{agent} renames rows.", 0, (path,))

    index.living([now("agent-a", "utils/constants.py"), now("agent-b", "x.py")])
    assert whys(index, "utils/constants.py") == [
        ("4.2", "mentions utils/constants.py"),
        ("L1", "covers utils/constants.py"),
    ]
    assert index.search("agent-a")[0].source == "(living)"
    index.living([now("agent-c", "y.py\ud800")])
    assert index.search("agent-a") == []
    index.refresh()
    assert index.search("renaming")[0].title == "agent-c now"


def test_what_cannot_be_read_is_left_out_with_a_warning(
    index: ArchiveIndex, tmp_path: Path
) -> None:
    archive = tmp_path / "context_archive"
    (archive / "big.md").write_bytes(b"x" * (FILE_BYTES_MAX + 1))
    (archive / "latin.md").write_bytes("## Zürich".encode("latin-1"))
    (archive / "matter.md").write_text("---\npaths: [\n---\n## Fine\n")
    (archive / ".hidden").mkdir()
    (archive / ".hidden" / "secret.md").write_text("## zebra\n")
    (archive / "away.md").symlink_to("/etc/hostname")
    done = index.refresh()
    assert done.added == tuple(f"context_archive/{n}.md" for n in ("big", "latin", "matter"))
    assert [w.source.partition("/")[2] for w in done.warnings] == [
        "big.md",
        "latin.md",
        "matter.md",
    ]
    assert index.search("zebra") == []
    assert index.show("Fine").line == 4
    # They are not read again, but they still stand.
    again = index.refresh()
    assert (again.added, again.changed, again.warnings) == ((), (), done.warnings)


@pytest.mark.parametrize("damage", ["garbage", "middle", "newer", "gone"])
def test_the_file_may_be_lost_at_any_time(tmp_path: Path, damage: str) -> None:
    # Given an index that was filled and closed,
    write(tmp_path, DOCS)
    path = tmp_path / "i.sqlite"
    first = ArchiveIndex(path, tmp_path)
    first.refresh()
    expected = first.search("rules")
    first.close()
    # if its file is damaged, of another version, or gone,
    if damage == "garbage":
        path.write_bytes(b"not a database at all" * 500)
    elif damage == "middle":
        whole = path.read_bytes()
        path.write_bytes(whole[:4096] + os.urandom(len(whole) - 4096))
    elif damage == "newer":
        db = apsw.Connection(str(path))
        db.execute("PRAGMA user_version = 999")
        db.close()
    else:
        path.unlink()
    # I expect a new one to be made, and to answer the same.
    second = ArchiveIndex(path, tmp_path)
    second.refresh()
    assert second.search("rules") == expected
    second.close()


def test_damage_while_open_is_mended_in_the_same_call(index: ArchiveIndex, tmp_path: Path) -> None:
    living = Section("(living)", "L1", "agent-a now", 1, "busy", 0, ("a.py",))
    index.living([living])
    expected = index.search("rules")
    other = apsw.Connection(str(tmp_path / ".coord" / "archive.sqlite"))
    other.execute("PRAGMA writable_schema = ON")
    other.execute("DELETE FROM written_text_data WHERE id > 1")
    other.close()
    assert index.search("rules") == expected
    assert index.excerpts(["a.py"], 100)[0].text == "busy"


def test_a_full_disk_takes_no_answer_away(index: ArchiveIndex) -> None:
    # Given sections that were told before the disk was full, and many more after
    def now(n: int) -> Section:
        return Section("(living)", f"L{n}", f"agent-{n} now", 1, f"busy {n} " * 2000, 0, (f"{n}.py",))

    index.living([now(1)])
    before = index.search("rules")
    assert index.search("agent-1")
    pages = index._db.execute("PRAGMA page_count").get
    index._db.execute(f"PRAGMA max_page_count = {pages}")
    index.living([now(n) for n in range(2, 60)])
    # I expect the answers of before, and the new ones once there is room
    assert index.search("rules") == before
    assert index.search("agent-1")[0].title == "agent-1 now"
    index._db.execute("PRAGMA max_page_count = 1000000")
    assert index.search("agent-59")[0].title == "agent-59 now"


def test_several_may_open_it_for_the_first_time_at_once(tmp_path: Path) -> None:
    write(tmp_path, DOCS)
    failures: list[BaseException] = []

    def use() -> None:
        try:
            index = ArchiveIndex(tmp_path / "i.sqlite", tmp_path)
            index.refresh()
            assert index.show("4.2").title == "Normalization architecture"
            index.close()
        except BaseException as e:
            failures.append(e)

    users = [threading.Thread(target=use) for _ in range(8)]
    for user in users:
        user.start()
    for user in users:
        user.join()
    assert failures == []


def test_who_opens_it_waits_for_another_that_makes_it(tmp_path: Path) -> None:
    """SQLite itself does not wait where the kind of journal is changed."""
    write(tmp_path, DOCS)
    other = apsw.Connection(str(tmp_path / "i.sqlite"))
    other.execute("PRAGMA user_version = 1")  # so that there is a page of it
    other.execute("BEGIN IMMEDIATE")
    ends = threading.Timer(0.3, lambda: other.execute("COMMIT"))
    ends.start()
    index = ArchiveIndex(tmp_path / "i.sqlite", tmp_path)
    index.refresh()
    assert index.show("4.2").title == "Normalization architecture"
    ends.join()
    index.close()


def test_another_programs_database_is_never_touched(tmp_path: Path) -> None:
    path = tmp_path / "theirs.sqlite"
    theirs = apsw.Connection(str(path))
    theirs.execute("CREATE TABLE t (x)")
    theirs.close()
    before = path.read_bytes()
    with pytest.raises(ValueError, match="another program"):
        ArchiveIndex(path, tmp_path)
    assert path.read_bytes() == before
    with pytest.raises(ValueError, match="not inside"):
        ArchiveIndex(tmp_path / "i.sqlite", tmp_path, folders=["../x"])


def test_a_folder_may_be_missing_or_a_single_file(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# Read me\n\n## Install\n\nuv sync\n")
    index = ArchiveIndex(tmp_path / "i.sqlite", tmp_path, folders=["README.md", "none"])
    assert index.refresh().added == ("README.md",)
    assert index.show("install").body == "uv sync"


HARD = st.text(alphabet=st.sampled_from("\"'*():^-+{}~@.,;/\\ \0aNOTné½_\ud800漢…"), max_size=30)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.one_of(st.text(max_size=60), HARD))
def test_no_text_makes_a_question_fail(index: ArchiveIndex, text: str) -> None:
    assert all(hit.title for hit in index.search(text))
    index.excerpts([text, f"src/{text}.py", f"{text}::{text}"], 500, text)
    try:
        index.show(text)
    except UnknownSection as refused:
        assert refused.ref == text.strip().encode("utf-8", "replace").decode()


RESOURCES = st.lists(
    st.sampled_from(
        ["utils/constants.py", "parsers/a.py", "src/x.sql", "src/pay.py::P", "docs/", "**/*.py"]
    ),
    max_size=4,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(RESOURCES, st.integers(-5, 600), st.sampled_from(["", "payments", "reading rows"]))
def test_excerpts_keep_to_the_budget_and_repeat_themselves(
    index: ArchiveIndex, resources: list[str], budget: int, words: str
) -> None:
    first = index.excerpts(resources, budget, words)
    assert sum(size(e.text) for e in first) <= max(budget, 0)
    assert all(e.text for e in first)
    assert index.excerpts(resources, budget, words) == first


NAMES = st.sampled_from(["a.md", "b.md", "sub/c.md", "sub/.d/e.md", "f.txt"])
WORDS = st.text(alphabet=string.ascii_lowercase[:4] + " #\n`/.", max_size=60)
EDITS = st.lists(st.tuples(NAMES, st.one_of(st.none(), WORDS)), max_size=8)


@settings(max_examples=40, deadline=None)
@given(st.lists(EDITS, min_size=1, max_size=3))
def test_a_refreshed_index_equals_a_fresh_one(
    tmp_path_factory: pytest.TempPathFactory, rounds: list[list[tuple[str, str | None]]]
) -> None:
    root = tmp_path_factory.mktemp("archive")
    kept = ArchiveIndex(root / "kept.sqlite", root)
    stamp = 1_700_000_000
    for edits in rounds:
        for name, text in edits:
            path = root / "context_archive" / name
            if text is None:
                path.unlink(missing_ok=True)
            else:
                write(root, {name: text})
                stamp += 1  # each edit has its own time, as on a disk with fine timestamps
                os.utime(path, (stamp, stamp))
        kept.refresh()
    fresh = ArchiveIndex(root / "fresh.sqlite", root)
    fresh.refresh()
    for query in ("a", "b c", "d"):
        assert kept.search(query, 50) == fresh.search(query, 50)
    for resource in ("a/b", "a.b", "c/", "b/*"):
        assert kept.excerpts([resource], 900, "a b") == fresh.excerpts([resource], 900, "a b")
    kept.close()
    fresh.close()
