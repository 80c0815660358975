/**
 * A saved report: the time line of a finished run, in one file that needs no network. What is shown
 * stands in the file itself (`coord report --html` has put it there), and nobody is asked.
 */
import "./styles.css";
import "./time.css";

import { effect } from "@preact/signals";
import { render } from "preact";

import type { Timeline } from "./api/shapes";
import { TimeView } from "./components/TimeView";
import { Words } from "./components/Words";
import { readSpans } from "./state/then";
import { bounds, moment, showAll, then, timeline } from "./state/timeline";

interface Saved {
  readonly title: string;
  readonly timeline: Timeline;
}

const saved = JSON.parse((document.getElementById("saved") as HTMLElement).textContent) as Saved;

function SavedReport() {
  return (
    <>
      <header class="top">
        <h1>
          <Words text={saved.title} />
        </h1>
      </header>
      <main>{saved.timeline.since === null ? <p class="empty">Nothing happened in this time.</p> : <TimeView />}</main>
    </>
  );
}

const to = Date.parse(saved.timeline.until);
bounds.value = { from: saved.timeline.since === null ? to - 1000 : Date.parse(saved.timeline.since), to };
timeline.value = saved.timeline;
showAll();
effect(() => {
  then.value = readSpans(saved.timeline.spans, moment.value ?? to);
});
document.title = saved.title;
render(<SavedReport />, document.getElementById("page") as HTMLElement);
