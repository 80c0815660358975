/**
 * The instant that times left and ages are shown for, by the coordinator's clock: a browser's own may be
 * wrong. It moves on each ten seconds.
 */
import { signal } from "@preact/signals";

const STEP_MS = 10_000;
/** A larger difference between two of the browser's clocks: the machine has slept, or its clock was put. */
const JUMP_MS = 2_000;

/** The browser's clocks: the first may be put, the second may stand still while the machine sleeps. */
interface Clocks {
  wall: number;
  mono: number;
}

export function readClocks(): Clocks {
  return { wall: Date.now(), mono: performance.now() };
}

/** What the coordinator's clock said last, and the browser's with it. */
let told = { at: Date.now(), ...readClocks() };

export const now = signal(told.at);
/** Rises when it is not known how much time has passed: the coordinator has to be asked. */
export const jumps = signal(0);

/** The coordinator's clock said this (UTC) in an answer to a question of then. */
export function setClock(instant: string, asked: Clocks): void {
  const clocks = readClocks();
  if (Math.max(clocks.wall - asked.wall, clocks.mono - asked.mono) > JUMP_MS) {
    return; // the page was asleep meanwhile: the answer is as old as that
  }
  const reckoned = told.at + clocks.mono - told.mono;
  told = { at: Date.parse(instant), ...clocks };
  if (Math.abs(reckoned - told.at) > JUMP_MS) {
    now.value = told.at;
  }
}

setInterval(() => {
  const clocks = readClocks();
  const passed = clocks.mono - told.mono;
  now.value = told.at + passed;
  if (Math.abs(clocks.wall - told.wall - passed) > JUMP_MS) {
    told = { at: now.value, ...clocks };
    jumps.value += 1;
  }
}, STEP_MS);
