/** One task: what it says and waits for, what comes before and after it, what it wrote and tried. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import type { TaskShown } from "../api/shapes";
import { followTask, openTask, shownTask } from "../state/backlog";
import { goToReview } from "../state/place";
import { editTask, type Said } from "../state/taskActions";
import { clock } from "../words/texts";
import { StoryList } from "./StoryList";
import { TaskButtons } from "./TaskButtons";
import { TaskForm } from "./TaskForm";
import { TaskGraph } from "./TaskGraph";
import { Words } from "./Words";

export function TaskPanel({ name }: { name: string }) {
  useEffect(() => {
    document.getElementById("task")?.focus();
    return followTask(name);
  }, [name]);
  const task = shownTask.value?.task === name ? shownTask.value : null;
  return (
    <aside id="task" class="detail" tabIndex={-1} aria-label={`About ${name}`} onKeyDown={(event) => event.key === "Escape" && close()}>
      <header>
        <h2>
          {name} {task && <Words text={task.title} />}
        </h2>
        <button type="button" onClick={close} aria-label="Close this panel">
          ×
        </button>
      </header>
      {task && <TaskDetails key={name} task={task} />}
    </aside>
  );
}

function TaskDetails({ task }: { task: TaskShown }) {
  const editing = useSignal<TaskShown | null>(null);
  const storyOpen = useSignal(false);
  return (
    <>
      <div class="actions">
        <span class={`state ${task.state}`}>{task.state}</span>
        <TaskButtons task={task} />
        {task.may?.includes("edit") && (
          <button type="button" data-acts aria-expanded={editing.value !== null} onClick={() => (editing.value = editing.value === null ? task : null)}>
            Edit
          </button>
        )}
        {task.partial !== null && task.state === "review" && (
          <button type="button" class="best" onClick={() => goToReview(task.partial as string)}>
            Look at {task.partial}
          </button>
        )}
      </div>
      {editing.value && <EditForm task={editing.value} close={() => (editing.value = null)} />}
      {(task.explanation || task.result) && (
        <p>
          <Words isSentence text={[task.explanation, task.result].filter(Boolean).join(". ")} />
        </p>
      )}
      <dl class="facts">
        <Fact name="Priority" value={String(task.priority)} />
        <Fact name="Attempts" value={`${task.attempts} of ${task.attempts_max}`} />
        <Fact name="Claimed by" value={task.claimed_by === null ? "" : `${task.claimed_by}${task.claim_until ? `, until ${clock(task.claim_until)}` : ""}`} />
        <Fact name="Resources" value={task.resources.join(", ")} />
        <Fact name="Waits for" value={(task.held_by ?? []).join("; ")} />
        <Fact name="Leased for it" value={(task.leased ?? []).join(", ")} />
        <Fact name="Wrote" value={(task.wrote ?? []).join(", ")} />
      </dl>
      {task.chain !== undefined && task.chain.length > 0 && (
        <>
          <h3>Before and after it</h3>
          <TaskGraph links={task.chain} task={task.task} />
        </>
      )}
      {task.prompt && (
        <>
          <h3>Prompt</h3>
          <pre>
            <Words text={task.prompt} />
          </pre>
        </>
      )}
      {task.tried !== undefined && task.tried.length > 0 && (
        <>
          <h3>Tried</h3>
          <ol class="plain">
            {task.tried.map((attempt) => (
              <li key={attempt.n}>
                {attempt.n}, {clock(attempt.at)}: <Words isSentence text={`${attempt.agent}, ${attempt.outcome}${attempt.note ? `: ${attempt.note}` : ""}`} />
                <br />
                <span class="dim">
                  <Words text={attempt.regions.map((region) => region.resource).join(", ")} />
                </span>
              </li>
            ))}
          </ol>
        </>
      )}
      <details onToggle={(event) => (storyOpen.value = event.currentTarget.open)}>
        <summary>Its story</summary>
        {storyOpen.value && <StoryList subject={task.task} />}
      </details>
    </>
  );
}

function EditForm({ task, close }: { task: TaskShown; close: () => void }) {
  const send = async (said: Said) => {
    const changed = (Object.keys(said) as (keyof Said)[]).filter((name) => String(said[name]) !== String(task[name]));
    const done = await editTask(task, Object.fromEntries(changed.map((name) => [name, said[name]])));
    if (done) {
      close();
    }
    return done;
  };
  return <TaskForm said={task} button="Save" send={send} />;
}

function Fact({ name, value }: { name: string; value: string }) {
  return value === "" ? null : (
    <div>
      <dt>{name}</dt>
      <dd>
        <Words text={value} />
      </dd>
    </div>
  );
}

function close(): void {
  openTask.value = null;
}
