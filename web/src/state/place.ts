/**
 * Where in the page the person is. The browser keeps it with each entry of its history, so that back, forward and
 * reload lead there; the address shows no name of a file.
 */
import { effect, signal } from "@preact/signals";

export type Screen = "needs-you" | "agents" | "reviews" | "backlog" | "time" | "more";
export type MoreSection = "landings" | "overlaps" | "values" | "signals" | "archive" | "settings" | "metrics" | "repositories";

export const screen = signal<Screen>("needs-you");
/** The review that is open on the reviews' screen; null: the list alone. */
export const openReview = signal<string | null>(null);
/** Which reviews the reviews' screen shows. */
export const reviewsShown = signal<"waiting" | "decided">("waiting");
/** The resource or agent whose panel is open. */
export const openDetail = signal<{ kind: "resource" | "agent"; name: string } | null>(null);
/** What the screen "More" shows. */
export const moreSection = signal<MoreSection>("landings");
export const helpShown = signal(false);

export function goToReview(review: string): void {
  openReview.value = review;
  reviewsShown.value = "waiting";
  screen.value = "reviews";
}

interface Place {
  screen: Screen;
  review: string | null;
  section: MoreSection;
}

/** Go where the browser's history says, and keep it up to date from now on. */
export function followHistory(): void {
  show(history.state as Place | null);
  addEventListener("popstate", (event) => show(event.state as Place | null));
  effect(() => {
    const place: Place = { screen: screen.value, review: openReview.value, section: moreSection.value };
    const kept = history.state as Place | null;
    if (kept === null) {
      history.replaceState(place, "");
    } else if (kept.screen !== place.screen || kept.section !== place.section) {
      history.pushState(place, "");
    } else if (kept.review !== place.review) {
      history.replaceState(place, ""); // a review more is no step back: `p` is
    }
  });
}

function show(place: Place | null): void {
  if (place !== null) {
    openReview.value = place.review;
    moreSection.value = place.section;
    screen.value = place.screen;
  }
}
