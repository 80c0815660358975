/** What a reviewer wants beside the difference: the task, what the agent said last, and how it came to this. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import type { Review, Task } from "../api/shapes";
import { showTask } from "../state/actions";
import { Words } from "./Words";

export function ReviewContext({ review }: { review: Review }) {
  const task = useSignal<Task | null>(null);
  useEffect(() => {
    task.value = null;
    let current = true;
    if (review.task !== null) {
      showTask(review.task).then(
        (reply) => current && (task.value = reply),
        () => undefined, // the review says its name all the same
      );
    }
    return () => {
      current = false;
    };
  }, [review.task]);
  return (
    <aside class="review-context" aria-label={`About ${review.review}`}>
      {task.value !== null && (
        <section>
          <h3>
            Task {task.value.task}: <Words text={task.value.title} />
          </h3>
          {task.value.prompt !== "" && <pre><Words text={task.value.prompt} /></pre>}
        </section>
      )}
      {review.log_tail !== "" && (
        <section>
          <h3>What the agent said last</h3>
          <pre><Words text={review.log_tail} /></pre>
        </section>
      )}
      {review.timeline.length > 0 && (
        <section>
          <h3>How it came to this</h3>
          <ol class="story">
            {review.timeline.map((sentence, index) => (
              <li key={index}><Words text={sentence} /></li>
            ))}
          </ol>
        </section>
      )}
    </aside>
  );
}
