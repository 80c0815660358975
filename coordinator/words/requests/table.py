"""Where each request is written. Made by `make docs`, checked by `make check`."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
        Notice as Notice,
        OpenSession as OpenSession,
        ProcessesAgent as ProcessesAgent,
        Register as Register,
        Registered as Registered,
        SessionJoined as SessionJoined,
        SessionOpened as SessionOpened,
    )
    from coordinator.words.requests.base import (
        Count as Count,
        Mode as Mode,
        Number as Number,
        Place as Place,
        Port as Port,
        R as R,
        Reply as Reply,
        Request as Request,
        Verdict as Verdict,
        Whole as Whole,
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
        CommittedRegion as CommittedRegion,
        LostWrite as LostWrite,
        LostWriteList as LostWriteList,
        LostWrites as LostWrites,
        ProposalApplied as ProposalApplied,
        Propose as Propose,
        Proposed as Proposed,
        ProposedChange as ProposedChange,
        RegionsCommitted as RegionsCommitted,
    )
    from coordinator.words.requests.reviews import (
        Review as Review,
        ReviewFile as ReviewFile,
        Sweep as Sweep,
        Swept as Swept,
    )
    from coordinator.words.requests.status import (
        DeadLetter as DeadLetter,
        EventRow as EventRow,
        NULL as NULL,
        StatusReply as StatusReply,
    )
    from coordinator.words.requests.tasks import (
        Candidate as Candidate,
        CandidateRegion as CandidateRegion,
        Judged as Judged,
        Partial as Partial,
        TASK_STATES as TASK_STATES,
        Task as Task,
        TaskState as TaskState,
        Unlanded as Unlanded,
    )
    from coordinator.words.requests.verification import (
        FinishedWork as FinishedWork,
        Verification as Verification,
        VerificationList as VerificationList,
    )
    from coordinator.slices.backlog.requests import (
        Claimed as Claimed,
        Exported as Exported,
        Imported as Imported,
        LimitReached as LimitReached,
        Limited as Limited,
        TaskAdd as TaskAdd,
        TaskCancel as TaskCancel,
        TaskClaim as TaskClaim,
        TaskDone as TaskDone,
        TaskEdit as TaskEdit,
        TaskExport as TaskExport,
        TaskFail as TaskFail,
        TaskImport as TaskImport,
        TaskLink as TaskLink,
        TaskList as TaskList,
        TaskOrder as TaskOrder,
        TaskOutcome as TaskOutcome,
        TaskRetry as TaskRetry,
        TaskShow as TaskShow,
        TaskShown as TaskShown,
        Tasks as Tasks,
    )
    from coordinator.slices.guard.requests import (
        GitTurn as GitTurn,
        GitTurnTaken as GitTurnTaken,
        GuardCheck as GuardCheck,
        GuardHeld as GuardHeld,
        GuardHeldList as GuardHeldList,
        GuardOverride as GuardOverride,
    )
    from coordinator.slices.landing.requests import (
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
    from coordinator.slices.messages.requests import (
        Message as Message,
        MessageList as MessageList,
        MessageSend as MessageSend,
        MessageTold as MessageTold,
        Messages as Messages,
        MessagesSee as MessagesSee,
        MessagesSeen as MessagesSeen,
    )
    from coordinator.slices.overlap.requests import (
        Overlap as Overlap,
        OverlapList as OverlapList,
        OverlapSide as OverlapSide,
        Overlaps as Overlaps,
    )
    from coordinator.slices.pools.requests import (
        Environment as Environment,
        EnvironmentRelease as EnvironmentRelease,
        EnvironmentTake as EnvironmentTake,
        PoolValue as PoolValue,
        PoolValueList as PoolValueList,
        PoolValues as PoolValues,
    )
    from coordinator.slices.regions.requests import (
        CommitRegion as CommitRegion,
        RegionText as RegionText,
    )
    from coordinator.slices.review.requests import (
        Hunk as Hunk,
        HunkList as HunkList,
        ReviewDecide as ReviewDecide,
        ReviewHunks as ReviewHunks,
        ReviewList as ReviewList,
        ReviewShow as ReviewShow,
        ReviewUndo as ReviewUndo,
        Reviews as Reviews,
    )
    from coordinator.slices.signals.requests import (
        Signal as Signal,
        SignalAdd as SignalAdd,
        SignalList as SignalList,
        Signals as Signals,
    )
    from coordinator.slices.state.requests import (
        Change as Change,
        ChangeAdd as ChangeAdd,
        ChangeDone as ChangeDone,
        ChangeFail as ChangeFail,
        ChangeGiven as ChangeGiven,
        ChangeList as ChangeList,
        ChangeNext as ChangeNext,
        ChangeShow as ChangeShow,
        ChangeState as ChangeState,
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
    from coordinator.slices.steps.requests import (
        Dead as Dead,
        DeadDrop as DeadDrop,
        DeadList as DeadList,
        DeadRetry as DeadRetry,
        DeadShow as DeadShow,
        Step as Step,
        StepAdd as StepAdd,
        StepDone as StepDone,
        StepFail as StepFail,
        StepKind as StepKind,
        StepList as StepList,
        StepNext as StepNext,
        Steps as Steps,
    )
    from coordinator.slices.story.requests import (
        AgentsPart as AgentsPart,
        ArchiveIndexNow as ArchiveIndexNow,
        ArchiveSearch as ArchiveSearch,
        ArchiveSection as ArchiveSection,
        ArchiveShow as ArchiveShow,
        Demand as Demand,
        EventList as EventList,
        Events as Events,
        Explain as Explain,
        Hit as Hit,
        HitList as HitList,
        HotFile as HotFile,
        Indexed as Indexed,
        Moment as Moment,
        MomentReply as MomentReply,
        Parts as Parts,
        RefusedCount as RefusedCount,
        Replay as Replay,
        ReplayResult as ReplayResult,
        Report as Report,
        ReportReply as ReportReply,
        Span as Span,
        SpanKind as SpanKind,
        Status as Status,
        Story as Story,
        Timeline as Timeline,
        TimelineReply as TimelineReply,
        WaitedFor as WaitedFor,
        Work as Work,
        WorkFile as WorkFile,
        WorkList as WorkList,
    )
    from coordinator.slices.verify.requests import (
        Verifications as Verifications,
        Verify as Verify,
    )

#: Module -> the names that it declares.
MODULES = {
    "coordinator.words.requests.agents":
        "AgentList AgentOfProcess AgentRow Agents Alive Heartbeat Join JoinSession Joined "
        "Leave Left Notice OpenSession ProcessesAgent Register Registered SessionJoined "
        "SessionOpened "
        "",
    "coordinator.words.requests.base":
        "Count Mode Number Place Port R Reply Request Verdict Whole "
        "",
    "coordinator.words.requests.health":
        "Aside Compact Compacted Coordinator CoordinatorList Coordinators Health HealthReply "
        "Shutdown Stopping "
        "",
    "coordinator.words.requests.leases":
        "Acquire Acquired ChangedSince Lease LeaseFolder LeaseOrder LockList Locks Release "
        "Released Renew Renewed Replaced Waiter Withdraw Withdrawn "
        "",
    "coordinator.words.requests.logs":
        "TaskLog TaskLogLines "
        "",
    "coordinator.words.requests.negotiation":
        "RequestAnswer RequestFile RequestWithdraw Requests Unlock UnlockAnswered UnlockList "
        "UnlockVerdict "
        "",
    "coordinator.words.requests.pages":
        "PageOpen PageOpened "
        "",
    "coordinator.words.requests.proposals":
        "CommittedRegion LostWrite LostWriteList LostWrites ProposalApplied Propose Proposed "
        "ProposedChange RegionsCommitted "
        "",
    "coordinator.words.requests.reviews":
        "Review ReviewFile Sweep Swept "
        "",
    "coordinator.words.requests.status":
        "DeadLetter EventRow NULL StatusReply "
        "",
    "coordinator.words.requests.tasks":
        "Candidate CandidateRegion Judged Partial TASK_STATES Task TaskState Unlanded "
        "",
    "coordinator.words.requests.verification":
        "FinishedWork Verification VerificationList "
        "",
    "coordinator.slices.backlog.requests":
        "Claimed Exported Imported LimitReached Limited TaskAdd TaskCancel TaskClaim TaskDone "
        "TaskEdit TaskExport TaskFail TaskImport TaskLink TaskList TaskOrder TaskOutcome "
        "TaskRetry TaskShow TaskShown Tasks "
        "",
    "coordinator.slices.guard.requests":
        "GitTurn GitTurnTaken GuardCheck GuardHeld GuardHeldList GuardOverride "
        "",
    "coordinator.slices.landing.requests":
        "Land LandBack LandChange LandCheck LandQueue LandRight Landed Landing LandingList "
        "Landings Lawful TaskWorktree WorkedIn "
        "",
    "coordinator.slices.messages.requests":
        "Message MessageList MessageSend MessageTold Messages MessagesSee MessagesSeen "
        "",
    "coordinator.slices.overlap.requests":
        "Overlap OverlapList OverlapSide Overlaps "
        "",
    "coordinator.slices.pools.requests":
        "Environment EnvironmentRelease EnvironmentTake PoolValue PoolValueList PoolValues "
        "",
    "coordinator.slices.regions.requests":
        "CommitRegion RegionText "
        "",
    "coordinator.slices.review.requests":
        "Hunk HunkList ReviewDecide ReviewHunks ReviewList ReviewShow ReviewUndo Reviews "
        "",
    "coordinator.slices.signals.requests":
        "Signal SignalAdd SignalList Signals "
        "",
    "coordinator.slices.state.requests":
        "Change ChangeAdd ChangeDone ChangeFail ChangeGiven ChangeList ChangeNext ChangeShow "
        "ChangeState Changes StateDelete StateGet StateHistory StateKeys StateList StatePatch "
        "StatePut StateValue StateWatch StateWatched "
        "",
    "coordinator.slices.steps.requests":
        "Dead DeadDrop DeadList DeadRetry DeadShow Step StepAdd StepDone StepFail StepKind "
        "StepList StepNext Steps "
        "",
    "coordinator.slices.story.requests":
        "AgentsPart ArchiveIndexNow ArchiveSearch ArchiveSection ArchiveShow Demand EventList "
        "Events Explain Hit HitList HotFile Indexed Moment MomentReply Parts RefusedCount "
        "Replay ReplayResult Report ReportReply Span SpanKind Status Story Timeline "
        "TimelineReply WaitedFor Work WorkFile WorkList "
        "",
    "coordinator.slices.verify.requests":
        "Verifications Verify "
        "",
}
