/** The instant that times left and ages are shown for: it moves on each ten seconds. */
import { signal } from "@preact/signals";

export const now = signal(Date.now());
setInterval(() => (now.value = Date.now()), 10_000);
