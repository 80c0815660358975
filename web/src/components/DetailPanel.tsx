/** One file or agent: its leases, its requests, its story. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import { followLeases, leasesAbout } from "../state/leasesAbout";
import { openDetail } from "../state/place";
import { status } from "../state/store";
import { clock } from "../words/texts";
import { AskForm } from "./AskForm";
import { MessageForm } from "./MessageForm";
import { RequestCard } from "./RequestCard";
import { StoryList } from "./StoryList";
import { Words } from "./Words";

type Tab = "leases" | "requests" | "story";
const TITLES: Record<Tab, string> = { leases: "Leases", requests: "Requests", story: "Story" };

export function DetailPanel() {
  const tab = useSignal<Tab>("leases");
  const about = openDetail.value;
  useEffect(() => {
    document.getElementById("detail")?.focus();
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
  return (
    <aside id="detail" class="detail" tabIndex={-1} aria-label={`About ${about.name}`} onKeyDown={(event) => event.key === "Escape" && close()}>
      <header>
        <h2><Words text={about.name} /></h2>
        <button type="button" onClick={close} aria-label="Close this panel">
          ×
        </button>
      </header>
      <div role="tablist" aria-label="What to see">
        {(Object.keys(TITLES) as Tab[]).map((name) => (
          <button key={name} type="button" role="tab" id={`tab-${name}`} aria-controls="tab-panel" aria-selected={tab.value === name} onClick={() => (tab.value = name)}>
            {TITLES[name]}
            {name === "requests" && requests.length > 0 && <span class="count">{requests.length}</span>}
          </button>
        ))}
      </div>
      <div role="tabpanel" id="tab-panel" aria-labelledby={`tab-${tab.value}`}>
        {tab.value === "leases" &&
          (leases.length === 0 ? (
            <p class="empty">It has no lease now.</p>
          ) : (
            <ul class="plain">
              {leases.map((lease) => (
                <li key={`${lease.resource} ${lease.locked_by} ${lease.fencing_token}`}>
                  <Words text={`${lease.locked_by} holds ${lease.resource} (${lease.mode}) until ${clock(lease.expires_at)}${lease.description ? `: ${lease.description}` : ""}`} />
                </li>
              ))}
            </ul>
          ))}
        {tab.value === "leases" && about.kind === "agent" && <MessageForm to={about.name} replyTo={null} />}
        {tab.value === "requests" && about.kind === "resource" && leases.length > 0 && <AskForm resource={about.name} />}
        {tab.value === "requests" &&
          (requests.length === 0 ? (
            <p class="empty">Nobody asks for it.</p>
          ) : (
            <ul class="cards">
              {requests.map((request) => (
                <RequestCard key={request.request} request={request} />
              ))}
            </ul>
          ))}
        {tab.value === "story" && <StoryList subject={about.name} />}
      </div>
    </aside>
  );
}

function close(): void {
  openDetail.value = null;
}
