"""What can be asked of the coordinator and what it answers: one shape each, for every door.

A `Request[R]` names its operation, whether it writes, and its HTTP method and path; `R` is the
shape of its reply. Unknown fields and wrong types are refused by the decoder (INVALID). Durations
are seconds (`*_s`), instants UTC ISO-8601 text, sizes bytes. No rule lives here.

Each of the rooms below is read in when one of its shapes is asked for: a command needs a few of
them, and all take a third of its time.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from coordinator.words.requests.agents import (
        AgentList as AgentList,
        AgentOfProcess as AgentOfProcess,
        AgentRow as AgentRow,
        Agents as Agents,
        Alive as Alive,
        Heartbeat as Heartbeat,
        Join as Join,
        JoinSession as JoinSession,
        Joined as Joined,
        Leave as Leave,
        Left as Left,
        LimitReached as LimitReached,
        Limited as Limited,
        Notice as Notice,
        OpenSession as OpenSession,
        ProcessesAgent as ProcessesAgent,
        Register as Register,
        Registered as Registered,
        SessionJoined as SessionJoined,
        SessionOpened as SessionOpened,
    )
    from coordinator.words.requests.archive import (
        ArchiveIndexNow as ArchiveIndexNow,
        ArchiveSearch as ArchiveSearch,
        ArchiveSection as ArchiveSection,
        ArchiveShow as ArchiveShow,
        Hit as Hit,
        HitList as HitList,
        Indexed as Indexed,
    )
    from coordinator.words.requests.backlog import (
        Candidate as Candidate,
        CandidateRegion as CandidateRegion,
        Claimed as Claimed,
        Exported as Exported,
        Imported as Imported,
        Judged as Judged,
        Partial as Partial,
        TASK_STATES as TASK_STATES,
        Task as Task,
        TaskAdd as TaskAdd,
        TaskCancel as TaskCancel,
        TaskClaim as TaskClaim,
        TaskDone as TaskDone,
        TaskEdit as TaskEdit,
        TaskExport as TaskExport,
        TaskFail as TaskFail,
        TaskImport as TaskImport,
        TaskLink as TaskLink,
        TaskOrder as TaskOrder,
        TaskList as TaskList,
        TaskOutcome as TaskOutcome,
        TaskRetry as TaskRetry,
        TaskShow as TaskShow,
        TaskShown as TaskShown,
        Tasks as Tasks,
        Unlanded as Unlanded,
    )
    from coordinator.words.requests.base import (
        Mode as Mode,
        Reply as Reply,
        Request as Request,
        Verdict as Verdict,
    )
    from coordinator.words.requests.guard import (
        GitTurn as GitTurn,
        GitTurnTaken as GitTurnTaken,
        GuardCheck as GuardCheck,
        GuardHeld as GuardHeld,
        GuardHeldList as GuardHeldList,
        GuardOverride as GuardOverride,
    )
    from coordinator.words.requests.landing import (
        Land as Land,
        LandBack as LandBack,
        LandChange as LandChange,
        LandCheck as LandCheck,
        LandQueue as LandQueue,
        LandRight as LandRight,
        Landed as Landed,
        Landing as Landing,
        LandingList as LandingList,
        Landings as Landings,
        Lawful as Lawful,
        TaskWorktree as TaskWorktree,
        WorkedIn as WorkedIn,
    )
    from coordinator.words.requests.health import (
        Aside as Aside,
        Compact as Compact,
        Compacted as Compacted,
        Coordinator as Coordinator,
        CoordinatorList as CoordinatorList,
        Coordinators as Coordinators,
        Health as Health,
        HealthReply as HealthReply,
        Shutdown as Shutdown,
        Stopping as Stopping,
    )
    from coordinator.words.requests.leases import (
        Acquire as Acquire,
        Acquired as Acquired,
        ChangedSince as ChangedSince,
        Lease as Lease,
        LeaseFolder as LeaseFolder,
        LeaseOrder as LeaseOrder,
        LockList as LockList,
        Locks as Locks,
        Release as Release,
        Released as Released,
        Renew as Renew,
        Renewed as Renewed,
        Replaced as Replaced,
        Waiter as Waiter,
        Withdraw as Withdraw,
        Withdrawn as Withdrawn,
    )
    from coordinator.words.requests.logs import (
        TaskLog as TaskLog,
        TaskLogLines as TaskLogLines,
    )
    from coordinator.words.requests.messages import (
        Message as Message,
        MessageList as MessageList,
        MessageSend as MessageSend,
        MessageTold as MessageTold,
        Messages as Messages,
        MessagesSee as MessagesSee,
        MessagesSeen as MessagesSeen,
    )
    from coordinator.words.requests.negotiation import (
        RequestAnswer as RequestAnswer,
        RequestFile as RequestFile,
        RequestWithdraw as RequestWithdraw,
        Requests as Requests,
        Unlock as Unlock,
        UnlockAnswered as UnlockAnswered,
        UnlockList as UnlockList,
        UnlockVerdict as UnlockVerdict,
    )
    from coordinator.words.requests.pages import (
        PageOpen as PageOpen,
        PageOpened as PageOpened,
    )
    from coordinator.words.requests.proposals import (
        LostWrite as LostWrite,
        LostWriteList as LostWriteList,
        LostWrites as LostWrites,
        ProposalApplied as ProposalApplied,
        Propose as Propose,
        Proposed as Proposed,
        ProposedChange as ProposedChange,
    )
    from coordinator.words.requests.regions import (
        CommitRegion as CommitRegion,
        CommittedRegion as CommittedRegion,
        RegionText as RegionText,
        RegionsCommitted as RegionsCommitted,
    )
    from coordinator.words.requests.report import (
        AgentsPart as AgentsPart,
        HotFile as HotFile,
        RefusedCount as RefusedCount,
        Report as Report,
        ReportReply as ReportReply,
        WaitedFor as WaitedFor,
    )
    from coordinator.words.requests.reviews import (
        Hunk as Hunk,
        HunkList as HunkList,
        Review as Review,
        ReviewDecide as ReviewDecide,
        ReviewFile as ReviewFile,
        ReviewHunks as ReviewHunks,
        ReviewList as ReviewList,
        ReviewShow as ReviewShow,
        ReviewUndo as ReviewUndo,
        Reviews as Reviews,
        Sweep as Sweep,
        Swept as Swept,
    )
    from coordinator.words.requests.signals import (
        Signal as Signal,
        SignalAdd as SignalAdd,
        SignalList as SignalList,
        Signals as Signals,
    )
    from coordinator.words.requests.state import (
        Change as Change,
        ChangeAdd as ChangeAdd,
        ChangeDone as ChangeDone,
        ChangeFail as ChangeFail,
        ChangeGiven as ChangeGiven,
        ChangeList as ChangeList,
        ChangeNext as ChangeNext,
        ChangeShow as ChangeShow,
        Changes as Changes,
        StateDelete as StateDelete,
        StateGet as StateGet,
        StateHistory as StateHistory,
        StateKeys as StateKeys,
        StateList as StateList,
        StatePatch as StatePatch,
        StatePut as StatePut,
        StateValue as StateValue,
        StateWatch as StateWatch,
        StateWatched as StateWatched,
    )
    from coordinator.words.requests.steps import (
        Dead as Dead,
        DeadDrop as DeadDrop,
        DeadLetter as DeadLetter,
        DeadList as DeadList,
        DeadRetry as DeadRetry,
        DeadShow as DeadShow,
        Step as Step,
        StepAdd as StepAdd,
        StepDone as StepDone,
        StepFail as StepFail,
        StepList as StepList,
        StepNext as StepNext,
        Steps as Steps,
    )
    from coordinator.words.requests.story import (
        EventList as EventList,
        EventRow as EventRow,
        Events as Events,
        Explain as Explain,
        Replay as Replay,
        ReplayResult as ReplayResult,
        Status as Status,
        StatusReply as StatusReply,
        Story as Story,
    )
    from coordinator.words.requests.timeline import (
        Demand as Demand,
        Moment as Moment,
        MomentReply as MomentReply,
        Span as Span,
        SpanKind as SpanKind,
        Timeline as Timeline,
        TimelineReply as TimelineReply,
    )
    from coordinator.words.requests.verification import (
        FinishedWork as FinishedWork,
        Verification as Verification,
        VerificationList as VerificationList,
        Verifications as Verifications,
        Verify as Verify,
    )
    from coordinator.words.requests.work import (
        Work as Work,
        WorkFile as WorkFile,
        WorkList as WorkList,
    )

#: Room -> the names that it has. (Type checkers read the imports above; a test holds both
#: together.)
ROOMS = {
    "agents":
        "AgentList AgentOfProcess AgentRow Agents Alive Heartbeat Join JoinSession Joined Leave "
        "Left LimitReached Limited Notice OpenSession ProcessesAgent Register Registered "
        "SessionJoined SessionOpened",
    "archive":
        "ArchiveIndexNow ArchiveSearch ArchiveSection ArchiveShow Hit HitList Indexed",
    "backlog":
        "Candidate CandidateRegion Claimed Exported Imported Judged Partial TASK_STATES Task "
        "TaskAdd TaskCancel TaskClaim TaskDone TaskEdit TaskExport TaskFail TaskImport TaskLink "
        "TaskList TaskOrder TaskOutcome TaskRetry TaskShow TaskShown Tasks Unlanded",
    "base":
        "Mode Reply Request Verdict",
    "guard":
        "GitTurn GitTurnTaken GuardCheck GuardHeld GuardHeldList GuardOverride",
    "landing":
        "Land LandBack LandChange LandCheck LandQueue LandRight Landed Landing LandingList "
        "Landings Lawful TaskWorktree WorkedIn",
    "health":
        "Aside Compact Compacted Coordinator CoordinatorList Coordinators Health HealthReply "
        "Shutdown Stopping",
    "leases":
        "Acquire Acquired ChangedSince Lease LeaseFolder LeaseOrder LockList Locks Release "
        "Released Renew Renewed Replaced Waiter Withdraw Withdrawn",
    "logs":
        "TaskLog TaskLogLines",
    "messages":
        "Message MessageList MessageSend MessageTold Messages MessagesSee MessagesSeen",
    "negotiation":
        "RequestAnswer RequestFile RequestWithdraw Requests Unlock UnlockAnswered UnlockList "
        "UnlockVerdict",
    "pages":
        "PageOpen PageOpened",
    "proposals":
        "LostWrite LostWriteList LostWrites ProposalApplied Propose Proposed ProposedChange",
    "regions":
        "CommitRegion CommittedRegion RegionText RegionsCommitted",
    "report":
        "AgentsPart HotFile RefusedCount Report ReportReply WaitedFor",
    "reviews":
        "Hunk HunkList Review ReviewDecide ReviewFile ReviewHunks ReviewList ReviewShow ReviewUndo "
        "Reviews Sweep Swept",
    "signals":
        "Signal SignalAdd SignalList Signals",
    "state":
        "Change ChangeAdd ChangeDone ChangeFail ChangeGiven ChangeList ChangeNext ChangeShow "
        "Changes StateDelete StateGet StateHistory StateKeys StateList StatePatch StatePut "
        "StateValue StateWatch StateWatched",
    "steps":
        "Dead DeadDrop DeadLetter DeadList DeadRetry DeadShow Step StepAdd StepDone StepFail "
        "StepList StepNext Steps",
    "story":
        "EventList EventRow Events Explain Replay ReplayResult Status StatusReply Story",
    "timeline":
        "Demand Moment MomentReply Span SpanKind Timeline TimelineReply",
    "verification":
        "FinishedWork Verification VerificationList Verifications Verify",
    "work":
        "Work WorkFile WorkList",
}
_WHERE = {name: room for room, names in ROOMS.items() for name in names.split(" ")}


def __getattr__(name: str) -> Any:
    """A shape, at its first use (PEP 562)."""
    room = _WHERE.get(name)
    if room is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{room}"), name)
    return found


def __dir__() -> list[str]:
    return sorted(_WHERE)
