/** The door's own metrics, in Prometheus' text format. */
import { bearer } from "./client";
import { readRefusal, UNREACHABLE } from "./refusal";

export interface Metric {
  name: string;
  labels: string;
  value: string;
  help: string;
}

/** Read them. Buckets of histograms are left out: their sums and counts say as much to a person. */
export async function readMetrics(): Promise<Metric[]> {
  const answer = await fetch("/metrics", { headers: { Authorization: bearer() } }).catch(() => {
    throw UNREACHABLE;
  });
  if (!answer.ok) {
    throw readRefusal(await answer.json().catch(() => null), answer.status);
  }
  return parseMetrics(await answer.text());
}

function parseMetrics(text: string): Metric[] {
  const help = new Map<string, string>();
  const rows: Metric[] = [];
  for (const line of text.split("\n")) {
    const described = /^# HELP (\S+) (.*)$/.exec(line);
    const row = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (described?.[1] !== undefined) {
      help.set(described[1], described[2] ?? "");
    } else if (row?.[1] !== undefined && !row[1].endsWith("_bucket")) {
      rows.push({ name: row[1], labels: row[2] ?? "", value: row[3] ?? "", help: help.get(row[1]) ?? "" });
    }
  }
  return rows;
}
