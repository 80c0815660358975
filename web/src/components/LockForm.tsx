/** Lease something for oneself. */
import { useSignal } from "@preact/signals";

import { lock } from "../state/actions";

export function LockForm() {
  const resource = useSignal("");
  const description = useSignal("");
  return (
    <form
      class="lock"
      data-acts
      onSubmit={(event) => {
        event.preventDefault();
        void lock(resource.value.trim(), description.value.trim()).then((done) => {
          if (done) {
            resource.value = "";
            description.value = "";
          }
        });
      }}
    >
      <label>
        Lock <input required value={resource} placeholder="src/pay.py, docs/, src/**/*.sql, key:a:b" onInput={(event) => (resource.value = event.currentTarget.value)} />
      </label>
      <label>
        for <input value={description} placeholder="what you do there" onInput={(event) => (description.value = event.currentTarget.value)} />
      </label>
      <button type="submit">Lock it</button>
    </form>
  );
}
