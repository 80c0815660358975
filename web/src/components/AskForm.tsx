/** Ask the holder of a resource to release it. */
import { useSignal } from "@preact/signals";

import { requestResource } from "../state/actions";

export function AskForm({ resource }: { resource: string }) {
  const reason = useSignal("");
  return (
    <form
      class="message"
      data-acts
      onSubmit={(event) => {
        event.preventDefault();
        void requestResource(resource, reason.value.trim()).then((filed) => {
          if (filed) {
            reason.value = "";
          }
        });
      }}
    >
      <input required aria-label="Why you need it" placeholder="why you need it" value={reason} onInput={(event) => (reason.value = event.currentTarget.value)} />
      <button type="submit">Ask for it</button>
    </form>
  );
}
