/** Goes to any moment of the window: by a slider, change by change, and back to the end. */
import { goTo, goToChange, moment, view } from "../state/timeline";
import { fullInstant } from "../words/instants";

/** Places of the slider. */
const PLACES = 1000;

export function Scrubber() {
  const { from, to } = view.value;
  const at = moment.value ?? to;
  return (
    <section class="scrubber" aria-label="A moment">
      <input
        type="range"
        aria-label="Moment"
        aria-valuetext={moment.value === null ? "the end" : fullInstant(at)}
        min={0}
        max={PLACES}
        value={Math.round(((at - from) / (to - from)) * PLACES)}
        onInput={(event) => goTo(from + (Number(event.currentTarget.value) / PLACES) * (to - from))}
      />
      <div class="actions">
        <button type="button" onClick={() => goToChange(-1)}>
          Previous change
        </button>
        <button type="button" onClick={() => goToChange(1)}>
          Next change
        </button>
        <button type="button" disabled={moment.value === null} onClick={() => (moment.value = null)}>
          Back to the end
        </button>
      </div>
    </section>
  );
}
