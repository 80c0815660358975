"""A file with a colon in its name is that file where it is there."""

from __future__ import annotations

import pytest

from coordinator import Client, Code, Refusal
from tests.conftest import Repo


def test_a_file_with_a_colon_is_that_file_where_it_is_there(repo: Repo) -> None:
    repo.write("a:b.txt", "x")
    repo.write("d/c:d", "x")
    with Client(repo.root, agent="ann") as ann, Client(repo.root, agent="bob") as bob:
        got = ann.acquire("a:b.txt", "d/c:d", ":/d/c:d", "b:c.txt", "key:d:e.txt", reentrant=True)
        assert {lease.resource: lease.kind for lease in got.leases} == {"a:b.txt": "file", "d/c:d": "file", "b:c.txt": "key", "key:d:e.txt": "key"}
        assert "a:b.txt is the file of that name. The key is `key:a:b.txt`." in got.warnings
        for spelling in ("./a:b.txt", str(repo.root / "a:b.txt"), "a:b.txt"):
            with pytest.raises(Refusal) as refused:
                bob.acquire(spelling, retry=False)
            assert refused.value.code is Code.LOCKED
        assert [lease.kind for lease in bob.acquire("key:a:b.txt").leases] == ["key"]
        (repo.root / "a:b.txt").unlink()
        assert [lease.resource for lease in ann.release("a:b.txt").released] == ["a:b.txt"]
        with ann.lease("b:x.txt"):
            repo.write("b:x.txt", "made in the meantime")
        assert [lease.resource for lease in ann.locks().items if lease.resource == "b:x.txt"] == []
