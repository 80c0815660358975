"""Who could write lately is found by name, and is what a search through all of the ends gives."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from coordinator.rules.globs import overlaps
from coordinator.slices.guard.ended_rights import EndedLease, EndedRights
from coordinator.words.resource_names import Kind, Resource, kind_of, resource

_PARTS = st.sampled_from(["a", "b", "a.py", "b.py"])
_PATHS = st.lists(_PARTS, min_size=1, max_size=3).map("/".join)
_NAMES = st.one_of(
    _PATHS, _PATHS.map("{}/".format), st.just("./"), _PATHS.map("{}::A".format),
    _PATHS.map("{}::A.b".format), st.just("[a].py"), st.sampled_from(["*.py", "a/*", "**/b.py", "a/**", "key:a:b"]),
)


def meant(name: str) -> Resource:
    kind: Kind = "file" if name == "[a].py" else kind_of(name)
    return resource(name.removeprefix("./") if kind == "dir" else name, kind)


@given(st.lists(_NAMES, max_size=12), _PATHS | st.just("[a].py"))
def test_the_last_end_is_the_last_that_overlaps(ended: list[str], path: str) -> None:
    rights = EndedRights()
    for seq, name in enumerate(ended):
        rights.note(str(seq), seq, f"agent{seq}", name, EndedLease(meant(name).scope, meant(name).kind))
    asked = resource(path, "file")
    last = next((seq for seq, name in reversed([*enumerate(ended)])
                 if overlaps(asked, meant(name))), None)
    found = rights.last_overlapping(asked)
    assert (found.seq if found else None) == last
