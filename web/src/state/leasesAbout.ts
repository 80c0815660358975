/** The leases of the file or agent whose panel is open. */
import { signal } from "@preact/signals";

import { api, ask } from "../api/client";
import type { Lease } from "../api/shapes";
import { Feed } from "./feed";

interface Subject {
  kind: "resource" | "agent";
  name: string;
}

export const leasesAbout = signal<readonly Lease[]>([]);

/** Follow the leases of this one; call what is returned when its panel is closed. */
export function followLeases({ kind, name }: Subject): () => void {
  leasesAbout.value = [];
  let open = true;
  const feed = new Feed(async () => {
    const query = kind === "agent" ? { agent: name } : { resource: name };
    const { items } = await ask(api.GET("/v1/locks", { params: { query } }));
    if (open) {
      leasesAbout.value = items.filter((lease) => kind === "agent" || lease.resource === name);
    }
  }, /^(lease|leases)_/);
  feed.watch();
  return () => {
    open = false;
    feed.end();
  };
}
