/** The time line of the live page: it follows the work while it is on the screen. */
import { useEffect } from "preact/hooks";

import { followWork } from "../state/timelineSource";
import { timeline } from "../state/timeline";
import { TimeView } from "./TimeView";

export function TimeScreen() {
  useEffect(followWork, []);
  const reply = timeline.value;
  if (reply === null) {
    return <p class="empty">Reading the log …</p>;
  }
  if (reply.since === null) {
    return (
      <p class="empty">
        Nothing has happened yet. <code>coord launch tasks.yaml --agents 3</code> sets some agents to work.
      </p>
    );
  }
  return <TimeView />;
}
