/** The rows of a long table that are in view, and the room of the others. Only those in view are drawn and asked for. */
import { type ComponentChildren, Fragment } from "preact";
import { useEffect } from "preact/hooks";

import type { RowWindow } from "../state/rowWindow";
import type { WindowedList } from "../state/windowedList";
import { Gap } from "./Gap";

interface Props<T> {
  list: WindowedList<T>;
  window: RowWindow;
  total: number;
  /** The height of a row (px); the style sheet has the same. */
  rowPx: number;
  columns: number;
  keyOf(row: T): string;
  draw(row: T, place: number): ComponentChildren;
}

export function WindowedRows<T>({ list, window: { first, count }, total, rowPx, columns, keyOf, draw }: Props<T>) {
  useEffect(() => list.feed.watch(), [list]);
  useEffect(() => list.show(first, count), [list, first, count]);
  const shown = Math.max(0, Math.min(count, total - first));
  const below = Math.max(0, total - first - shown);
  return (
    <tbody>
      {first > 0 && <Gap rows={first} rowPx={rowPx} columns={columns} />}
      {Array.from({ length: shown }, (_, nth) => {
        const row = list.at(first + nth);
        return row === undefined ? <Gap key={first + nth} rows={1} rowPx={rowPx} columns={columns} /> : <Fragment key={keyOf(row)}>{draw(row, first + nth)}</Fragment>;
      })}
      {below > 0 && <Gap rows={below} rowPx={rowPx} columns={columns} />}
    </tbody>
  );
}
