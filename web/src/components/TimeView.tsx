/** A time of work: lanes, a moment of it, demand for files, and what it came to. Live or saved. */
import { timeline } from "../state/timeline";
import { HeatMap } from "./HeatMap";
import { Lanes } from "./Lanes";
import { MomentPanel } from "./MomentPanel";
import { ReportTables } from "./ReportTables";
import { Scrubber } from "./Scrubber";
import { SpanTable } from "./SpanTable";
import { TimeControls } from "./TimeControls";

export function TimeView() {
  const reply = timeline.value;
  if (reply === null) {
    return null;
  }
  return (
    <>
      <TimeControls />
      <Lanes />
      <Scrubber />
      <MomentPanel />
      <HeatMap />
      <ReportTables report={reply.report} />
      <SpanTable />
    </>
  );
}
