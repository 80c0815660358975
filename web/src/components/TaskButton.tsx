/** A button of a task: what it does is said by its label. */
import type { ComponentChildren } from "preact";

interface Props {
  label: string;
  title: string;
  /** It does nothing now; the focus may stay on it. */
  idle?: boolean;
  children: ComponentChildren;
  press: () => void;
}

export function TaskButton({ label, title, idle = false, children, press }: Props) {
  return (
    <button type="button" aria-label={label} title={title} aria-disabled={idle ? "true" : undefined} onClick={press}>
      {children}
    </button>
  );
}
