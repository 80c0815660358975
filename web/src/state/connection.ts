/** Whether the coordinator is there. Only while it is live may anything be sent to it. */
import { signal } from "@preact/signals";

export type Connection = "connecting" | "live" | "lost" | "ended";

export const connection = signal<Connection>("connecting");
