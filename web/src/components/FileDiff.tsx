/** One file of a review: what it was when it was leased beside what was left, or change by change. */
import { signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import type { ReviewFile } from "../api/shapes";
import type { Layout } from "../diff/mergeView";
import { readHunks } from "../state/hunks";
import { HunkList } from "./HunkList";
import { Words } from "./Words";

type Shown = Layout | "by-change";
const TITLES: Record<Shown, string> = { "side-by-side": "Side by side", unified: "Unified", "by-change": "Change by change" };
/** What the person has chosen; null: by the width of the page. */
const chosen = signal<Shown | null>(null);
/** Two texts beside each other want so much room (px). */
const BESIDE_PX = 720;

export function FileDiff({ review, file }: { review: string; file: ReviewFile }) {
  const host = useRef<HTMLDivElement>(null);
  const failed = useSignal(false);
  const before = decode(file.baseline);
  const after = decode(file.flagged);
  const whole = before !== null && after !== null && !file.baseline_at && !file.flagged_at;
  const divided = readHunks(file).length > 0;
  const wanted = chosen.value ?? (innerWidth < BESIDE_PX ? "unified" : "side-by-side");
  const layout: Shown = wanted === "by-change" && !divided ? "unified" : wanted;
  useEffect(() => {
    failed.value = false;
    const element = host.current;
    if (!whole || element === null || layout === "by-change") {
      return undefined;
    }
    let close: (() => void) | null = null;
    let current = true;
    // The editor is the largest part of the page: it comes with the first difference.
    import("../diff/mergeView").then(
      async ({ showMerge }) => {
        const closeView = await showMerge(element, file.path, before, after, layout);
        if (current) {
          close = closeView;
        } else {
          closeView();
        }
      },
      () => (failed.value = true),
    );
    return () => {
      current = false;
      close?.();
    };
  }, [file.path, file.worktree, before, after, layout]);
  const merged = whole && !failed.value;
  return (
    <>
      <div class="actions" role="group" aria-label="How it is shown">
        {(Object.keys(TITLES) as Shown[])
          .filter((shown) => (shown === "by-change" ? divided : merged))
          .map((shown) => (
            <button key={shown} type="button" aria-pressed={shown === layout} onClick={() => (chosen.value = shown)}>
              {TITLES[shown]}
            </button>
          ))}
      </div>
      {layout === "by-change" ? (
        <HunkList review={review} file={file} />
      ) : merged ? (
        <div class="diff" ref={host} role="group" aria-label={`Difference of ${file.path}`} />
      ) : (
        <pre class="diff">
          <Words text={file.diff || file.note || "It is no text, or too large to be shown here."} />
        </pre>
      )}
    </>
  );
}

/** The text of bytes in base64: empty for a file that is not there, null for what is no text. */
function decode(base64: string | null): string | null {
  if (base64 === null) {
    return "";
  }
  try {
    const bytes = Uint8Array.from(atob(base64), (sign) => sign.charCodeAt(0));
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return text.includes("\0") ? null : text;
  } catch {
    return null;
  }
}
