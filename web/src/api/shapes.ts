/** Short names for the coordinator's shapes; all of them are generated (`schema.ts`). */
import type { components } from "./schema";

type Shapes = components["schemas"];

export type Agent = Shapes["AgentRow"];
export type ArchiveSection = Shapes["ArchiveSection"];
export type Hit = Shapes["Hit"];
export type DeadLetter = Shapes["DeadLetter"];
export type HunkList = Shapes["HunkList"];
export type Lease = Shapes["Lease"];
export type LeaseFolder = Shapes["LeaseFolder"];
export type Message = Shapes["Message"];
export type Review = Shapes["Review"];
export type ReviewFile = Shapes["ReviewFile"];
export type Task = Shapes["Task"];
export type TaskLink = Shapes["TaskLink"];
export type TaskList = Shapes["TaskList"];
export type TaskShown = Shapes["TaskShown"];
export type TaskState = "pending" | "ready" | "claimed" | "review" | "failed" | "dead" | "blocked" | "done" | "cancelled";
export type Status = Shapes["StatusReply"];
export type UnlockRequest = Shapes["Unlock"];
export type Waiter = Shapes["Waiter"];
export type Work = Shapes["WorkList"];
export type VerdictBody = Shapes["ReviewDecideBody"];
export type Verdict = "keep" | "revert" | "reassign";
export type Demand = Shapes["Demand"];
export type Moment = Shapes["MomentReply"];
export type Report = Shapes["ReportReply"];
export type Span = Shapes["Span"];
export type Timeline = Shapes["TimelineReply"];
