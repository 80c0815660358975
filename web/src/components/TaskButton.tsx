/** A button of a task: what it does is said by its label. */
import type { ComponentChildren } from "preact";

interface Props {
  label: string;
  title: string;
  children: ComponentChildren;
  press: () => void;
}

export function TaskButton({ label, title, children, press }: Props) {
  return (
    <button type="button" aria-label={label} title={title} onClick={press}>
      {children}
    </button>
  );
}
