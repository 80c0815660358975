"""An index that was kept up to date is the one that would be made anew; it is a cache, and bounded."""

from __future__ import annotations

import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.meaning.file_facts import facts_of
from coordinator.meaning.index import Index, module_of
from coordinator.meaning.judging import judge
from coordinator.meaning.reading import read
from tests.effort import examples
from tests.meaning.sources import MODULES, sources

PATHS = [*(f"pkg/{name}.py" for name in MODULES), "pkg/__init__.py", "use.py"]


def content(index: Index) -> Any:
    """All that it can be asked."""
    db = index._db
    return (
        sorted(db.execute("SELECT path, module FROM files")),
        {path: msgspec.msgpack.encode(index.facts(path)) for path in index.paths()},
        sorted(db.execute("SELECT n.name, n.role, f.path FROM names n LEFT JOIN files f ON f.id = n.file")),
    )


edits = st.lists(st.tuples(st.sampled_from(PATHS), st.none() | sources()), min_size=1, max_size=8)


@settings(max_examples=examples(20))
@given(edits)
def test_kept_up_to_date_is_as_made_anew(changes: list[tuple[str, str | None]]) -> None:
    kept = Index(":memory:")
    last: dict[str, str] = {}
    for path, text in changes:
        kept.facts(path)  # what was looked at before is not remembered wrongly
        if text is None:
            kept.drop(path)
            last.pop(path, None)
        else:
            kept.put(path, b"", read(text.encode()))
            last[path] = text
    with Index(":memory:") as anew:
        for path, text in sorted(last.items()):
            anew.put(path, b"", read(text.encode()))
        assert content(kept) == content(anew)
        old = last.get("pkg/one.py")
        for new in (None, b"", b"class Delta: pass\n"):
            asked = ("pkg/one.py", old.encode() if old is not None else None, new)
            assert judge(kept, *asked) == judge(anew, *asked)
    kept.close()


def test_it_outlives_its_process_and_what_is_no_index_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "meaning.sqlite3"
    with Index(file) as index:
        index.put("a.py", b"x", read(b"def f(): pass\n"), "7")
        before = content(index)
    with Index(file) as index:
        assert content(index) == before and index.known("a.py") == (b"x", "7")
    file.write_bytes(b"no database at all, but long enough to be looked at" * 100)
    with Index(file) as index:
        assert index.paths() == []
        index.put("a.py", b"x", read(b""))
    with sqlite3.connect(file) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    with Index(file) as index:
        assert index.paths() == []


def test_two_processes_keep_one_index(tmp_path: Path) -> None:
    """The coordinator's and a command's: each reads what is known, and then writes."""
    failed: list[BaseException] = []

    def keep(who: str) -> None:
        try:
            with Index(tmp_path / "i") as index:
                for n in range(60):
                    with index.batch():
                        index.known(f"{n % 7}.py")
                        time.sleep(0.001)
                        index.put(f"{n % 7}.py", f"{who}{n}".encode(), facts_of("a.py", b"def f(): pass\n"))
                    index.drop(f"{n % 5}.py")
        except BaseException as bad:
            failed.append(bad)

    both = [threading.Thread(target=keep, args=(who,)) for who in "ab"]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert failed == []


def test_a_file_costs_only_its_own_rows() -> None:
    with Index(":memory:") as index:
        for number in range(40):
            index.put(f"m{number}.py", b"", read(f"def f{number}(): shared()\n".encode()))
        before = index._db.total_changes()
        index.put("m7.py", b"", read(b"def f7(): shared()\n"))
        assert index._db.total_changes() - before <= 2 * (1 + 3)
        assert index.files_with("shared", "u", 10) == sorted(index.files_with("shared", "u", 10))
        assert len(index.files_with("shared", "u", 10)) == 10 and len(index.files_with("shared", "u", 99)) == 40


@pytest.mark.parametrize(("path", "name"), [
    ("a/b.py", "b.a"), ("a/__init__.py", "a"), ("__init__.py", "__init__"), ("x.pyi", "x"),
])
def test_names_of_modules(path: str, name: str) -> None:
    assert module_of(path) == name
