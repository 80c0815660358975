/** Reviews that were decided on: which verdict, by whom and when; taken back where that still can be. */
import "../backlog.css";

import type { Review } from "../api/shapes";
import { undo } from "../state/actions";
import { decidedCount, decidedReviews } from "../state/decidedReviews";
import { now } from "../state/now";
import { useRowWindow } from "../state/rowWindow";
import { ago } from "../words/texts";
import { TaskButton } from "./TaskButton";
import { WindowedRows } from "./WindowedRows";
import { Words } from "./Words";

const ROW_PX = 44;
const HEADINGS = ["Review", "Verdict", "By", "When", "Files", "What happened, and the note", "Do"];

export function DecidedReviews() {
  const rows = useRowWindow(ROW_PX);
  const total = decidedCount.value;
  return (
    <section aria-labelledby="decided">
      <h2 id="decided">Decided</h2>
      {total === 0 && <p class="empty">No verdict was given yet.</p>}
      <div class="scrolled tasks decided" ref={rows.box} tabIndex={0} role="group" aria-label="Decided reviews, scrolled by the arrow keys" onScroll={rows.onScroll}>
        <table aria-rowcount={total + 1}>
          <thead>
            <tr aria-rowindex={1}>
              {HEADINGS.map((heading) => (
                <th key={heading} scope="col">
                  {heading}
                </th>
              ))}
            </tr>
          </thead>
          <WindowedRows list={decidedReviews} window={rows} total={Math.max(total, 1)} rowPx={ROW_PX} columns={HEADINGS.length} keyOf={(review) => review.review} draw={drawRow} />
        </table>
      </div>
    </section>
  );
}

function drawRow(review: Review, place: number) {
  return (
    <tr aria-rowindex={place + 2}>
      <th scope="row">{review.review}</th>
      <td>{review.state}</td>
      <td>
        <Words text={review.decided_by ?? ""} />
      </td>
      <td>{ago(review.decided_at ?? "", now.value)}</td>
      <td>
        <Words text={review.files.map((file) => file.path).join(", ")} />
      </td>
      <td>
        <Words text={[review.note, review.part_of && `a part of ${review.part_of}`, review.summary].filter(Boolean).join(" · ")} />
      </td>
      <td class="task-buttons" data-acts>
        {review.may?.includes("undo") && (
          <TaskButton label={`Undo the verdict on ${review.review}`} title="Take it back: the review is open again" press={() => void undo(review.review)}>
            Undo
          </TaskButton>
        )}
      </td>
    </tr>
  );
}
