/** One lease, with its padlock. */
import type { Lease } from "../api/shapes";
import { unlock } from "../state/actions";
import { now } from "../state/now";
import { openDetail } from "../state/place";
import { left } from "../words/texts";
import { Padlock } from "./Padlock";
import { Words } from "./Words";

/** The height of a row (px); the style sheet has the same. */
export const ROW_PX = 40;

interface Props {
  lease: Lease;
  /** Its name below its folder. */
  label: string;
  depth: number;
  top: number;
  /** How many wait for it. */
  queued: number;
}

export function LeaseRow({ lease, label, depth, top, queued }: Props) {
  return (
    <li class="lease" style={{ top: `${top}px` }}>
      <button
        type="button"
        class="padlock"
        data-acts
        title="Unlock: what its holder has changed is kept as a review, and the override is noted."
        aria-label={`Unlock ${lease.resource}, held by ${lease.locked_by}`}
        onClick={() => void unlock(lease)}
      >
        <Padlock shared={lease.mode === "shared"} />
      </button>
      <button
        type="button"
        class="link resource"
        style={{ paddingInlineStart: `${depth}rem` }}
        aria-label={lease.resource}
        title={lease.resource}
        onClick={() => (openDetail.value = { kind: "resource", name: lease.resource })}
      >
        <Words text={label} />
      </button>
      <span class="holder"><Words text={lease.locked_by} /></span>
      <span class="reason dim"><Words text={lease.description || (lease.task ?? "")} /></span>
      <span class="left">{left(lease.expires_at, now.value)}</span>
      <span class="queue">{queued > 0 && (queued === 1 ? "1 waits" : `${queued} wait`)}</span>
    </li>
  );
}
