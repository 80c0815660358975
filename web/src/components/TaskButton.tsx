/** A button that may be gone once it has been pressed: the focus then stays in the list or panel that it was in. */
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

interface Props {
  label: string;
  title: string;
  /** It does nothing now; the focus may stay on it. */
  idle?: boolean;
  children: ComponentChildren;
  press: () => void;
}

export function TaskButton({ label, title, idle = false, children, press }: Props) {
  const button = useRef<HTMLButtonElement>(null);
  useLayoutEffect(() => {
    const element = button.current;
    const home = element?.closest<HTMLElement>(".detail, .scrolled");
    return () => {
      if (element !== null && element === document.activeElement) {
        home?.focus();
        // The list may have gone with its last task.
        setTimeout(() => document.activeElement === document.body && document.getElementById("main")?.focus());
      }
    };
  }, []);
  return (
    <button type="button" ref={button} aria-label={label} title={title} aria-disabled={idle ? "true" : undefined} onClick={press}>
      {children}
    </button>
  );
}
