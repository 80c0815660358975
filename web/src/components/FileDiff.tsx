/** One file of a review: what it was when it was leased beside what was left. */
import { signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import type { ReviewFile } from "../api/shapes";
import type { Layout } from "../diff/mergeView";
import { Words } from "./Words";

/** What the person has chosen; null: by the width of the page. */
const chosen = signal<Layout | null>(null);
/** Two texts beside each other want so much room (px). */
const BESIDE_PX = 720;

export function FileDiff({ file }: { file: ReviewFile }) {
  const host = useRef<HTMLDivElement>(null);
  const failed = useSignal(false);
  const before = decode(file.baseline);
  const after = decode(file.flagged);
  const layout = chosen.value ?? (innerWidth < BESIDE_PX ? "unified" : "side-by-side");
  const other: Layout = layout === "unified" ? "side-by-side" : "unified";
  const whole = before !== null && after !== null && !file.baseline_at && !file.flagged_at;
  useEffect(() => {
    failed.value = false;
    const element = host.current;
    if (!whole || element === null) {
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
  if (whole && !failed.value) {
    return (
      <>
        <button type="button" onClick={() => (chosen.value = other)}>
          {other === "unified" ? "Show it unified" : "Show it side by side"}
        </button>
        <div class="diff" ref={host} role="group" aria-label={`Difference of ${file.path}`} />
      </>
    );
  }
  return (
    <pre class="diff">
      <Words text={file.diff || file.note || "It is no text, or too large to be shown here."} />
    </pre>
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
