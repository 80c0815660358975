/**
 * What the page asks again when something has happened. Nothing polls: an event tells when, a crowd of
 * events is answered by one question, and what nobody looks at is not asked for.
 */
import { Refusal } from "../api/refusal";
import { connection } from "./connection";
import { say } from "./news";

/**
 * One question each so many ms; fewer where an answer takes long (a part of the time is the
 * coordinator's), and where the page is not seen.
 */
const GATHERED_MS = 120;
const UNSEEN_MS = 2000;
const TIMES_AS_LONG = 10;
/** It is never longer: an answer may have come late because the page was asleep. */
const GATHERED_MAX_MS = 10_000;

const feeds = new Set<Feed>();

/** Something has happened. */
export function noteEvent(kind: string): void {
  for (const feed of feeds) {
    feed.note(kind);
  }
}

/** Whatever has happened may be unknown: all that is watched is asked again, the rest when it is watched. */
export function askAgain(): void {
  for (const feed of feeds) {
    feed.ask();
  }
}

export class Feed {
  private watchers = 0;
  private timer = 0;
  private asking = false;
  /** Something has happened since it was asked. */
  private stale = true;
  private tookMs = 0;

  /** `load` asks and keeps the answer; `kinds` are those of the events after which it may be another. */
  constructor(
    private readonly load: () => Promise<unknown>,
    private readonly kinds: RegExp,
  ) {
    feeds.add(this);
  }

  /** Somebody looks at it. Call what is returned when nobody does any more. */
  watch(): () => void {
    this.watchers += 1;
    if (this.stale) {
      this.ask();
    }
    return () => {
      this.watchers -= 1;
    };
  }

  /** Nobody will look at it again. */
  end(): void {
    feeds.delete(this);
    this.watchers = 0;
    clearTimeout(this.timer);
  }

  note(kind: string): void {
    if (this.kinds.test(kind)) {
      this.stale = true;
      this.gather();
    }
  }

  /** Ask now, or as soon as the question that is under way is answered. */
  ask(): void {
    this.stale = true;
    if (this.isSeen() && !this.asking) {
      void this.refresh();
    }
  }

  private isSeen(): boolean {
    return this.watchers > 0 && connection.value === "live";
  }

  private gather(): void {
    if (this.timer === 0 && !this.asking && this.isSeen()) {
      const usual = Math.max(document.hidden ? UNSEEN_MS : GATHERED_MS, TIMES_AS_LONG * this.tookMs);
      this.timer = window.setTimeout(() => this.ask(), Math.min(usual, GATHERED_MAX_MS));
    }
  }

  private async refresh(): Promise<void> {
    clearTimeout(this.timer);
    this.timer = 0;
    this.asking = true;
    this.stale = false;
    const began = performance.now();
    try {
      await this.load();
    } catch (bad) {
      // Nobody answers: the stream says so, and all is asked again when somebody does.
      if (!(bad instanceof Refusal && bad.code === "DAEMON_DOWN")) {
        say(bad);
      }
    } finally {
      this.tookMs = performance.now() - began;
      this.asking = false;
      if (this.stale) {
        this.gather(); // something has happened while it was asked
      }
    }
  }
}
