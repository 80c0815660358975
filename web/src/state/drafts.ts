/**
 * Texts that a person has begun to edit. Each outlasts a look at another file or screen, and counts for the contents
 * that the file had when it was begun.
 */
import { signal } from "@preact/signals";

import type { ReviewFile } from "../api/shapes";

export interface Draft {
  review: string;
  /** The file as it was when the person began. */
  file: ReviewFile;
  text: string;
}

const drafts = signal<readonly Draft[]>([]);

export function findDraft(review: string, file: ReviewFile): Draft | undefined {
  return drafts.value.find((draft) => draft.review === review && draft.file.path === file.path);
}

export function beginDraft(review: string, file: ReviewFile, text: string): void {
  drafts.value = [...drafts.value, { review, file, text }];
}

export function endDraft(ended: Draft): void {
  drafts.value = drafts.value.filter((draft) => draft !== ended);
}

/** Files of a review that are being edited. */
export function listDrafts(review: string): string[] {
  return drafts.value.filter((draft) => draft.review === review).map((draft) => draft.file.path);
}
