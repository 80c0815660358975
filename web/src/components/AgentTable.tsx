/** Live agents: what each does, and for how long. */
import { now } from "../state/now";
import { openDetail } from "../state/place";
import { status } from "../state/store";
import { ago, clock, counted } from "../words/texts";
import { Table } from "./Table";
import { Words } from "./Words";

export function AgentTable() {
  const agents = status.value?.agents ?? [];
  if (agents.length === 0) {
    return (
      <section>
        <h2>Agents</h2>
        <p class="empty">
          No agent is registered. <code>coord launch tasks.yaml --agents 3</code> sets some to work.
        </p>
      </section>
    );
  }
  return (
    <section aria-labelledby="agents">
      <h2 id="agents">Agents</h2>
      <div class="agents" tabIndex={0} role="group" aria-label="Table of agents, scrolled by the arrow keys">
        <Table headings={["Agent", "State", "Does", "Holds", "Last seen"]}>
          {agents.map((agent) => (
            <tr key={agent.agent}>
              <th scope="row">
                <button type="button" class="link" onClick={() => (openDetail.value = { kind: "agent", name: agent.agent })}>
                  <Words text={agent.agent} />
                </button>
              </th>
              <td>{agent.rests_until ? `rests until ${clock(agent.rests_until)}` : agent.state === "stale" ? "silent" : agent.state}</td>
              <td class="words">
                <Words text={[...agent.tasks, agent.progress ?? agent.description].filter(Boolean).join(": ")} />
              </td>
              <td>{counted(agent.leases, "lease")}</td>
              <td>{ago(agent.seen_at, now.value)}</td>
            </tr>
          ))}
        </Table>
      </div>
    </section>
  );
}
