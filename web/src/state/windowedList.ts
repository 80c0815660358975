/** A long list of the coordinator, of which the page keeps the rows that are in view. */
import { signal } from "@preact/signals";

import { Feed } from "./feed";

/** Rows of the list from `skip` on. */
export interface Part<T> {
  skip: number;
  items: readonly T[];
}

export class WindowedList<T> {
  readonly part = signal<Part<T>>({ skip: 0, items: [] });
  readonly feed: Feed;
  private skip = 0;
  private limit = 0;

  /** `ask` gives rows of the list; after events of these `kinds` they may be others. */
  constructor(ask: (skip: number, limit: number) => Promise<readonly T[]>, kinds: RegExp) {
    this.feed = new Feed(async () => {
      const { skip, limit } = this;
      if (limit > 0) {
        this.part.value = { skip, items: await ask(skip, limit) };
      }
    }, kinds);
  }

  /** These rows are in view. */
  show(skip: number, limit: number): void {
    if (skip !== this.skip || limit !== this.limit) {
      this.skip = skip;
      this.limit = limit;
      this.feed.ask();
    }
  }

  /** The row at this place; undefined: it is not there, or not yet. */
  at(place: number): T | undefined {
    const { skip, items } = this.part.value;
    return items[place - skip];
  }
}
