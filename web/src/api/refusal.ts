/** A lawful no of the coordinator, or that it could not be asked. */
export class Refusal extends Error {
  constructor(
    readonly code: string,
    message: string,
    /** The one next step that helps. */
    readonly next: string,
    readonly status: number,
  ) {
    super(message);
  }
}

/** The refusal in an HTTP answer's body; of a body that is none, what can be said. */
export function readRefusal(body: unknown, status: number): Refusal {
  const error = (body as { error?: { code?: string; message?: string; next?: string } } | null)?.error;
  if (error?.code && error.message) {
    return new Refusal(error.code, error.message, error.next ?? "", status);
  }
  return new Refusal("INTERNAL", `The coordinator answered ${status} and said no more.`, "", status);
}

export const UNREACHABLE = new Refusal(
  "DAEMON_DOWN",
  "The coordinator does not answer; nothing was changed.",
  "Any `coord` command in the repository starts it again.",
  0,
);

/** It was asked, and whether it has done what it was asked for it had no time to say. */
export const UNANSWERED = new Refusal(
  "DAEMON_DOWN",
  "The coordinator ended before it answered: this may be done, or not.",
  "What the page shows when it is back is how it is. Any `coord` command in the repository starts it again.",
  0,
);
