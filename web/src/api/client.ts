/** The documented HTTP door, typed from its own description; and nothing besides. */
import createClient, { type Middleware } from "openapi-fetch";

import { connection } from "../state/connection";
import { token } from "./entrance";
import { readRefusal, Refusal, UNANSWERED, UNREACHABLE } from "./refusal";
import type { paths } from "./schema";

/** The header that says whose page asks. Throws where whoever listens there by now is not to have the token. */
export function bearer(): string {
  if (connection.value !== "live") {
    throw UNREACHABLE;
  }
  return `Bearer ${token()}`;
}

const withToken: Middleware = {
  onRequest({ request }) {
    request.headers.set("Authorization", bearer());
    return request;
  },
};

export const api = createClient<paths>({ baseUrl: location.origin });
api.use(withToken);

interface Answered<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** The reply to a request. Throws a `Refusal`, also where nobody answers. */
export async function ask<T>(request: Promise<Answered<T>>): Promise<T> {
  let answered: Answered<T>;
  try {
    answered = await request;
  } catch (bad) {
    throw bad instanceof Refusal ? bad : UNANSWERED;
  }
  if (!answered.response.ok || answered.data === undefined) {
    throw readRefusal(answered.error, answered.response.status);
  }
  return answered.data;
}
