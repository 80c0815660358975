/** A table: its headings, and its rows as children. */
import type { ComponentChildren } from "preact";

interface Props {
  headings: readonly string[];
  children: ComponentChildren;
}

export function Table({ headings, children }: Props) {
  return (
    <table>
      <thead>
        <tr>
          {headings.map((heading) => (
            <th key={heading} scope="col">
              {heading}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  );
}
