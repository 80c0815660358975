/** An answer of the coordinator that is asked for again when something has happened. */
import { type Signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import { Refusal } from "../api/refusal";
import { Feed } from "./feed";

/**
 * The newest answer, or what stands against one; null before the first. It is another question
 * when `key` changes. `kinds`: those of the events after which the answer may be another.
 */
export function useAnswer<T>(question: () => Promise<T>, key: string, kinds = /./): Signal<T | Refusal | null> {
  const answer = useSignal<T | Refusal | null>(null);
  useEffect(() => {
    answer.value = null;
    let current = true;
    const feed = new Feed(async () => {
      const value = await question().catch((bad: unknown) => {
        // Where nobody answers the last answer stays.
        if (bad instanceof Refusal && bad.code !== "DAEMON_DOWN") {
          return bad;
        }
        throw bad;
      });
      if (current) {
        answer.value = value;
      }
    }, kinds);
    feed.watch();
    return () => {
      current = false;
      feed.end();
    };
  }, [key]);
  return answer;
}
