/** One review: the file that is looked at, its verdicts, and the keys for both. */
import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect } from "preact/hooks";

import type { Review, Verdict } from "../api/shapes";
import { copyEditorCommand, decide, showReview, undoLast } from "../state/actions";
import { helpShown, openReview } from "../state/place";
import { status } from "../state/store";
import { ago } from "../words/texts";
import { now } from "../state/now";
import { FileDiff } from "./FileDiff";
import { ReviewActions } from "./ReviewActions";
import { ReviewContext } from "./ReviewContext";
import { Words } from "./Words";

interface Props {
  review: Review | null;
  /** The reviews before and after it in the list. */
  previous: string | null;
  next: string | null;
}

export function ReviewPage({ review, previous, next }: Props) {
  const whole = useSignal<Review | null>(null);
  const place = useSignal(0);
  const name = review?.review ?? null;
  // A verdict on a part leaves the review open over other contents.
  const contents = review?.files.map((file) => `${file.path} ${file.baseline_hash} ${file.flagged_hash}`).join("\0");
  useEffect(() => {
    place.value = 0;
  }, [name]);
  useEffect(() => {
    let current = true;
    if (name !== null) {
      showReview(name, true).then(
        (reply) => current && (whole.value = reply),
        () => undefined, // it was decided meanwhile: the list says so
      );
    }
    return () => {
      current = false;
    };
  }, [name, contents]);

  /** A verdict on all of it; then the next review is shown. */
  const decideAll = async (review: string, verdict: Verdict) => {
    if (await decide(review, verdict)) {
      openReview.value = next ?? previous;
    }
  };

  // What was told of the review before it is not shown below this one's name, not for one picture.
  const details = whole.value?.review === name ? whole.value : null;
  const files = details?.files ?? review?.files ?? [];
  // Before the browser paints: a key has to mean the review and file that are seen, never the last ones.
  useLayoutEffect(() => {
    const verdicts: Record<string, Verdict> = { a: "keep", r: "revert", g: "reassign" };
    const onKey = (event: KeyboardEvent) => {
      if (isTyping(event) || helpShown.value) {
        return;
      }
      const verdict = verdicts[event.key];
      if (event.key === "?") {
        helpShown.value = true;
      } else if (event.key === "u") {
        void undoLast();
      } else if (event.key === "e") {
        const edit = document.getElementById("edit");
        if (edit?.checkVisibility()) {
          edit.click();
        }
      } else if (name === null) {
        return;
      } else if (verdict !== undefined) {
        void decideAll(name, verdict);
      } else if (event.key === "j" && place.value < files.length - 1) {
        place.value += 1;
      } else if ((event.key === "j" || event.key === "n") && next !== null) {
        openReview.value = next;
      } else if (event.key === "p" && previous !== null) {
        openReview.value = previous;
      } else if (event.key === "k" && place.value > 0) {
        place.value -= 1;
      } else {
        return;
      }
      event.preventDefault();
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, [name, previous, next, files.length]);

  if (review === null) {
    return null;
  }
  const file = files[Math.min(place.value, files.length - 1)];
  return (
    <article class="review" aria-label={`Review ${review.review}`}>
      <header>
        <h2>
          {review.review}: <Words text={review.summary} />
        </h2>
        <p class="dim">
          <Words isSentence text={[review.agent && `left by ${review.agent}`, review.task, review.reason === "unlanded" ? "did not land" : review.reason, ago(review.opened_at, now.value)].filter(Boolean).join(" · ")} />
        </p>
        {review.under_way && <p class="banner">A verdict is being carried out: {review.under_way}.</p>}
        {review.saved.map((saved) => (
          <p key={saved} class="banner">
            <Words text={saved} />
          </p>
        ))}
        <ReviewActions
          may={review.may ?? []}
          decideAll={(verdict) => void decideAll(review.review, verdict)}
          goOn={next === null ? null : () => (openReview.value = next)}
        />
      </header>
      <ul class="files" aria-label="Files of this review">
        {files.map((entry, index) => (
          <li key={`${entry.worktree ?? ""}\0${entry.path}`}>
            <button type="button" aria-current={index === place.value ? "true" : undefined} onClick={() => (place.value = index)}>
              <Words text={entry.path} /> <span class="dim">{entry.change}</span>
            </button>
          </li>
        ))}
      </ul>
      <div class="review-body">
        {file !== undefined && details !== null && (
          <div>
            <p class="actions">
              {files.length > 1 && (
                <span class="actions" data-acts>
                  This file alone:
                  <button type="button" onClick={() => void decide(review.review, "keep", [file.path])}>
                    Keep it
                  </button>
                  <button type="button" onClick={() => void decide(review.review, "revert", [file.path])}>
                    Revert it
                  </button>
                </span>
              )}
              <button type="button" onClick={() => void copyEditorCommand(status.value?.root ?? "", file)}>
                Copy to your editor
              </button>
            </p>
            <FileDiff review={review.review} file={file} onDecided={() => (openReview.value = next ?? previous)} />
          </div>
        )}
        {details !== null && <ReviewContext review={details} />}
      </div>
    </article>
  );
}

function isTyping(event: KeyboardEvent): boolean {
  const target = event.composedPath()[0];
  return (
    event.ctrlKey ||
    event.metaKey ||
    event.altKey ||
    target instanceof HTMLInputElement ||
    target instanceof HTMLTextAreaElement ||
    (target instanceof HTMLElement && target.dataset["editing"] !== undefined)
  );
}
