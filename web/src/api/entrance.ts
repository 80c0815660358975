/**
 * The page's token. It comes for the one-time code in the address's fragment and stays in this
 * tab's sessionStorage: no other tab, port or page can read it, and it ends with the tab.
 */
import { readRefusal, type Refusal, UNREACHABLE } from "./refusal";
import type { components } from "./schema";

type Pass = components["schemas"]["PageEntered"];

const KEY = "coord.page";
let pass: Pass | null = readKept();

/** The token that requests carry; empty before the page has entered. */
export function token(): string {
  return pass?.token ?? "";
}

/** The person at the browser, for the record of what is decided. */
export function person(): string {
  return pass?.person ?? "";
}

/** Whether this page may see and change nothing. */
export function readsOnly(): boolean {
  return pass?.reads_only ?? false;
}

/** Enter with the code in the address, if there is one. Returns what stands against it, or null. */
export async function enter(): Promise<Refusal | null> {
  const code = location.hash.slice(1);
  if (code === "") {
    return null;
  }
  // First of all the code leaves the address, so that no history, reload or bookmark has it.
  history.replaceState(null, "", location.pathname);
  try {
    const answer = await fetch("/v1/page/enter", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ code }),
    });
    const body: unknown = await answer.json();
    if (!answer.ok) {
      forget();
      return readRefusal(body, answer.status);
    }
    pass = body as Pass;
    sessionStorage.setItem(KEY, JSON.stringify(pass));
    return null;
  } catch {
    return UNREACHABLE;
  }
}

/**
 * Whether it is this page's own coordinator that listens: after a crash it may be anybody, and the
 * token is for no one else. Throws where nobody answers.
 */
export async function isOurs(signal: AbortSignal): Promise<boolean> {
  const [, page = "", seal = ""] = token().split(".");
  const challenge = toHex(crypto.getRandomValues(new Uint8Array(16)));
  const answer = await fetch("/v1/page/prove", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ page, challenge }),
    signal,
  });
  const reply = (await answer.json()) as { proof?: string };
  const bytes = new TextEncoder();
  const key = await crypto.subtle.importKey("raw", bytes.encode(seal), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const message = `coordinator ${pass?.port ?? location.port} ${challenge}`;
  return reply.proof === toHex(new Uint8Array(await crypto.subtle.sign("HMAC", key, bytes.encode(message))));
}

function toHex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The token is worth nothing any more. */
export function forget(): void {
  pass = null;
  sessionStorage.removeItem(KEY);
}

function readKept(): Pass | null {
  try {
    return JSON.parse(sessionStorage.getItem(KEY) ?? "null") as Pass | null;
  } catch {
    return null;
  }
}
