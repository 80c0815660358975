/** Who waits for whom: a picture, and in words in the order of the wait queue. */
import { useMemo } from "preact/hooks";

import { now } from "../state/now";
import { status } from "../state/store";
import { layOutWaits } from "../state/waitGraph";
import { ago } from "../words/texts";
import { WaitGraph } from "./WaitGraph";
import { Words } from "./Words";

/** A picture of more agents says nothing any more: then there is the list alone. */
const PICTURED_MAX = 30;

export function WaitList() {
  const waiters = status.value?.waiters ?? [];
  const graph = useMemo(() => layOutWaits(waiters), [waiters]);
  if (waiters.length === 0) {
    return null;
  }
  return (
    <section aria-labelledby="waits">
      <h2 id="waits">Who waits for whom</h2>
      {graph.edges.length > 0 && graph.nodes.length <= PICTURED_MAX && <WaitGraph graph={graph} />}
      <ul class="waits">
        {waiters.map((waiter) => (
          <li key={waiter.acquisition_id}>
            <Words text={waiter.agent} /> <span aria-hidden="true">→</span>
            <span class="visually-hidden"> waits for </span>{" "}
            <Words text={waiter.held_by.join(", ") || "its turn"} />
            <span class="dim">
              {" "}
              for <Words text={waiter.resources.join(", ")} />, place {waiter.position}, {ago(waiter.asked_at, now.value)}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}
