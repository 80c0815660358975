"""The kinds of event: what happened, and what each does to the state tables.

An event is a fact; it holds no rule, reads no clock and refuses nothing. Its `apply` is the only
code that changes the state: applying the whole log to an empty database gives the state, because
the daemon itself makes its state by no other way (`Tx.record`). The kernel's events are modules of
this folder; a slice has its own in `slices/NAME/events.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import attrgetter, or_
from typing import Any

import msgspec

from coordinator.store.events.agents import (
    AgentHooked,
    AgentRegistered,
    AgentRests,
    AgentSeen,
    AgentState,
    ContentRead,
    EditsKept,
    NoticePosted,
    NoticesDelivered,
)
from coordinator.store.events.backlog import (
    CandidateJudged,
    ClaimRenewed,
    RippleLeft,
    SetAside,
    TakenUp,
    TaskChanged,
    TaskResourcesLearned,
)
from coordinator.store.events.base import Event
from coordinator.store.events.leases import (
    LeaseAgreed,
    LeaseGranted,
    LeaseLapsed,
    LeaseMoved,
    LeasePlaced,
    LeaseReleased,
    LeaseRenewed,
    LeasesShifted,
    LeaseWarned,
    WriteLost,
    WriteStood,
)
from coordinator.store.events.reviews import (
    FlaggedFile,
    ReviewDecided,
    ReviewOpened,
    ReviewPart,
    ReviewSplit,
    ReviewUndone,
    VerdictBegun,
    VerdictEnded,
    VerdictStep,
    VerdictStepped,
)
from coordinator.store.events.steps import (
    CountersRaised,
    Noted,
    StepAdded,
    StepMoved,
    StepsForgotten,
    VersionsSeen,
)
from coordinator.store.events.waiting import (
    AcquisitionRefused,
    GivesWay,
    UnlockAnswered,
    UnlockAsked,
    UnlockPassed,
    WaiterChanged,
    WaiterLeft,
    WaiterQueued,
)
from coordinator.words.slices import import_parts

__all__ = [
    "ANY", "KIND_OF", "SENTENCES", "SUBJECT_OF", "AcquisitionRefused", "AgentHooked",
    "AgentRegistered", "AgentRests", "AgentSeen", "AgentState", "CandidateJudged",
    "ClaimRenewed", "ContentRead", "CountersRaised", "EditsKept", "Event", "FlaggedFile",
    "GivesWay", "LeaseAgreed", "LeaseGranted", "LeaseLapsed", "LeaseMoved", "LeasePlaced",
    "LeaseReleased", "LeaseRenewed", "LeaseWarned", "LeasesShifted", "Noted", "NoticePosted",
    "NoticesDelivered", "ReviewDecided", "ReviewOpened", "ReviewPart", "ReviewSplit",
    "ReviewUndone", "RippleLeft", "SetAside", "StepAdded", "StepMoved", "StepsForgotten",
    "Subject", "TakenUp", "TaskChanged", "TaskResourcesLearned", "UnlockAnswered",
    "UnlockAsked", "UnlockPassed", "VerdictBegun", "VerdictEnded", "VerdictStep",
    "VerdictStepped", "VersionsSeen", "WaiterChanged", "WaiterLeft", "WaiterQueued",
    "WriteLost", "WriteStood",
]

for _ in import_parts("events"):
    pass  # each has declared its events

#: Reads an event of any class, by its tag.
ANY: msgspec.json.Decoder[Any] = msgspec.json.Decoder(reduce(or_, Event.__subclasses__()))


#: The tag of a class of events in the log.
KIND_OF = {kind: str(kind.__struct_config__.tag) for kind in Event.__subclasses__()}

#: Sentences that tell of events, by their kind.
SENTENCES = {kind: event.SENTENCE for event, kind in KIND_OF.items()}
#: (agent, task, resource) of an event, as far as it has them.
Subject = tuple[str | None, str | None, str | None]


def _subject(event: Event) -> Subject:
    resource = getattr(event, "resource", None)
    if isinstance(event, AcquisitionRefused) and event.resources:
        resource = event.resources[0]
    return getattr(event, "agent", None), getattr(event, "task", None), resource


_INDEXED = ("agent", "task", "resource")
#: How to find the subject of events of a class; in C where they have all of it.
SUBJECT_OF: dict[type[Event], Callable[[Event], Subject]] = {
    kind: attrgetter(*_INDEXED) if {*_INDEXED} <= {*kind.__struct_fields__} else _subject
    for kind in KIND_OF
}
