/** The values of pools, and who has which. Nothing where `coord.toml` has no pools. */
import { api, ask } from "../api/client";
import { now } from "../state/now";
import { useAnswer } from "../state/useAnswer";
import { ago } from "../words/texts";
import { Answer } from "./Answer";
import { Table } from "./Table";
import { Words } from "./Words";

export function PoolTable() {
  const pools = useAnswer(() => ask(api.GET("/v1/pools", { params: { query: {} } })), "pools", /^(lease|task)_/).value;
  if (pools === null) {
    return null;
  }
  return (
    <Answer answer={pools}>
      {(list) => {
        const taken = list.items.filter((value) => value.locked_by !== null || value.listened);
        return Object.keys(list.variables).length === 0 ? null : (
          <section aria-labelledby="pools">
            <h2 id="pools">Pools</h2>
            <p class="dim">
              {list.items.length - taken.length} of {list.items.length} values are free.
            </p>
            {taken.length > 0 && (
              <Table headings={["Value", "Held by", "For"]}>
                {taken.map((value) => (
                  <tr key={`${value.pool}:${value.value}`}>
                    <th scope="row">
                      <Words text={`${value.pool}:${value.value}`} />
                    </th>
                    <td>
                      <Words text={value.locked_by ?? `somebody else listens there${value.program && ` (${value.program})`}`} />{" "}
                      <span class="dim">{value.locked_at && ago(value.locked_at, now.value)}</span>
                    </td>
                    <td>
                      <Words isSentence text={[value.task, value.description].filter(Boolean).join(": ")} />
                    </td>
                  </tr>
                ))}
              </Table>
            )}
          </section>
        );
      }}
    </Answer>
  );
}
