/** Takes tasks from a file that is dropped on it, or chosen. */
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";

import { importTasks } from "../state/taskActions";

export function TaskImport({ children }: { children: ComponentChildren }) {
  const over = useSignal(false);
  return (
    <div
      class={over.value ? "drop over" : "drop"}
      onDragOver={(event) => {
        if (event.dataTransfer?.types.includes("Files")) {
          event.preventDefault(); // else the browser would open the file
          over.value = true;
        }
      }}
      onDragLeave={() => (over.value = false)}
      onDrop={(event) => {
        event.preventDefault();
        over.value = false;
        void importAll(event.dataTransfer?.files);
      }}
    >
      <label class="filter" data-acts>
        Import a file of tasks (YAML, JSON lines, a Markdown check-list), or drop one here{" "}
        <input
          type="file"
          multiple
          onChange={(event) => {
            const input = event.currentTarget;
            void importAll(input.files).then(() => (input.value = "")); // so that the same file can be chosen again
          }}
        />
      </label>
      {children}
    </div>
  );
}

/** One after the other: each file is taken whole or not at all. */
async function importAll(files: FileList | null | undefined): Promise<void> {
  for (const file of [...(files ?? [])]) {
    if (!(await importTasks(file))) {
      return;
    }
  }
}
