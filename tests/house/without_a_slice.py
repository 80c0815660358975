"""What the kernel promises, and what each slice can be asked, tried in a program that lacks one of its slices."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec

import coordinator
from benchmarks.measuring.inside import Inside
from coordinator.operations.listing import OPERATIONS, SLICES
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal

NEVER_STARTED = {"coordinators", "health"}  # a daemon's
MINUTE_MS = 60_000


def refuse(place: Inside, request: rq.Request[Any]) -> Refusal:
    try:
        place.serve(request)
    except Refusal as refusal:
        return refusal
    raise AssertionError(f"{request} was not refused")


def try_the_kernel(place: Inside, root: Path) -> None:
    (root / "a.py").write_text("a = 1\n")
    (root / "b.py").write_text("b = 1\n")
    lease = place.serve(rq.Acquire(agent="ann", resources=["a.py"])).leases[0]
    locked = refuse(place, rq.Acquire(agent="bob", resources=["a.py", "b.py"]))
    assert locked.code is Code.LOCKED and locked.facts["conflicts"][0]["holder"] == "ann"
    assert not place.serve(rq.Locks(resource="b.py")).items, "all or nothing"
    assert refuse(place, rq.Release(agent="bob", resources=["a.py"])).code is Code.NOT_HOLDER
    place.serve(rq.Release(agent="ann", resources=["a.py"], lease_token=lease.lease_token))
    held = {item.resource: item for item in place.serve(rq.Locks()).items}
    assert {name: item.locked_by for name, item in held.items()} == {"a.py": "bob", "b.py": "bob"}
    assert min(item.fencing_token for item in held.values()) > lease.fencing_token
    (root / "a.py").write_text("a = 2\n")
    place.now_ms += 500 * MINUTE_MS
    swept = place.serve(rq.Sweep())
    assert len(swept.lapsed) == 2 and len(swept.reviews) == 1, "partial work is flagged, whoever shows it"
    assert place.db.execute("SELECT state FROM reviews").get == "open"
    assert (root / "a.py").read_text() == "a = 2\n", "and never reverted by coord itself"


def try_the_slices(place: Inside) -> int:
    """Ask all that can be asked without a subject; how much that was."""
    asked = 0
    for name, operation in OPERATIONS.items():
        fields = msgspec.structs.fields(operation.request)
        if operation.use_case is None or operation.writes or name in NEVER_STARTED or any(f.required for f in fields):
            continue
        place.serve(operation.request())
        asked += 1
    return asked


def main(name: str, root: Path) -> None:
    assert Path(coordinator.__file__).parent.parent == Path.cwd(), "the copy is what is tried"
    place = Inside(root)
    try_the_kernel(place, root)
    asked = try_the_slices(place)
    assert asked > 8, asked
    print(f"without {name}: {len(SLICES)} slices, {asked} readings")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
