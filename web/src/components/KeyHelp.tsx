/** The keys of the reviews' screen. */
import { useEffect, useRef } from "preact/hooks";

import { helpShown } from "../state/place";

const KEYS: readonly [string, string][] = [
  ["j, k", "the next, the previous file; past the last one the next review"],
  ["n, p", "the next, the previous review"],
  ["a", "keep what the agent left"],
  ["r", "revert it to what it was when it was leased"],
  ["g", "give it to another agent"],
  ["e", "edit the file that is shown; Ctrl+Enter keeps your text"],
  ["u", "take the last verdict back"],
  ["?", "these keys"],
];

export function KeyHelp() {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} aria-labelledby="keys" onClose={() => (helpShown.value = false)}>
      <h2 id="keys">Keys</h2>
      <dl>
        {KEYS.map(([key, meaning]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{meaning}</dd>
          </div>
        ))}
      </dl>
      <form method="dialog">
        <button type="submit">Close</button>
      </form>
    </dialog>
  );
}
