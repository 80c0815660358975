/** The coordinators that this user runs, side by side. */
import { api, ask } from "../api/client";
import { now } from "../state/now";
import { status } from "../state/store";
import { useAnswer } from "../state/useAnswer";
import { ago } from "../words/texts";
import { Answer } from "./Answer";
import { Words } from "./Words";

export function RepositoryList() {
  const coordinators = useAnswer(() => ask(api.GET("/v1/coordinators", {})), "coordinators", /^(agent|lease|review|unlock|message)/).value;
  return (
    <>
      <Answer answer={coordinators}>
        {(list) => (
          <table>
            <thead>
              <tr>
                <th scope="col">Repository</th>
                <th scope="col">Waits for you</th>
                <th scope="col">Agents</th>
                <th scope="col">Leases</th>
                <th scope="col">Runs</th>
              </tr>
            </thead>
            <tbody>
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
            </tbody>
          </table>
        )}
      </Answer>
      <p class="dim">
        Each repository has a page of its own: <code>coord web</code> in its folder opens it.
      </p>
    </>
  );
}
