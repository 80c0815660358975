/** Agents, who waits for whom, what is leased, and who has which value of a pool. */
import { openDetail } from "../state/place";
import { AgentTable } from "./AgentTable";
import { DetailPanel } from "./DetailPanel";
import { LeaseTable } from "./LeaseTable";
import { PoolTable } from "./PoolTable";
import { WaitList } from "./WaitList";

export function AgentsScreen() {
  return (
    <div class={openDetail.value === null ? "columns" : "columns with-detail"}>
      <div>
        <AgentTable />
        <WaitList />
        <LeaseTable />
        <PoolTable />
      </div>
      {openDetail.value !== null && <DetailPanel />}
    </div>
  );
}
