/** The versions of one key's value, newest first. */
import { api, ask } from "../api/client";
import { useAnswer } from "../state/useAnswer";
import { clock } from "../words/texts";
import { Answer } from "./Answer";
import { Words } from "./Words";

export function ValueHistory({ stateKey }: { stateKey: string }) {
  const versions = useAnswer(() => ask(api.GET("/v1/state/{key}/history", { params: { path: { key: stateKey }, query: {} } })), stateKey).value;
  return (
    <section aria-label={`Versions of ${stateKey}`}>
      <h3>
        <Words text={stateKey} />
      </h3>
      <Answer answer={versions}>
        {(list) => (
          <ol class="plain">
            {list.items.map((version) => (
              <li key={version.version}>
                <span class="dim">
                  version {version.version}
                  {version.written_at ? `, ${clock(version.written_at)}` : ""} <Words text={version.written_by ?? ""} />
                </span>
                <pre class="log">
                  <Words text={version.deleted ? "deleted" : JSON.stringify(version.value, null, 2)} />
                </pre>
              </li>
            ))}
          </ol>
        )}
      </Answer>
    </section>
  );
}
