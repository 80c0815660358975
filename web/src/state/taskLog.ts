/** Follows the log of a task: each request waits at the coordinator until the agent says more. */
import { api, ask } from "../api/client";
import { Refusal } from "../api/refusal";

/** How long one request waits (seconds), and how long it is until the next after one that failed (ms). */
const WAIT_S = 25;
const AFTER_FAILURE_MS = 2000;

/** Tell new lines until the returned function is called. `isNewLog`: another attempt has begun. */
export function followTaskLog(task: string, onLines: (lines: readonly string[], isNewLog: boolean) => void): () => void {
  const stop = new AbortController();
  void follow(task, onLines, stop.signal);
  return () => stop.abort();
}

async function follow(task: string, onLines: (lines: readonly string[], isNewLog: boolean) => void, signal: AbortSignal): Promise<void> {
  let log = "";
  let after: number | undefined;
  while (!signal.aborted) {
    try {
      const query = { log, wait_s: after === undefined ? 0 : WAIT_S, ...(after === undefined ? {} : { after }) };
      const reply = await ask(api.GET("/v1/tasks/{task}/log", { params: { path: { task }, query }, signal }));
      if (signal.aborted) {
        return;
      }
      onLines(reply.lines, reply.log !== log);
      log = reply.log;
      after = reply.next;
    } catch (bad) {
      if (bad instanceof Refusal && bad.code !== "DAEMON_DOWN") {
        return; // there is no such task any more, or it is not for this page
      }
      await new Promise((resolve) => setTimeout(resolve, AFTER_FAILURE_MS));
    }
  }
}
