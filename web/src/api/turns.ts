/**
 * A browser keeps six connections to one address, for all its tabs together, and each page that follows
 * the events needs one of them. Pages that are seen follow; of those that nobody sees one does, so that
 * something still tells what waits. The others take up the events where they left off, once they are seen.
 */
const NAME = "coord-unseen";

/** Ends this page's turn among the unseen; null: it has none. */
let release: (() => void) | null = null;

/** Whether this page may follow the events now. */
export function hasTurn(): boolean {
  return !document.hidden || release !== null;
}

/** Wait until this page may follow the events. */
export async function waitForTurn(): Promise<void> {
  while (!hasTurn()) {
    const seen = new AbortController();
    document.addEventListener("visibilitychange", () => seen.abort(), { once: true });
    await request({ signal: seen.signal });
  }
}

/** From now on: `over` is called whenever this page may not follow any more. */
export function watchTurns(over: () => void): void {
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) {
      release?.();
      release = null;
    } else {
      void request({ ifAvailable: true }).then(() => hasTurn() || over());
    }
  });
}

/** Ask for the turn among the unseen; done when it is there, or cannot be had. */
function request(options: LockOptions): Promise<void> {
  return new Promise((done) => {
    const held = navigator.locks.request(NAME, options, (lock) => {
      if (lock === null) {
        return;
      }
      return new Promise<void>((end) => {
        release = end;
        done();
      });
    });
    held.then(() => done(), () => done());
  });
}
