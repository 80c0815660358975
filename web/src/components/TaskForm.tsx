/** What a task says: to add one, or to change one. */
import { useSignal } from "@preact/signals";

import type { Said } from "../state/taskActions";

interface Props {
  /** What it says until now; absent: a new one. */
  said?: Said;
  button: string;
  /** Whether it was done. */
  send: (said: Said) => Promise<boolean>;
}

const EMPTY: Said = { title: "", prompt: "", resources: [], after: [], priority: 0 };

export function TaskForm({ said = EMPTY, button, send }: Props) {
  const title = useSignal(said.title);
  const prompt = useSignal(said.prompt);
  const resources = useSignal(said.resources.join("\n"));
  const after = useSignal(said.after.join(" "));
  const priority = useSignal(said.priority);
  const submit = async () => {
    const done = await send({
      title: title.value.trim(),
      prompt: prompt.value,
      resources: partsOf(resources.value, "\n"),
      after: partsOf(after.value, /[\s,]+/),
      priority: priority.value,
    });
    if (done && said === EMPTY) {
      title.value = prompt.value = resources.value = after.value = "";
      priority.value = 0;
    }
  };
  return (
    <form
      class="task-form"
      data-acts
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <label class="wide">
        Title <input required value={title} placeholder="what is to be done, in a line" onInput={(event) => (title.value = event.currentTarget.value)} />
      </label>
      <label class="wide">
        Prompt <textarea rows={3} value={prompt} placeholder="all that the agent has to know" onInput={(event) => (prompt.value = event.currentTarget.value)} />
      </label>
      <label class="wide">
        Resources, one a line{" "}
        <textarea rows={2} value={resources} placeholder={"src/pay.py\nshared:docs/"} onInput={(event) => (resources.value = event.currentTarget.value)} />
      </label>
      <label>
        After <input value={after} placeholder="T-1 T-2" onInput={(event) => (after.value = event.currentTarget.value)} />
      </label>
      <label>
        Priority <input type="number" value={priority} onInput={(event) => (priority.value = event.currentTarget.valueAsNumber || 0)} />
      </label>
      <button type="submit" class="best">
        {button}
      </button>
    </form>
  );
}

function partsOf(text: string, between: string | RegExp): string[] {
  return text
    .split(between)
    .map((part) => part.trim())
    .filter(Boolean);
}
