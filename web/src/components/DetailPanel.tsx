/** One file or agent: its leases, what is changed below them, its requests, its log, its story. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import type { Status } from "../api/shapes";
import { followLeases, leasesAbout } from "../state/leasesAbout";
import { openDetail } from "../state/place";
import { status } from "../state/store";
import { clock } from "../words/texts";
import { AskForm } from "./AskForm";
import { MessageForm } from "./MessageForm";
import { RequestCard } from "./RequestCard";
import { StoryList } from "./StoryList";
import { Tabs } from "./Tabs";
import { TaskLog } from "./TaskLog";
import { WorkList } from "./WorkList";
import { Words } from "./Words";

type Tab = "leases" | "work" | "requests" | "log" | "story";
const TITLES: Record<Tab, string> = { leases: "Leases", work: "Changes", requests: "Requests", log: "Log", story: "Story" };

export function DetailPanel() {
  const tab = useSignal<Tab>("leases");
  const about = openDetail.value;
  useEffect(() => {
    const panel = document.getElementById("detail");
    panel?.focus({ preventScroll: true });
    // Below the list, on a narrow page, it would be out of sight.
    const top = panel?.getBoundingClientRect().top ?? 0;
    if (top < 0 || top > innerHeight / 2) {
      panel?.scrollIntoView();
    }
  }, [about]);
  useEffect(() => (about === null ? undefined : followLeases(about)), [about]);
  const snapshot = status.value;
  if (about === null || snapshot === null) {
    return null;
  }
  const isAbout = (resource: string, ...agents: (string | null)[]) =>
    about.kind === "agent" ? agents.includes(about.name) : resource === about.name;
  const leases = leasesAbout.value;
  const requests = snapshot.requests.filter((request) => isAbout(request.resource, request.requested_by, request.holder));
  const task = findTask(about, snapshot);
  const { log, ...always } = TITLES;
  const count = requests.length > 0 && <span class="count">{requests.length}</span>;
  const titles = { ...always, requests: <>{always.requests}{count}</>, ...(task === null ? {} : { log }) };
  const shown = tab.value in titles ? tab.value : "leases";
  return (
    <aside id="detail" class="detail" tabIndex={-1} aria-label={`About ${about.name}`} onKeyDown={(event) => event.key === "Escape" && close()}>
      <header>
        <h2><Words text={about.name} /></h2>
        <button type="button" onClick={close} aria-label="Close this panel">
          ×
        </button>
      </header>
      <Tabs label="What to see" titles={titles} shown={shown} show={(name) => (tab.value = name)}>
        {shown === "leases" &&
          (leases.length === 0 ? (
            <p class="empty">It has no lease now.</p>
          ) : (
            <ul class="plain">
              {leases.map((lease) => (
                <li key={`${lease.resource} ${lease.locked_by} ${lease.fencing_token}`}>
                  <Words text={lease.locked_by} /> holds <Words text={lease.resource} /> ({lease.mode}) until {clock(lease.expires_at)}
                  {lease.description && (
                    <>
                      : <Words text={lease.description} />
                    </>
                  )}
                </li>
              ))}
            </ul>
          ))}
        {shown === "leases" && about.kind === "agent" && <MessageForm to={about.name} replyTo={null} />}
        {shown === "requests" && about.kind === "resource" && leases.length > 0 && <AskForm resource={about.name} />}
        {shown === "requests" &&
          (requests.length === 0 ? (
            <p class="empty">Nobody asks for it.</p>
          ) : (
            <ul class="cards">
              {requests.map((request) => (
                <RequestCard key={request.request} request={request} />
              ))}
            </ul>
          ))}
        {shown === "work" && <WorkList about={about} />}
        {shown === "log" && task !== null && <TaskLog task={task} />}
        {shown === "story" && <StoryList subject={about.name} />}
      </Tabs>
    </aside>
  );
}

/** The task that an agent works on, or for which a file is leased. */
function findTask(about: { kind: "resource" | "agent"; name: string }, snapshot: Status): string | null {
  if (about.kind === "agent") {
    return snapshot.agents.find((agent) => agent.agent === about.name)?.tasks[0] ?? null;
  }
  return leasesAbout.value.find((lease) => lease.task !== null)?.task ?? null;
}

function close(): void {
  openDetail.value = null;
}
