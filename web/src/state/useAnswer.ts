/** An answer of the coordinator that is asked for again when something has happened. */
import { effect, type Signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import { Refusal } from "../api/refusal";
import { lastSeq } from "./store";

/** Events come in crowds: there is one question at a time, and so long a rest between two (ms). */
const REST_MS = 500;
/** For what takes the coordinator longer, or changes with nearly every event (ms). */
export const LONG_REST_MS = 5000;

/**
 * The newest answer, or what stands against one; null before the first. It is another question
 * when `key` changes.
 */
export function useAnswer<T>(question: () => Promise<T>, key: string, restMs = REST_MS): Signal<T | Refusal | null> {
  const answer = useSignal<T | Refusal | null>(null);
  useEffect(() => {
    answer.value = null;
    let current = true;
    let seen = -1;
    let resting = false;
    const look = async () => {
      if (resting || !current || seen === lastSeq.value) {
        return;
      }
      resting = true;
      seen = lastSeq.value;
      const value = await question().catch((bad: unknown) => (bad instanceof Refusal ? bad : new Refusal("INTERNAL", String(bad), "", 0)));
      // Where nobody answers the banner says so, and the last answer stays.
      if (current && !(value instanceof Refusal && value.code === "DAEMON_DOWN")) {
        answer.value = value;
      }
      await new Promise((resolve) => setTimeout(resolve, restMs));
      resting = false;
      void look();
    };
    const stop = effect(() => {
      void lastSeq.value; // it runs again after each event
      void look();
    });
    return () => {
      current = false;
      stop();
    };
  }, [key]);
  return answer;
}
