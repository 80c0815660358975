/** Who waits for whom, in the order of the wait queue. */
import { now } from "../state/now";
import { status } from "../state/store";
import { ago } from "../words/texts";
import { Words } from "./Words";

export function WaitList() {
  const waiters = status.value?.waiters ?? [];
  if (waiters.length === 0) {
    return null;
  }
  return (
    <section aria-labelledby="waits">
      <h2 id="waits">Who waits for whom</h2>
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
