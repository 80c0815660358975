/** How wide an element is, as it changes. */
import { useSignal } from "@preact/signals";
import { type RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";

export function useWidth<T extends Element>(): { box: RefObject<T | null>; width: number } {
  const box = useRef<T | null>(null);
  const width = useSignal(0);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => (width.value = Math.floor(entry?.contentRect.width ?? 0)));
    if (box.current !== null) {
      observer.observe(box.current);
    }
    return () => observer.disconnect();
  }, []);
  return { box, width: width.value };
}
