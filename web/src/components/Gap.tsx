/** The room of rows of a windowed table that are not drawn. */
interface Props {
  rows: number;
  rowPx: number;
  columns: number;
}

export function Gap({ rows, rowPx, columns }: Props) {
  return (
    <tr class="gap" aria-hidden="true">
      <td colSpan={columns} style={{ height: `${rows * rowPx}px` }} />
    </tr>
  );
}
