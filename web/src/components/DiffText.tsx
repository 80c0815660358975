/** Lines of a unified difference: what came and what went differs by colour and by its sign. */
import { Words } from "./Words";

const KINDS: Record<string, string> = { "+": "added", "-": "removed", "@": "dim" };

export function DiffText({ lines }: { lines: readonly string[] }) {
  return (
    <pre class="hunk" tabIndex={0}>
      {lines.map((line, index) => (
        <span key={index} class={KINDS[line[0] ?? ""]}>
          <Words text={`${line}\n`} />
        </span>
      ))}
    </pre>
  );
}
