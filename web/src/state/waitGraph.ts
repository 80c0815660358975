/** Who waits for whom as a picture: where each agent stands, and which waits go round in a circle. */
import type { Waiter } from "../api/shapes";

export interface GraphNode {
  agent: string;
  /** Whoever waits for nobody stands in column 0; each waiter one column after the last of those it waits for. */
  column: number;
  row: number;
  deadlocked: boolean;
}

export interface GraphEdge {
  from: GraphNode;
  to: GraphNode;
  resources: string;
  deadlocked: boolean;
}

export interface WaitGraph {
  nodes: GraphNode[];
  edges: GraphEdge[];
  columns: number;
  rows: number;
}

/** The picture of these waits. Agents that wait for their turn alone have no edge, and are not in it. */
export function layOutWaits(waiters: readonly Waiter[]): WaitGraph {
  const waits = new Map<string, Map<string, string[]>>();
  for (const waiter of waiters) {
    for (const holder of waiter.held_by) {
      if (holder !== waiter.agent) {
        const holders = waits.get(waiter.agent) ?? new Map<string, string[]>();
        holders.set(holder, [...(holders.get(holder) ?? []), ...waiter.resources]);
        waits.set(waiter.agent, holders);
      }
    }
  }
  const agents = new Set<string>([...waits].flatMap(([agent, holders]) => [agent, ...holders.keys()]));
  const reached = new Map([...agents].map((agent) => [agent, reach(agent, waits)]));
  const nodes = new Map<string, GraphNode>();
  const columns = new Map<string, number>();
  const filled: number[] = [];
  for (const agent of agents) {
    const column = findColumn(agent, waits, reached, columns);
    const row = filled[column] ?? 0;
    filled[column] = row + 1;
    nodes.set(agent, { agent, column, row, deadlocked: reached.get(agent)?.has(agent) ?? false });
  }
  const edges: GraphEdge[] = [];
  for (const [agent, holders] of waits) {
    for (const [holder, resources] of holders) {
      const from = nodes.get(agent);
      const to = nodes.get(holder);
      if (from !== undefined && to !== undefined) {
        edges.push({ from, to, resources: [...new Set(resources)].join(", "), deadlocked: reached.get(holder)?.has(agent) ?? false });
      }
    }
  }
  return { nodes: [...nodes.values()], edges, columns: filled.length, rows: Math.max(0, ...Array.from(filled, (count) => count ?? 0)) };
}

/** All whom an agent waits for, directly or through others; itself, where that is a circle. */
function reach(agent: string, waits: ReadonlyMap<string, ReadonlyMap<string, unknown>>): Set<string> {
  const reached = new Set<string>();
  const open = [agent];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    for (const holder of waits.get(next)?.keys() ?? []) {
      if (!reached.has(holder)) {
        reached.add(holder);
        open.push(holder);
      }
    }
  }
  return reached;
}

/** The column of an agent; those who wait in a circle do not push each other on. `columns` keeps what was worked out. */
function findColumn(
  agent: string,
  waits: ReadonlyMap<string, ReadonlyMap<string, unknown>>,
  reached: ReadonlyMap<string, ReadonlySet<string>>,
  columns: Map<string, number>,
): number {
  const known = columns.get(agent);
  if (known !== undefined) {
    return known;
  }
  const further = [...(waits.get(agent)?.keys() ?? [])].filter((holder) => !reached.get(holder)?.has(agent));
  const inCircle = reached.get(agent)?.has(agent) ? 1 : 0;
  const column = Math.max(inCircle, ...further.map((holder) => 1 + findColumn(holder, waits, reached, columns)));
  columns.set(agent, column);
  return column;
}
