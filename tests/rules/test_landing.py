"""The merge boundary's decision, hammered: it is held against a slow, plain reading of the rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from coordinator.rules import landing as rule
from coordinator.rules.landing import Change, Facts, Right
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import Resource, path_scope, resource

NOW = "2026-11-21T12:00:00.000Z"
EARLIER, LATER = "2026-11-21T11:59:59.999Z", "2026-11-21T12:00:00.001Z"
PATHS = ["a", "a/b", "a/b/c", "ab", "d/e.py", "d/f.py", "d/e.pyc", ".coord/x", "x/.git/y"]


def change(path: str, submodule: bool = False, regions: list[str] | None = None, merged: bool = False) -> Change:
    names = regions if regions and path.endswith(".py") else []
    return Change(path, path_scope(path), submodule,
                  tuple(resource(f"{path}::{name}", "region").scope for name in names), merged)


paths = st.sampled_from(PATHS)
resources = st.one_of(
    st.builds(resource, paths, st.just("file")),
    st.builds(resource, st.sampled_from(["a", "d", ""]), st.just("dir")),
    st.builds(resource, st.sampled_from(["d/*.py", "a/**", "**/c"]), st.just("glob")),
    st.builds(resource, st.sampled_from(["d/e.py::X", "d/e.py::X.m", "d/e.py::Y", "d/f.py::<header>", "a::<header>"]),
              st.just("region")),
    st.builds(resource, st.just("key:a"), st.just("key")),
)
rights = st.builds(
    Right, st.integers(1, 6), resources, st.sampled_from(["exclusive", "exclusive", "shared"]),
    st.sampled_from([EARLIER, NOW, LATER, LATER]),
)
facts = st.builds(
    Facts, agent=st.just("me"), task=st.just("T-1"), target=st.just("main"), now=st.just(NOW),
    changes=st.lists(st.builds(change, paths, st.sampled_from([False] * 7 + [True]),
                               st.lists(st.sampled_from(["X", "X.m", "X.n", "Y", "YY"]), max_size=2), st.booleans()), max_size=4,
                     unique_by=lambda c: c.path),
    leases=st.lists(rights, max_size=5, unique_by=lambda r: r.fencing_token),
    began_with=st.lists(st.tuples(st.integers(1, 6), resources), max_size=3),
    moved=st.lists(paths.map(path_scope), max_size=2),
    dirty=st.one_of(st.just([]), st.just([]), st.lists(paths, max_size=1)),
)


def within(path: str, one: Resource) -> bool:
    """Whether a path lies in a resource, read off its name."""
    if one.kind == "file":
        return path == one.name or path.startswith(one.name + "/")
    if one.kind == "dir":
        return one.name == "./" or (path + "/").startswith(one.name)  # the directory itself, too
    known = {"d/*.py": {"d/e.py", "d/f.py"}, "a/**": {"a/b", "a/b/c"}, "**/c": {"a/b/c"}}
    return one.kind == "glob" and path in known[one.name]


def parts(one: Change) -> list[str]:
    return [scope.rpartition("::")[2].rstrip("/").replace("/", ".") for scope in one.regions]


def within_region(path: str, part: str, one: Resource) -> bool:
    """Whether a region of a path lies in a region's resource, read off its name."""
    file, _, held = one.name.partition("::")
    return one.kind == "region" and file == path and (held == "<header>" or part == held or part.startswith(held + "."))


def rights_of(given: Facts, lies: Callable[[Resource], bool]) -> Code | None:
    """Whether there is a right to what lies in these resources; the refusal."""
    mine = [r for r in given.leases if r.mode == "exclusive" and lies(r.resource)]
    live = {r.fencing_token for r in mine if r.expires_at > NOW}
    begun = {token for token, r in given.began_with if lies(r)}
    if not mine and not begun:
        return Code.NOT_HOLDER
    return Code.STALE_TOKEN if not live or (begun and not begun & live) else None


def expected(given: Facts) -> Code | None:
    """The rule once more, without a thought for speed."""
    codes = []
    for one in given.changes:
        if ".git" in one.path.split("/") or one.path.startswith(".coord/"):
            codes.append(Code.INVALID)
        if one.submodule:
            codes.append(Code.OUTSIDE_REPO)
        code = rights_of(given, lambda r, one=one: within(one.path, r))  # type: ignore[misc]
        by_part = {rights_of(given, lambda r, one=one, part=part: within_region(one.path, part, r))  # type: ignore[misc]
                   for part in parts(one)}
        if code is not None and by_part and Code.NOT_HOLDER not in by_part:
            code = Code.STALE_TOKEN if Code.STALE_TOKEN in by_part else None
        if code is not None:
            codes.append(code)
        for moved in given.moved if not one.merged else ():
            other = moved[2:-1]
            if (one.path + "/").startswith(other + "/") or (other + "/").startswith(one.path + "/"):
                codes.append(Code.VERSION_CHANGED)
    if given.dirty:
        codes.append(Code.VERSION_CHANGED)
    order = list(Code)
    return min(codes, key=order.index, default=None)


@given(facts)
def test_it_decides_as_the_plain_reading_does(given: Facts) -> None:
    answer = rule.decide(given)
    assert (answer.code if isinstance(answer, Refusal) else None) == expected(given)


@given(facts)
def test_a_refusal_names_paths_and_tokens_are_live(given: Facts) -> None:
    answer = rule.decide(given)
    if isinstance(answer, Refusal):
        assert answer.facts["paths"] and "Nothing of it landed" in answer.message
        assert set(answer.facts["paths"]) <= {c.path for c in given.changes} | set(given.dirty)
        return
    live = {r.fencing_token: r for r in given.leases if r.expires_at > given.now}
    assert set(answer) <= set(live)
    for one in given.changes:
        assert any(within(one.path, live[token].resource) for token in answer) or (one.regions and all(
            any(within_region(one.path, part, live[token].resource) for token in answer) for part in parts(one)))


def test_of_a_file_that_is_leased_in_parts_the_other_parts_are_named() -> None:
    lease = Right(1, resource("d/e.py::X.m", "region"), "exclusive", LATER)
    given = Facts(agent="me", task="T-1", target="main", now=NOW, changes=[change("d/e.py", regions=["X.m", "X.n", "YY"]), change("b")], leases=[lease])
    refusal = rule.decide(given)
    assert isinstance(refusal, Refusal) and "d/e.py::X.n, d/e.py::YY, b are not leased to me" in refusal.message
    assert refusal.facts["paths"] == ["d/e.py", "b"]


@given(facts, st.data())
def test_more_to_land_or_less_right_never_helps(given: Facts, data: st.DataObject) -> None:
    """Time passing, a lease gone, another path, another move, something dirty: no `no` becomes yes."""
    worse = data.draw(st.sampled_from(["time", "lease", "change", "moved", "dirty", "tokens"]))
    if worse == "time":
        after = replace(given, now=LATER)
    elif worse == "lease":
        after = replace(given, leases=given.leases[1:])
    elif worse == "change":
        after = replace(given, changes=[*given.changes, change(data.draw(paths))])
    elif worse == "moved":
        after = replace(given, moved=[*given.moved, path_scope(data.draw(paths))])
    elif worse == "dirty":
        after = replace(given, dirty=[*given.dirty, "a"])
    else:
        after = replace(given, leases=[replace(r, fencing_token=r.fencing_token + 10)
                                       for r in given.leases])
    if isinstance(rule.decide(given), Refusal) and worse != "tokens":
        assert isinstance(rule.decide(after), Refusal)
    elif worse == "tokens" and any(
        within(c.path, r) and not c.regions for c in given.changes for _, r in given.began_with
    ):
        assert isinstance(rule.decide(after), Refusal)  # other leases than it began with


def test_what_moved_above_or_below_a_path_counts() -> None:
    """A file that became a directory on the target, or the other way round."""
    moved = [path_scope(path) for path in ("a/b/c", "d", "ab")]
    for path, unseen in (("a", True), ("a/b", True), ("a/b/c", True), ("a/b/c/x", True),
                         ("d/e.py", True), ("d", True), ("a/bb", False), ("abc", False),
                         ("a/b/d", False), ("e", False)):
        assert rule.unseen([change(path)], moved) == ([path] if unseen else []), path


def test_the_instant_of_expiry_is_too_late() -> None:
    lease = Right(1, resource("a", "file"), "exclusive", NOW)
    given = Facts(agent="me", task="T-1", target="main", now=EARLIER, changes=[change("a")],
                  leases=[lease])
    assert rule.decide(given) == (1,)
    late = rule.decide(replace(given, now=NOW))
    assert isinstance(late, Refusal) and late.code is Code.STALE_TOKEN


def test_who_holds_an_unleased_path_is_said() -> None:
    given = Facts(agent="me", task="T-1", target="main", now=NOW, changes=[change("a")], leases=[],
                  others={"a": "you"})
    answer = rule.decide(given)
    assert isinstance(answer, Refusal) and answer.code is Code.NOT_HOLDER
    assert "a is not leased to me (held: a by you)" in answer.message


def test_case_is_folded_as_the_disk_folds_it() -> None:
    lease = Right(1, resource("Src/A.py", "file", fold_case=True), "exclusive", LATER)
    typed = Change("src/a.PY", path_scope("src/a.PY", True))
    given = Facts(agent="me", task="T-1", target="main", now=NOW, changes=[typed], leases=[lease])
    assert rule.decide(given) == (1,)
    moved = rule.decide(replace(given, moved=[path_scope("SRC/a.py", True)]))
    assert isinstance(moved, Refusal) and moved.code is Code.VERSION_CHANGED
