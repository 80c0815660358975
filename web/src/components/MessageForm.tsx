/** Say something to an agent. It hears it once, with its next tool call. */
import { useSignal } from "@preact/signals";

import { sendMessage } from "../state/actions";

interface Props {
  to: string;
  /** The message that is answered; null: none. */
  replyTo: string | null;
}

export function MessageForm({ to, replyTo }: Props) {
  const text = useSignal("");
  const name = replyTo === null ? `Message to ${to}` : `Reply to ${to}`;
  return (
    <form
      class="message"
      data-acts
      onSubmit={(event) => {
        event.preventDefault();
        void sendMessage(to, text.value.trim(), replyTo).then((sent) => {
          if (sent) {
            text.value = "";
          }
        });
      }}
    >
      <input required aria-label={name} placeholder={name} value={text} onInput={(event) => (text.value = event.currentTarget.value)} />
      <button type="submit">Send</button>
    </form>
  );
}
