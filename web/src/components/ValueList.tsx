/** Values of keys, and the changes that wait for their owners. */
import { useSignal } from "@preact/signals";

import { api, ask } from "../api/client";
import { now } from "../state/now";
import { useAnswer } from "../state/useAnswer";
import { ago } from "../words/texts";
import { Answer } from "./Answer";
import { Table } from "./Table";
import { ValueHistory } from "./ValueHistory";
import { Words } from "./Words";

export function ValueList() {
  const open = useSignal<string | null>(null);
  const values = useAnswer(() => ask(api.GET("/v1/state", { params: { query: {} } })), "values").value;
  const changes = useAnswer(() => ask(api.GET("/v1/changes", { params: { query: {} } })), "changes").value;
  return (
    <>
      <Answer answer={values}>
        {(list) =>
          list.items.length === 0 ? (
            <p class="empty">
              Nothing is stored. <code>coord state put key:deploy '{"{}"}'</code> stores a value.
            </p>
          ) : (
            <Table headings={["Key", "Version", "Bytes", "Written by"]}>
              {list.items.map((value) => (
                <tr key={value.key}>
                  <th scope="row">
                    <button type="button" class="link" onClick={() => (open.value = value.key)}>
                      <Words text={value.key} />
                    </button>
                  </th>
                  <td>{value.version}</td>
                  <td>{value.size}</td>
                  <td>
                    <Words text={value.written_by ?? ""} /> <span class="dim">{value.written_at ? ago(value.written_at, now.value) : ""}</span>
                  </td>
                </tr>
              ))}
            </Table>
          )
        }
      </Answer>
      {open.value !== null && <ValueHistory key={open.value} stateKey={open.value} />}
      <h3>Changes that wait for an owner</h3>
      <Answer answer={changes}>
        {(list) =>
          list.items.length === 0 ? (
            <p class="empty">None waits.</p>
          ) : (
            <ul class="plain">
              {list.items.map((change) => (
                <li key={change.change}>
                  <strong>{change.state}</strong>{" "}
                  <Words isSentence text={`${change.change} of ${change.key}, asked by ${change.asked_by}${change.given_to ? `, at ${change.given_to}` : ""}${change.note ? `: ${change.note}` : ""}`} />
                </li>
              ))}
            </ul>
          )
        }
      </Answer>
    </>
  );
}
