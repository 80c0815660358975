/** The page's screens. */
import { openReview, type Screen, screen } from "../state/place";
import { status, waiting } from "../state/store";

/** Tasks in these states wait for nobody. */
const CLOSED = new Set(["done", "cancelled"]);

export function ScreenTabs() {
  const counts: Record<Screen, number> = {
    "needs-you": waiting.value,
    agents: status.value?.agents.length ?? 0,
    reviews: status.value?.reviews.length ?? 0,
    backlog: countOpenTasks(status.value?.tasks ?? {}),
    time: 0,
    more: 0,
  };
  const names: [Screen, string][] = [
    ["needs-you", "Needs you"],
    ["agents", "Agents and leases"],
    ["reviews", "Reviews"],
    ["backlog", "Backlog"],
    ["time", "Time"],
    ["more", "More"],
  ];
  return (
    <nav aria-label="Screens">
      {names.map(([name, title]) => (
        <button
          key={name}
          type="button"
          aria-current={screen.value === name ? "page" : undefined}
          onClick={() => {
            openReview.value = null;
            screen.value = name;
          }}
        >
          {title}
          {counts[name] > 0 && <span class="count">{counts[name]}</span>}
        </button>
      ))}
    </nav>
  );
}

function countOpenTasks(counts: Readonly<Record<string, number>>): number {
  return Object.entries(counts).reduce((sum, [state, count]) => (CLOSED.has(state) ? sum : sum + count), 0);
}
