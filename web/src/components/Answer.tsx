/** What an answer says, once it is there; until then that it is asked for, or what stands against it. */
import type { ComponentChildren } from "preact";

import { Refusal } from "../api/refusal";

interface Props<T> {
  answer: T | Refusal | null;
  children(answer: T): ComponentChildren;
}

export function Answer<T>({ answer, children }: Props<T>) {
  if (answer === null) {
    return <p class="empty">Asking the coordinator …</p>;
  }
  return answer instanceof Refusal ? <p class="empty">{answer.message}</p> : <>{children(answer)}</>;
}
