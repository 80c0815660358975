/** Flagged work that waits for a verdict: the list, and the one that is looked at; or those that were decided. */
import { openReview, reviewsShown } from "../state/place";
import { DecidedReviews } from "./DecidedReviews";
import { status } from "../state/store";
import { counted } from "../words/texts";
import { ReviewPage } from "./ReviewPage";
import { Tabs } from "./Tabs";
import { Words } from "./Words";

export function ReviewsScreen() {
  return (
    <Tabs label="Which reviews" titles={{ waiting: "Waiting", decided: "Decided" }} shown={reviewsShown.value} show={(which) => (reviewsShown.value = which)}>
      {reviewsShown.value === "waiting" ? <OpenReviews /> : <DecidedReviews />}
    </Tabs>
  );
}

function OpenReviews() {
  const reviews = status.value?.reviews ?? [];
  const current = reviews.find((review) => review.review === openReview.value) ?? reviews[0];
  if (current === undefined) {
    return (
      <section>
        <h2>Reviews</h2>
        <p class="empty">
          No review waits. What an agent leaves half done comes here; nothing of it is thrown away. <kbd>u</kbd> takes your last verdict back.
        </p>
        <ReviewPage review={null} previous={null} next={null} />
      </section>
    );
  }
  const place = reviews.indexOf(current);
  return (
    <div class="reviews">
      <nav aria-label="Open reviews">
        <h2>Reviews</h2>
        <ul class="plain">
          {reviews.map((review) => (
            <li key={review.review}>
              <button
                type="button"
                aria-current={review === current ? "true" : undefined}
                onClick={() => (openReview.value = review.review)}
              >
                <strong>{review.review}</strong> <Words text={review.summary} />
                <span class="dim"> {counted(review.files.length, "file")}</span>
              </button>
            </li>
          ))}
        </ul>
      </nav>
      <ReviewPage review={current} previous={reviews[place - 1]?.review ?? null} next={reviews[place + 1]?.review ?? null} />
    </div>
  );
}
