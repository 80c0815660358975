/** Who waits for whom as a picture. The list beside it says the same in words. */
import type { GraphNode, WaitGraph as Graph } from "../state/waitGraph";
import { harmless } from "../words/texts";

const BOX_WIDTH = 150;
const BOX_HEIGHT = 30;
const GAP_X = 90;
const GAP_Y = 18;
/** Longer names end in an ellipsis. */
const NAME_CHARS = 18;

const leftOf = (node: GraphNode) => 10 + node.column * (BOX_WIDTH + GAP_X);
const topOf = (node: GraphNode) => 10 + node.row * (BOX_HEIGHT + GAP_Y);
const shorten = (name: string) => (name.length > NAME_CHARS ? `${name.slice(0, NAME_CHARS - 1)}…` : name);

export function WaitGraph({ graph }: { graph: Graph }) {
  const width = 20 + graph.columns * BOX_WIDTH + (graph.columns - 1) * GAP_X;
  const height = 20 + graph.rows * (BOX_HEIGHT + GAP_Y);
  const deadlocked = graph.nodes.filter((node) => node.deadlocked).map((node) => node.agent);
  return (
    <div class="wait-graph" role="img" aria-label={deadlocked.length > 0 ? `Deadlock of ${harmless(deadlocked.join(", "))}` : "Who waits for whom"}>
      <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`} aria-hidden="true">
        <defs>
          <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">
            <path d="M0 0 L8 4 L0 8 z" fill="var(--dim)" />
          </marker>
        </defs>
        {graph.edges.map((edge) => (
          <path
            key={`${edge.from.agent}\0${edge.to.agent}`}
            class={edge.deadlocked ? "wait deadlocked" : "wait"}
            d={drawEdge(edge.from, edge.to)}
            marker-end="url(#arrow)"
          >
            <title>{harmless(`${edge.from.agent} waits for ${edge.to.agent}: ${edge.resources}`)}</title>
          </path>
        ))}
        {graph.nodes.map((node) => (
          <g key={node.agent} class={node.deadlocked ? "agent deadlocked" : "agent"} transform={`translate(${leftOf(node)} ${topOf(node)})`}>
            <rect width={BOX_WIDTH} height={BOX_HEIGHT} rx="6" />
            <svg width={BOX_WIDTH - 6} height={BOX_HEIGHT}>
              <text x="10" y="20">
                {harmless(shorten(node.agent))}
              </text>
            </svg>
            <title>{harmless(node.agent)}</title>
          </g>
        ))}
      </svg>
    </div>
  );
}

/** A curve from the waiter's box to the box of whom it waits for. */
function drawEdge(from: GraphNode, to: GraphNode): string {
  const y1 = topOf(from) + BOX_HEIGHT / 2;
  const y2 = topOf(to) + BOX_HEIGHT / 2;
  if (from.column === to.column) {
    const x = leftOf(from) + BOX_WIDTH;
    return `M ${x} ${y1} C ${x + GAP_X / 2} ${y1}, ${x + GAP_X / 2} ${y2}, ${x} ${y2}`;
  }
  const x1 = leftOf(from) + (from.column < to.column ? BOX_WIDTH : 0);
  const x2 = leftOf(to) + (from.column < to.column ? 0 : BOX_WIDTH);
  const middle = (x1 + x2) / 2;
  return `M ${x1} ${y1} C ${middle} ${y1}, ${middle} ${y2}, ${x2} ${y2}`;
}
