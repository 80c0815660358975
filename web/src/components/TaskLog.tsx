/** What the launched agent of a task says, as it says it. */
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import { followTaskLog } from "../state/taskLog";
import { Words } from "./Words";

/** Older lines are let go. */
const KEPT_LINES = 500;

export function TaskLog({ task }: { task: string }) {
  const lines = useSignal<readonly string[] | null>(null);
  const box = useRef<HTMLPreElement>(null);
  useEffect(() => {
    lines.value = null;
    return followTaskLog(task, (fresh, isNewLog) => {
      lines.value = [...(isNewLog ? [] : (lines.value ?? [])), ...fresh].slice(-KEPT_LINES);
    });
  }, [task]);
  useEffect(() => {
    const element = box.current;
    // Whoever has scrolled up reads there.
    if (element !== null && element.scrollHeight - element.scrollTop - element.clientHeight < 200) {
      element.scrollTop = element.scrollHeight;
    }
  }, [lines.value]);
  if (lines.value === null || lines.value.length === 0) {
    return (
      <p class="empty">
        Nothing is said on {task} yet. What <code>coord launch</code> starts is shown here; other agents talk in their own terminals.
      </p>
    );
  }
  return (
    <pre class="log" ref={box} tabIndex={0} role="log" aria-label={`What the agent of ${task} says`}>
      <Words text={lines.value.join("\n")} />
    </pre>
  );
}
