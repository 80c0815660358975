"""What is read-only where, against the rule said plainly."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from coordinator.namespaces.plan import Plan

PATHS = ["/r/a", "/r/d", "/r/d/x", "/r/d/e", "/r/d/e/y", "/r/dd", "/s/a", "/s"]
AGENTS = ["ann", "bob", "cyd"]
held = st.dictionaries(st.sampled_from(PATHS), st.frozensets(st.sampled_from(AGENTS)))


@given(held, held, st.dictionaries(st.sampled_from(["R", "S"]), st.sampled_from(AGENTS)), st.data())
def test_covered_are_exactly_the_paths_that_others_hold(
    one: dict[str, frozenset[str]], two: dict[str, frozenset[str]], agents: dict[str, str], data: st.DataObject,
) -> None:
    plan = Plan()
    plan.replace("R", one)
    plan.replace("S", two)
    changed: dict[str, frozenset[str] | None] = data.draw(
        st.dictionaries(st.sampled_from(PATHS), st.none() | st.frozensets(st.sampled_from(AGENTS))))
    assert plan.change("R", changed) == set(changed)
    now = {path: who for path, who in (one | changed).items() if who is not None}

    def kept_out(path: str) -> bool:
        return ((path in now and agents.get("R") not in now[path])
                or (path in two and agents.get("S") not in two[path]))

    def lies_in(path: str, up: str) -> bool:
        return path == up or path.startswith(up + "/")

    own = data.draw(st.sets(st.sampled_from([path for path in PATHS if not kept_out(path)] or ["/t"]), max_size=2))
    mounted = {path for path in PATHS if plan.is_read_only(path, agents, own)}

    def reaches(path: str, up: str) -> bool:
        """Whether what covers `up` covers a path: nothing of the session's own lies between them."""
        return lies_in(path, up) and not any(one != up and lies_in(one, up) and lies_in(path, one) for one in own)

    covered = {path for path in PATHS if any(reaches(path, one) for one in mounted)}
    assert covered == {path for path in PATHS if any(kept_out(up) and reaches(path, up) for up in PATHS)}
    assert not any(a != b and reaches(a, b) for a in mounted for b in mounted), "each once"


@given(held, held)
def test_what_is_different_is_told(one: dict[str, frozenset[str]], two: dict[str, frozenset[str]]) -> None:
    plan = Plan()
    plan.replace("R", one)
    assert plan.replace("R", two) == {path for path in PATHS if one.get(path) != two.get(path)}
    assert set(plan.paths()) == set(two)
    wide = set(PATHS[:2])
    assert plan.below(wide) == wide | {p for p in two if any(p.startswith(up + "/") for up in wide)}
