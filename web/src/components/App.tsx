/** The frame: where one is, how the coordinator is, and the screen. */
import { useSignalEffect } from "@preact/signals";

import { helpShown, screen } from "../state/place";
import { connection } from "../state/connection";
import { status, waiting } from "../state/store";
import { AgentsScreen } from "./AgentsScreen";
import { BacklogScreen } from "./BacklogScreen";
import { harmless } from "../words/texts";
import { ConnectionBanner } from "./ConnectionBanner";
import { KeyHelp } from "./KeyHelp";
import { MoreScreen } from "./MoreScreen";
import { NeedsYouScreen } from "./NeedsYouScreen";
import { News } from "./News";
import { ReviewsScreen } from "./ReviewsScreen";
import { ScreenTabs } from "./ScreenTabs";
import { TimeScreen } from "./TimeScreen";
import { Words } from "./Words";

export function App() {
  useSignalEffect(() => {
    const name = harmless(status.value?.root.split("/").at(-1) ?? "");
    document.title = `${waiting.value > 0 ? `(${waiting.value}) ` : ""}coord${name ? ` ${name}` : ""}`;
  });
  const snapshot = status.value;
  return (
    <>
      <header class="top">
        <h1>coord</h1>
        {snapshot && (
          <span class="root">
            <Words text={snapshot.root} />
          </span>
        )}
        <ScreenTabs />
      </header>
      <ConnectionBanner />
      <News />
      <main id="main" tabIndex={-1}>
        {snapshot === null ? (
          connection.value !== "ended" && <p class="empty">Asking the coordinator …</p>
        ) : screen.value === "needs-you" ? (
          <NeedsYouScreen />
        ) : screen.value === "agents" ? (
          <AgentsScreen />
        ) : screen.value === "time" ? (
          <TimeScreen />
        ) : screen.value === "backlog" ? (
          <BacklogScreen />
        ) : screen.value === "reviews" ? (
          <ReviewsScreen />
        ) : (
          <MoreScreen />
        )}
      </main>
      {helpShown.value && <KeyHelp />}
    </>
  );
}
