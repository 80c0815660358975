/** The changes of one file, as the coordinator numbers them: its unified difference, cut at each `@@`. */
import type { ReviewFile } from "../api/shapes";

export interface Hunk {
  /** Its number, from 1, as `hunks` of a verdict takes it. */
  number: number;
  heading: string;
  lines: readonly string[];
}

/** The hunks of a file of a review; none where its difference has no lines, or is too long to be told. */
export function readHunks(file: ReviewFile): Hunk[] {
  const hunks: Hunk[] = [];
  if (file.cut) {
    return hunks;
  }
  let open: { number: number; heading: string; lines: string[] } | null = null;
  for (const line of file.diff.replace(/\n$/, "").split("\n")) {
    if (line.startsWith("@@ ")) {
      open = { number: hunks.length + 1, heading: line, lines: [] };
      hunks.push(open);
    } else {
      open?.lines.push(line);
    }
  }
  return hunks.length === file.hunks ? hunks : [];
}
