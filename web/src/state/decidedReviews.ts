/** Reviews that were decided on, the last verdict first: those in view are asked for. */
import { signal } from "@preact/signals";

import { api, ask } from "../api/client";
import type { Review } from "../api/shapes";
import { WindowedList } from "./windowedList";

/** How many there are. */
export const decidedCount = signal(0);

/** What can be taken back follows from tasks, too. */
export const decidedReviews = new WindowedList<Review>(async (skip, limit) => {
  const reply = await ask(api.GET("/v1/reviews", { params: { query: { state: "decided", skip, limit } } }));
  decidedCount.value = Object.entries(reply.counts ?? {}).reduce((sum, [state, count]) => (state === "open" ? sum : sum + count), 0);
  return reply.items;
}, /^(review|verdict|task)_/);
