/** What two working trees change both and have not landed, and whether it merges. */
import { api, ask } from "../api/client";
import { useAnswer } from "../state/useAnswer";
import { Answer } from "./Answer";
import { Table } from "./Table";
import { Words } from "./Words";

/** Files change without an event; most changes of agents come with a lease. */
const KINDS = /^(lease|target|notice)_/;

export function OverlapList() {
  const overlaps = useAnswer(() => ask(api.GET("/v1/overlaps", { params: { query: {} } })), "overlaps", KINDS).value;
  return (
    <Answer answer={overlaps}>
      {(list) =>
        list.items.length === 0 ? (
          <p class="empty">No two working trees change the same.</p>
        ) : (
          <>
            <Table headings={["What", "In", "And in", "Together"]}>
              {list.items.map((overlap) => (
                <tr key={`${overlap.path} ${overlap.sides.map((side) => side.worktree ?? "").join(" ")}`}>
                  <th scope="row">
                    <Words text={(overlap.regions ?? [overlap.path]).join(", ")} />
                  </th>
                  {overlap.sides.map((side) => (
                    <td key={side.worktree ?? ""}>
                      <Words text={side.branch ?? side.worktree ?? "the main tree"} />
                      {side.agents.length > 0 && <Words text={` (${side.agents.join(", ")})`} />}
                    </td>
                  ))}
                  <td>{overlap.clean ? "merges" : <Words isSentence text={`conflict: ${overlap.why}`} />}</td>
                </tr>
              ))}
            </Table>
            {list.cut && <p class="dim">There are more: coord overlap --limit 2000</p>}
          </>
        )
      }
    </Answer>
  );
}
