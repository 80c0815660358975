/** Signals that agents have left, strongest first. */
import { api, ask } from "../api/client";
import { now } from "../state/now";
import { useAnswer } from "../state/useAnswer";
import { ago } from "../words/texts";
import { Answer } from "./Answer";
import { Words } from "./Words";

export function SignalList() {
  const signals = useAnswer(() => ask(api.GET("/v1/signals", { params: { query: {} } })), "signals").value;
  return (
    <Answer answer={signals}>
      {(list) =>
        list.items.length === 0 ? (
          <p class="empty">
            No signal is left. <code>coord signal add src/pay.py trouble</code> leaves one; it fades.
          </p>
        ) : (
          <ul class="plain">
            {list.items.map((signal) => (
              <li key={`${signal.subject}\0${signal.name}`}>
                <meter min={0} max={1} value={Math.min(1, signal.strength)} aria-label="Strength" />{" "}
                <Words isSentence text={`${signal.name} on ${signal.subject}${signal.note ? `: ${signal.note}` : ""}`} />{" "}
                <span class="dim">
                  {signal.strength.toFixed(2)}, <Words text={signal.agent ?? "coord"} /> {ago(signal.at, now.value)}
                </span>
              </li>
            ))}
          </ul>
        )
      }
    </Answer>
  );
}
