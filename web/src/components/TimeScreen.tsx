/** The time line of the live page: it follows the work while it is on the screen. */
import { useEffect } from "preact/hooks";

import { followWork } from "../state/timelineSource";
import { timeline } from "../state/timeline";
import { TimeView } from "./TimeView";

export function TimeScreen() {
  useEffect(followWork, []);
  const told = timeline.value;
  if (told === null) {
    return <p class="empty">Reading the log …</p>;
  }
  if (told.since === null) {
    return (
      <p class="empty">
        Nothing has happened yet. <code>coord launch tasks.yaml --agents 3</code> sets some agents to work.
      </p>
    );
  }
  return <TimeView />;
}
