/** What a person can do from the page: each is one operation of the documented door. */
import { api, ask } from "../api/client";
import { person } from "../api/entrance";
import { Refusal } from "../api/refusal";
import type { DeadLetter, HunkList, Lease, Message, Review, ReviewFile, Task, UnlockRequest, Verdict, VerdictBody, Work } from "../api/shapes";
import { harmless } from "../words/texts";
import { type Draft, endDraft, listDrafts } from "./drafts";
import { act, news } from "./news";

/** What becomes of a review, and of its task, by a verdict on all of it. */
const VERDICTS_DONE: Record<Verdict, (review: Review) => string> = {
  keep: ({ review, task }) => `${review} is kept.${task ? ` When no other review of ${task} waits, ${task} is done.` : ""}`,
  revert: ({ review, task }) =>
    `${review} is reverted: its files are as they were before.${task ? ` When no other review of ${task} waits, ${task} starts over.` : ""}`,
  reassign: ({ review, task }) => `${review} is given on.${task ? ` ${task} is ready: the next agent begins with this work.` : ""}`,
};

/** The last verdicts of this page, newest last: `u` takes one back. */
const decided: string[] = [];

/** A verdict on all of a review, or on files of it. */
export function decide(review: string, verdict: Verdict, files: string[] = []): Promise<boolean> {
  return decideOn(review, { verdict, files, by: person() });
}

/** A verdict on one change of a file. It counts for the contents that the person saw. */
export function decideHunk(review: string, verdict: Verdict, file: ReviewFile, hunk: number): Promise<boolean> {
  return decideOn(review, { verdict, files: [file.path], hunks: [hunk], seen: nameContents(file), by: person() });
}

/** Keep a text that the person has edited, in place of what was left. It counts for the contents that the person saw. */
export async function keepEdited(draft: Draft): Promise<Review | null> {
  const { review, file, text } = draft;
  let kept: Review | null = null;
  await decideOn(
    review,
    { verdict: "keep", files: [file.path], edited: text, seen: nameContents(file), by: person() },
    (done) => {
      kept = done;
      endDraft(draft);
    },
  );
  return kept;
}

function decideOn(review: string, body: VerdictBody, then?: (done: Review) => void): Promise<boolean> {
  return act(
    () => {
      const edited = body.edited === undefined ? listDrafts(review) : [];
      if (edited.length > 0) {
        throw new Refusal("INVALID", `You edit ${edited.join(", ")}. Nothing was decided.`, "Keep your text, or discard it.", 0);
      }
      return ask(api.POST("/v1/reviews/{review}/decide", { params: { path: { review } }, body }));
    },
    (done) => {
      decided.push(done.review);
      then?.(done);
      const said = done.part_of
        ? `${done.review}, a part of ${done.part_of}, is ${body.verdict === "keep" ? "kept" : "reverted"}. The rest stays open in ${done.part_of}.`
        : VERDICTS_DONE[body.verdict](done);
      return [said, ...done.warnings].join(" ");
    },
    () => undoLast,
  );
}

/** The contents in which a file is shown: a verdict that is based on them is refused where they are others by now. */
function nameContents(file: ReviewFile): string {
  return `${file.baseline_hash ?? ""}..${file.flagged_hash ?? ""}`;
}

export function undo(review: string): Promise<boolean> {
  return act(
    () => ask(api.POST("/v1/reviews/{review}/undo", { params: { path: { review } }, body: { by: person() } })),
    (done) => [`${done.review} is open again.`, ...done.warnings].join(" "),
  );
}

export async function undoLast(): Promise<boolean> {
  const review = decided.at(-1);
  if (review === undefined) {
    news.value = {
      text: "No verdict was given in this page since it was loaded.",
      next: "`coord review list --state all` names earlier ones, `coord review undo R-1` takes one back.",
      refused: true,
    };
    return false;
  }
  const undone = await undo(review);
  if (undone) {
    decided.pop();
  }
  return undone;
}

export function answerRequest(request: UnlockRequest, verdict: "approve" | "reject"): Promise<boolean> {
  return act(
    () =>
      ask(
        api.POST("/v1/requests/{request}/answer", {
          params: { path: { request: request.request } },
          body: { agent: person(), verdict, force: true },
        }),
      ),
    (done) => done.message,
  );
}

/** The holder is named, so that a lease that has changed hands meanwhile is refused. */
export function unlock(lease: Lease): Promise<boolean> {
  return act(
    () => ask(api.POST("/v1/locks/release", { body: { agent: lease.locked_by, resources: [lease.resource], force: lease.locked_by !== person() } })),
    (done) =>
      done.reviews.length > 0
        ? `${lease.resource} is free; what ${lease.locked_by} had changed is kept as ${done.reviews.join(", ")}.`
        : `${lease.resource} is free.`,
  );
}

export function lock(resource: string, description: string): Promise<boolean> {
  return act(
    () => ask(api.POST("/v1/locks", { body: { agent: person(), resources: [resource], description, retry: false } })),
    (done) => `${done.leases.map((lease) => lease.resource).join(", ")} is yours.`,
  );
}

export function retryDeadLetter(letter: DeadLetter): Promise<boolean> {
  return act(
    () => ask(api.POST("/v1/dead/{id}/retry", { params: { path: { id: letter.id } } })),
    (done) => `${done.id} is tried again.`,
  );
}

/** Messages are seen up to a number: those before this one are seen with it. */
export function markSeen(message: Message): Promise<boolean> {
  return act(
    () => ask(api.POST("/v1/messages/seen", { body: { up_to: numberOf(message.message) } })),
    () => `${message.message} is read.`,
  );
}

/** A reply says that the message it answers was read. */
export async function sendMessage(to: string, text: string, replyTo: string | null): Promise<boolean> {
  const sent = await act(
    () => ask(api.POST("/v1/messages", { body: { agent: "human", to, text, reply_to: replyTo } })),
    () => `${to} is told with its next tool call.`,
  );
  if (sent && replyTo !== null) {
    await act(
      () => ask(api.POST("/v1/messages/seen", { body: { up_to: numberOf(replyTo) } })),
      () => `${to} is told with its next tool call.`,
    );
  }
  return sent;
}

/** Ask the holder of a resource for it, in one's own name. */
export function requestResource(resource: string, reason: string): Promise<boolean> {
  return act(
    () => ask(api.POST("/v1/requests", { body: { agent: person(), resource, reason } })),
    (done) => `${done.holder} is asked for ${done.resource} (${done.request}).`,
  );
}

/** An agent whose limit was reached may go on now. */
export function letGoOn(agent: string): Promise<boolean> {
  return act(
    () => ask(api.POST("/v1/agents/limit", { body: { agent, for_s: 0 } })),
    (done) => `${done.agent} goes on.`,
  );
}

/** End the session of an agent that is silent: what it had begun is kept as reviews. */
export function endSession(agent: string): Promise<boolean> {
  return act(
    () => ask(api.POST("/v1/agents/leave", { body: { agent, clean: false, reason: `ended by ${person()}` } })),
    (done) =>
      done.reviews.length > 0
        ? `${done.agent} was ended; its work is kept as ${done.reviews.join(", ")}.`
        : `${done.agent} was ended; it had left nothing.`,
  );
}

/** The number in an id like `M-3`. */
function numberOf(id: string): number {
  return Number(id.slice(id.indexOf("-") + 1));
}

/** What is changed below the leases of an agent, or below the leases of one name. */
export async function showWork(about: { kind: "resource" | "agent"; name: string }): Promise<Work> {
  const query = about.kind === "agent" ? { agent: about.name } : { resource: about.name };
  return ask(api.GET("/v1/work", { params: { query } }));
}

export async function showTask(task: string): Promise<Task> {
  return ask(api.GET("/v1/tasks/{task}", { params: { path: { task } } }));
}

export async function showReview(review: string, content: boolean): Promise<Review> {
  return ask(api.GET("/v1/reviews/{review}", { params: { path: { review }, query: { content } } }));
}

/** Hunks of a file that is too large to be shown whole. */
export async function showHunks(review: string, file: ReviewFile, skip: number): Promise<HunkList> {
  return ask(api.GET("/v1/reviews/{review}/hunks", { params: { path: { review }, query: { file: file.path, skip } } }));
}

/** A command that opens a file in one's editor, into the clipboard. */
export function copyEditorCommand(root: string, file: ReviewFile): Promise<boolean> {
  const path = [file.worktree ?? root, file.path].join("/");
  return act(
    async () => {
      if (harmless(path) !== path) {
        throw new Refusal("INVALID", `The name of ${file.path} has signs that a terminal would act on. Nothing was copied.`, "", 0);
      }
      await navigator.clipboard.writeText(`\${EDITOR:-vi} '${path.replaceAll("'", "'\\''")}'`);
    },
    () => "A command that opens the file is in your clipboard: paste it into a terminal.",
  );
}
