/** The changes of one file, each with verdicts of its own. */
import type { ReviewFile } from "../api/shapes";
import { decideHunk } from "../state/actions";
import { readHunks } from "../state/hunks";
import { DiffText } from "./DiffText";

export function HunkList({ review, file }: { review: string; file: ReviewFile }) {
  const hunks = readHunks(file);
  return (
    <ol class="hunks" aria-label={`Changes of ${file.path}`}>
      {hunks.map((hunk) => (
        <li key={hunk.number}>
          <p class="actions">
            <span class="dim">
              Change {hunk.number} of {hunks.length}
            </span>
            <button type="button" data-acts onClick={() => void decideHunk(review, "keep", file, hunk.number)}>
              Keep change {hunk.number}
            </button>
            <button type="button" data-acts onClick={() => void decideHunk(review, "revert", file, hunk.number)}>
              Revert change {hunk.number}
            </button>
          </p>
          <DiffText lines={[hunk.heading, ...hunk.lines]} />
        </li>
      ))}
    </ol>
  );
}
