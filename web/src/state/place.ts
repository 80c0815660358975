/** Where in the page the person is. It stays in memory: the address shows no name of a file. */
import { signal } from "@preact/signals";

export type Screen = "needs-you" | "agents" | "reviews" | "backlog" | "time" | "more";
export type MoreSection = "landings" | "values" | "signals" | "archive" | "settings" | "metrics" | "repositories";

export const screen = signal<Screen>("needs-you");
/** The review that is open on the reviews' screen; null: the list alone. */
export const openReview = signal<string | null>(null);
/** The resource or agent whose panel is open. */
export const openDetail = signal<{ kind: "resource" | "agent"; name: string } | null>(null);
/** What the screen "More" shows. */
export const moreSection = signal<MoreSection>("landings");
export const helpShown = signal(false);

export function goToReview(review: string): void {
  openReview.value = review;
  screen.value = "reviews";
}
