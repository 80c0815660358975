/** The verdicts on all of a review, with their keys. */
import type { Verdict } from "../api/shapes";
import { undoLast } from "../state/actions";
import { helpShown } from "../state/place";

interface Props {
  /** The verdicts that are possible now. */
  may: readonly string[];
  decideAll(verdict: Verdict): void;
  /** Shows the review after this one; null: this is the last one. */
  goOn: (() => void) | null;
}

export function ReviewActions({ may, decideAll, goOn }: Props) {
  return (
    <div class="actions">
      <button type="button" class="best" data-acts onClick={() => decideAll("keep")}>
        Keep <kbd>a</kbd>
      </button>
      <button type="button" data-acts onClick={() => decideAll("revert")}>
        Revert <kbd>r</kbd>
      </button>
      {may.includes("reassign") && (
        <button type="button" data-acts onClick={() => decideAll("reassign")}>
          Reassign <kbd>g</kbd>
        </button>
      )}
      <button type="button" data-acts onClick={() => void undoLast()}>
        Undo <kbd>u</kbd>
      </button>
      {goOn !== null && (
        <button type="button" onClick={goOn}>
          Next <kbd>n</kbd>
        </button>
      )}
      <button type="button" onClick={() => (helpShown.value = true)} aria-label="Show the keys">
        <kbd>?</kbd>
      </button>
    </div>
  );
}
