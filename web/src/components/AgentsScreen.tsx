/** Agents, who waits for whom, and what is leased. */
import { openDetail } from "../state/place";
import { AgentTable } from "./AgentTable";
import { DetailPanel } from "./DetailPanel";
import { LeaseTable } from "./LeaseTable";
import { WaitList } from "./WaitList";

export function AgentsScreen() {
  return (
    <div class={openDetail.value === null ? "columns" : "columns with-detail"}>
      <div>
        <AgentTable />
        <WaitList />
        <LeaseTable />
      </div>
      {openDetail.value !== null && <DetailPanel />}
    </div>
  );
}
