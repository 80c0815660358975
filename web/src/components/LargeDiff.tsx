/** A file that is too large to be shown whole: its hunks, some at a time. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import { Refusal } from "../api/refusal";
import type { HunkList, ReviewFile } from "../api/shapes";
import { showHunks } from "../state/actions";
import { DiffText } from "./DiffText";
import { Words } from "./Words";

export function LargeDiff({ review, file }: { review: string; file: ReviewFile }) {
  const parts = useSignal<readonly HunkList[]>([]);
  const refused = useSignal("");
  const load = async (skip: number, isCurrent: () => boolean) => {
    try {
      const part = await showHunks(review, file, skip);
      if (isCurrent()) {
        parts.value = [...parts.value, part];
      }
    } catch (bad) {
      if (!(bad instanceof Refusal)) {
        throw bad;
      }
      refused.value = isCurrent() ? bad.message : refused.value;
    }
  };
  useEffect(() => {
    let current = true;
    parts.value = [];
    refused.value = "";
    void load(0, () => current);
    return () => {
      current = false;
    };
  }, [review, file.path, file.baseline_hash, file.flagged_hash]);
  const last = parts.value.at(-1);
  if (last === undefined) {
    return <p class="empty">{refused.value === "" ? "Comparing …" : <Words text={refused.value} />}</p>;
  }
  const next = last.next ?? null;
  return (
    <>
      <p class="dim">
        It is too large to be shown whole. {last.total === 0 ? <Words text={last.said || "No line of it differs."} /> : `Changes: ${last.total}.`}
      </p>
      <ol class="hunks" aria-label={`Changes of ${file.path}`}>
        {parts.value.flatMap((part) =>
          part.items.map((hunk) => (
            <li key={hunk.number}>
              <p class="dim">
                Change {hunk.number} of {part.total}
                {hunk.cut && ", not all of it"}
              </p>
              <DiffText lines={hunk.text.replace(/\n$/, "").split("\n")} />
            </li>
          )),
        )}
      </ol>
      {next !== null && (
        <button type="button" onClick={() => void load(next, () => parts.value.at(-1) === last)}>
          Show the next changes
        </button>
      )}
    </>
  );
}
