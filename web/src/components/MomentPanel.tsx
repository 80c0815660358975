/** State at the moment that the scrubber is at. */
import { moment, then } from "../state/timeline";
import type { Fact } from "../state/then";
import { fullInstant } from "../words/instants";
import { Words } from "./Words";

/** Facts of a list that are shown. */
const MOST = 100;

export function MomentPanel() {
  const shown = then.value;
  return (
    <section class="moment" aria-labelledby="moment" aria-busy={moment.value !== null && shown?.at !== moment.value}>
      <h2 id="moment">{moment.value === null ? "State at the end" : `State at ${fullInstant(moment.value)}`}</h2>
      {shown !== null && (
        <>
          {shown.event !== null && <p class="dim">After event {shown.event}.</p>}
          <div class="moment-lists">
            <FactList title="Leases" facts={shown.leases} verb="held" />
            <FactList title="Waits" facts={shown.waits} verb="waited for" />
            <FactList title="Tasks" facts={shown.tasks} verb="worked on" />
            <FactList title="Open reviews" facts={shown.reviews} verb="left" />
          </div>
        </>
      )}
    </section>
  );
}

function FactList({ title, facts, verb }: { title: string; facts: readonly Fact[]; verb: string }) {
  return (
    <div>
      <h3>
        {title} <span class="dim">{facts.length}</span>
      </h3>
      <ul class="plain" aria-label={`${title} at that moment`}>
        {facts.slice(0, MOST).map((fact, number) => (
          <li key={number}>
            <Words text={fact.agent} /> {verb} <Words text={fact.name} />
            {fact.remark !== "" && (
              <span class="dim">
                : <Words text={fact.remark} />
              </span>
            )}
          </li>
        ))}
      </ul>
      {facts.length > MOST && <p class="dim">… and {facts.length - MOST} more.</p>}
    </div>
  );
}
