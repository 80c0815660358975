/**
 * The coordinator's events, read by `fetch` (an `EventSource` sends no bearer token). A stream that
 * breaks is taken up after its last event; between two tries it waits a little longer each time.
 * Before the token is sent, whoever listens has to prove that it is this page's coordinator.
 */
import type { Connection } from "../state/connection";
import { isOurs, token } from "./entrance";
import { hasTurn, waitForTurn, watchTurns } from "./turns";

export interface CoordEvent {
  seq: number;
  kind: string;
}

export interface Listener {
  /** Called for each event, in order. */
  onEvent(event: CoordEvent): void;
  /** Called when the connection changes. */
  onConnection(connection: Connection): void;
}

/** Waits between two tries (ms): the last one is repeated. */
const WAITS_MS = [200, 500, 1000, 2000, 3000];
/** The coordinator says something each 15 s. Nothing for so long (ms): nobody is at the other end any more. */
const SILENT_MS = 40_000;

/** Follow the events until the page's token has ended. */
export async function follow(listener: Listener): Promise<void> {
  let last: number | null = null;
  let stop = (): void => undefined;
  watchTurns(() => stop());
  for (let tries = 0; ; tries += 1) {
    if (!hasTurn()) {
      listener.onConnection("connecting");
      await waitForTurn();
    }
    const silent = new AbortController();
    stop = () => silent.abort();
    let timer = 0;
    const heard = (): void => {
      clearTimeout(timer);
      timer = window.setTimeout(() => silent.abort(), SILENT_MS);
    };
    try {
      heard();
      if (!(await isOurs(silent.signal))) {
        listener.onConnection("ended");
        return;
      }
      const headers: Record<string, string> = { Authorization: `Bearer ${token()}` };
      if (last !== null) {
        headers["Last-Event-ID"] = String(last);
      }
      const answer = await fetch("/v1/events/stream", { headers, signal: silent.signal });
      if (answer.status === 401) {
        listener.onConnection("ended");
        return;
      }
      if (answer.ok && answer.body !== null) {
        tries = 0;
        listener.onConnection("live");
        for await (const event of readEvents(answer.body, heard)) {
          last = event.seq;
          listener.onEvent(event);
        }
      }
    } catch {
      // Nobody listens there now, or the connection broke: both are tried again below.
    } finally {
      clearTimeout(timer);
    }
    if (!hasTurn()) {
      continue;
    }
    listener.onConnection("lost");
    await wait(WAITS_MS[Math.min(tries, WAITS_MS.length - 1)] ?? 3000);
  }
}

/** The events of a server-sent stream, as far as the page needs them. `heard` is called whenever something has come. */
export async function* readEvents(body: ReadableStream<Uint8Array>, heard: () => void): AsyncGenerator<CoordEvent> {
  const reader = body.pipeThrough(new TextDecoderStream() as unknown as ReadableWritablePair<string, Uint8Array>).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) {
      return;
    }
    heard();
    text += value;
    let end: number;
    while ((end = text.indexOf("\n\n")) >= 0) {
      const event = parseEvent(text.slice(0, end));
      text = text.slice(end + 2);
      if (event !== null) {
        yield event;
      }
    }
  }
}

function parseEvent(block: string): CoordEvent | null {
  const seq = /^id: (\d+)$/m.exec(block);
  const kind = /^event: (.+)$/m.exec(block);
  return seq?.[1] && kind?.[1] ? { seq: Number(seq[1]), kind: kind[1] } : null;
}

function wait(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
