/** One file of a review: what it was when it was leased beside what was left, or change by change; or edited, to be kept so. */
import { signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import type { ReviewFile } from "../api/shapes";
import type { Layout } from "../diff/mergeView";
import { keepEdited } from "../state/actions";
import { beginDraft, type Draft, endDraft, findDraft } from "../state/drafts";
import { readHunks } from "../state/hunks";
import { HunkList } from "./HunkList";
import { LargeDiff } from "./LargeDiff";
import { Words } from "./Words";

type Shown = Layout | "by-change";
const TITLES: Record<Shown, string> = { "side-by-side": "Side by side", unified: "Unified", "by-change": "Change by change" };
/** What the person has chosen; null: by the width of the page. */
const chosen = signal<Shown | null>(null);
/** Two texts of more than this (signs in base64) are shown by their hunks. */
const MERGED_MAX = 3_000_000;
/** Two texts beside each other want so much room (px). */
const BESIDE_PX = 720;

interface Props {
  review: string;
  file: ReviewFile;
  /** Nothing is left to decide of this review. */
  onDecided(): void;
}

export function FileDiff({ review, file: current, onDecided }: Props) {
  const draft = findDraft(review, current);
  const file = draft?.file ?? current; // who edits goes on with what he has begun
  const host = useRef<HTMLDivElement>(null);
  const failed = useSignal(false);
  const large = Boolean(file.baseline_at || file.flagged_at) || (file.baseline?.length ?? 0) + (file.flagged?.length ?? 0) > MERGED_MAX;
  const before = large ? null : decode(file.baseline);
  const after = large ? null : decode(file.flagged);
  const whole = file.kept && before !== null && after !== null;
  const divided = readHunks(file).length > 0;
  const wanted = chosen.value ?? (innerWidth < BESIDE_PX ? "unified" : "side-by-side");
  const layout: Shown = wanted === "by-change" && (!divided || draft !== undefined) ? "unified" : wanted;
  const save = async (made: Draft) => {
    const kept = await keepEdited(made);
    if (kept !== null && kept.part_of === null) {
      onDecided();
    }
  };
  useEffect(() => {
    failed.value = false;
    const element = host.current;
    if (!whole || element === null || layout === "by-change") {
      return undefined;
    }
    let close: (() => void) | null = null;
    let isShown = true;
    const editing = draft && { onChange: (text: string) => (draft.text = text), onSave: () => void save(draft) };
    // The editor is the largest part of the page: it comes with the first difference.
    import("../diff/mergeView").then(
      async ({ showMerge }) => {
        const closeView = await showMerge(element, file.path, before, draft?.text ?? after, layout, editing ?? null);
        if (isShown) {
          close = closeView;
        } else {
          closeView();
        }
      },
      () => (failed.value = true),
    );
    return () => {
      isShown = false;
      close?.();
    };
  }, [file.path, file.worktree, before, after, layout, draft]);
  const merged = whole && !failed.value;
  return (
    <>
      <div class="actions">
        <div class="actions" role="group" aria-label="How it is shown">
          {(Object.keys(TITLES) as Shown[])
            .filter((shown) => (shown === "by-change" ? divided && draft === undefined : merged))
            .map((shown) => (
              <button key={shown} type="button" aria-pressed={shown === layout} onClick={() => (chosen.value = shown)}>
                {TITLES[shown]}
              </button>
            ))}
        </div>
        {merged && draft === undefined && (
          <button type="button" id="edit" data-acts onClick={() => beginDraft(review, file, after)}>
            Edit <kbd>e</kbd>
          </button>
        )}
      </div>
      {draft !== undefined && (
        <p class="actions" data-acts>
          <span>
            You edit <Words text={file.path} />.
          </span>
          <button type="button" class="best" onClick={() => void save(draft)}>
            Keep your text
          </button>
          <button type="button" onClick={() => endDraft(draft)}>
            Discard it
          </button>
        </p>
      )}
      {layout === "by-change" ? (
        <HunkList review={review} file={file} />
      ) : merged ? (
        <div class="diff" ref={host} role="group" aria-label={`Difference of ${file.path}`} />
      ) : large && file.kept ? (
        <LargeDiff review={review} file={file} />
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
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    return text.includes("\0") ? null : text;
  } catch {
    return null;
  }
}
