/** The changes of one file, each with verdicts of its own. */
import type { ReviewFile } from "../api/shapes";
import { decideHunk } from "../state/actions";
import { type Hunk, readHunks } from "../state/hunks";
import { Words } from "./Words";

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
            <button type="button" onClick={() => void decideHunk(review, "keep", file, hunk.number)}>
              Keep change {hunk.number}
            </button>
            <button type="button" onClick={() => void decideHunk(review, "revert", file, hunk.number)}>
              Revert change {hunk.number}
            </button>
          </p>
          <HunkText hunk={hunk} />
        </li>
      ))}
    </ol>
  );
}

const KINDS: Record<string, string> = { "+": "added", "-": "removed" };

function HunkText({ hunk }: { hunk: Hunk }) {
  return (
    <pre class="hunk">
      <span class="dim">
        <Words text={hunk.heading} />
      </span>
      {hunk.lines.map((line, index) => (
        <span key={index} class={KINDS[line[0] ?? ""]}>
          <Words text={`\n${line}`} />
        </span>
      ))}
    </pre>
  );
}
