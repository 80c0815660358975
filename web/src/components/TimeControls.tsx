/** Which part of the time is seen, the buttons that change it, and what the signs of a lane mean. */
import { pan, showAll, timeline, view, zoom } from "../state/timeline";
import { fullInstant } from "../words/instants";
import { counted } from "../words/texts";

const BUTTONS: readonly [string, string, () => void][] = [
  ["+", "Zoom in", () => zoom(0.5)],
  ["−", "Zoom out", () => zoom(2)],
  ["←", "Earlier", () => pan(-0.4)],
  ["→", "Later", () => pan(0.4)],
  ["All", "Show all", showAll],
];
const SIGNS: readonly [string, string][] = [
  ["task", "task"],
  ["thinking", "thinking, or a program that runs"],
  ["wait", "waits for a lease"],
  ["lease", "holds a lease"],
  ["review", "a review of its work waits"],
  ["refusal", "was refused"],
];

export function TimeControls() {
  const reply = timeline.value;
  const { from, to } = view.value;
  return (
    <section class="time-controls" aria-label="What is seen of the time">
      <div class="actions">
        {BUTTONS.map(([sign, title, act]) => (
          <button key={title} type="button" aria-label={title} title={title} onClick={act}>
            {sign}
          </button>
        ))}
        <span>
          {fullInstant(from)} to {fullInstant(to)}
        </span>
      </div>
      <ul class="signs" aria-label="Signs">
        {SIGNS.map(([kind, meaning]) => (
          <li key={kind}>
            <svg class={`sign span-${kind}`} width="18" height="12" aria-hidden="true">
              <path d={kind === "refusal" ? "M4 1h10l-5 10Z" : kind === "task" ? "M0 0h18v12h-18Z" : "M0 3h18v6h-18Z"} />
            </svg>
            {meaning}
          </li>
        ))}
      </ul>
      {reply?.together && (
        <p class="dim">
          There is more than can be drawn: what is near each other is drawn as one. Zoom in to see each.
          {reply.left_out > 0 && ` ${counted(reply.left_out, "span")} of further agents are not drawn.`}
        </p>
      )}
    </section>
  );
}
