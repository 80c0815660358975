"""The kinds of event: what happened, with all that is needed to make the state again from it.

An event is a fact; it holds no rule. `coordinator.store.projections` says what each one does to
the state tables; nothing else may change them.
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
    ClaimWaits,
    RippleLeft,
    SetAside,
    TakenUp,
    TaskAdded,
    TaskAvoids,
    TaskChanged,
    TaskEdited,
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
)
from coordinator.store.events.messages import (
    MessageSent,
    MessagesForgotten,
    MessagesSeen,
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
from coordinator.store.events.signals import SignalLeft, SignalsFaded
from coordinator.store.events.state import (
    ChangeAsked,
    ChangeMoved,
    ChangesForgotten,
    KeyWritten,
)
from coordinator.store.events.steps import StepAdded, StepMoved, StepsForgotten
from coordinator.store.events.story import (
    CountersRaised,
    LandingBegun,
    LandingQueued,
    Noted,
    TargetMoved,
    UnleasedWrite,
    VersionsSeen,
)
from coordinator.store.events.verification import (
    VerificationBegun,
    VerificationEnded,
    VerifiedFrom,
    WorkFinished,
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
from coordinator.store.events.writes import WriteLost, WriteStood

__all__ = [
    "ANY",
    "KIND_OF",
    "SUBJECT_OF",
    "AcquisitionRefused",
    "AgentHooked",
    "AgentRegistered",
    "AgentRests",
    "AgentSeen",
    "AgentState",
    "CandidateJudged",
    "ChangeAsked",
    "ChangeMoved",
    "ChangesForgotten",
    "ClaimRenewed",
    "ClaimWaits",
    "ContentRead",
    "CountersRaised",
    "EditsKept",
    "Event",
    "FlaggedFile",
    "GivesWay",
    "KeyWritten",
    "LandingBegun",
    "LandingQueued",
    "LeaseAgreed",
    "LeaseGranted",
    "LeaseLapsed",
    "LeaseMoved",
    "LeasePlaced",
    "LeaseReleased",
    "LeaseRenewed",
    "LeaseWarned",
    "LeasesShifted",
    "MessageSent",
    "MessagesForgotten",
    "MessagesSeen",
    "Noted",
    "NoticePosted",
    "NoticesDelivered",
    "ReviewDecided",
    "ReviewOpened",
    "ReviewPart",
    "ReviewSplit",
    "ReviewUndone",
    "RippleLeft",
    "SetAside",
    "SignalLeft",
    "SignalsFaded",
    "StepAdded",
    "StepMoved",
    "StepsForgotten",
    "Subject",
    "TakenUp",
    "TargetMoved",
    "TaskAdded",
    "TaskAvoids",
    "TaskChanged",
    "TaskEdited",
    "TaskResourcesLearned",
    "UnleasedWrite",
    "UnlockAnswered",
    "UnlockAsked",
    "UnlockPassed",
    "VerdictBegun",
    "VerdictEnded",
    "VerdictStep",
    "VerdictStepped",
    "VerificationBegun",
    "VerificationEnded",
    "VerifiedFrom",
    "VersionsSeen",
    "WaiterChanged",
    "WaiterLeft",
    "WaiterQueued",
    "WorkFinished",
    "WriteLost",
    "WriteStood",
]

#: Reads an event of any class, by its tag.
ANY: msgspec.json.Decoder[Any] = msgspec.json.Decoder(reduce(or_, Event.__subclasses__()))


#: The tag under which events of a class stand in the log.
KIND_OF = {kind: str(kind.__struct_config__.tag) for kind in Event.__subclasses__()}

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
