/** The coordinators that this user runs, side by side. */
import { useSignal } from "@preact/signals";

import { api, ask } from "../api/client";
import { now } from "../state/now";
import { status } from "../state/store";
import { useAnswer } from "../state/useAnswer";
import { ago } from "../words/texts";
import { Answer } from "./Answer";
import { Table } from "./Table";
import { Words } from "./Words";

/** No event asks again. */
const NEVER = /(?!)/;

export function RepositoryList() {
  const looks = useSignal(0);
  // Asked when a person looks, and not with each event: to be asked keeps an idle coordinator from ending.
  const coordinators = useAnswer(() => ask(api.GET("/v1/coordinators", {})), `coordinators ${looks.value}`, NEVER).value;
  return (
    <>
      <Answer answer={coordinators}>
        {(list) => (
          <Table headings={["Repository", "Waits for you", "Agents", "Leases", "Runs"]}>
            {list.items.map((row) => (
              <tr key={row.root}>
                <th scope="row">
                  <Words text={row.root} /> {row.root === status.value?.root && <span class="dim">this page</span>}
                </th>
                {row.answers ? (
                  <>
                    <td>{(row.reviews ?? 0) + (row.requests ?? 0) + (row.messages ?? 0)}</td>
                    <td>{row.agents}</td>
                    <td>{row.leases}</td>
                    <td>{row.since ? `since ${ago(row.since, now.value)}` : ""}</td>
                  </>
                ) : (
                  <td colSpan={4}>does not answer</td>
                )}
              </tr>
            ))}
          </Table>
        )}
      </Answer>
      <button type="button" onClick={() => (looks.value += 1)}>
        Look again
      </button>
      <p class="dim">
        Each repository has a page of its own: <code>coord web</code> in its folder opens it.
      </p>
    </>
  );
}
