/** The page's one line of news: what was done or refused last, and how it is taken back. */
import { signal } from "@preact/signals";

import { Refusal } from "../api/refusal";

/** Takes back what was done; whether that went well. */
export type Undo = () => Promise<boolean>;

interface Item {
  text: string;
  next: string;
  refused: boolean;
  /** Absent: it cannot be taken back. */
  undo?: Undo | undefined;
}

export const news = signal<Item | null>(null);

/** Do something on the person's behalf and say how it went. Returns whether it was done. */
export async function act<T>(request: () => Promise<T>, done: (reply: T) => string, undo?: (reply: T) => Undo | undefined): Promise<boolean> {
  try {
    const reply = await request();
    news.value = { text: done(reply), next: "", refused: false, undo: undo?.(reply) };
    return true;
  } catch (bad) {
    say(bad);
    return false;
  }
}

/** Say what was refused. Throws what is no refusal. */
export function say(bad: unknown): void {
  if (!(bad instanceof Refusal)) {
    throw bad;
  }
  news.value = { text: bad.message, next: bad.next, refused: true };
}
