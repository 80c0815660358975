/** What Prometheus reads at /metrics, as a table. */
import { readMetrics } from "../api/metrics";
import { useAnswer } from "../state/useAnswer";
import { Answer } from "./Answer";
import { Table } from "./Table";

export function MetricsTable() {
  const metrics = useAnswer(readMetrics, "metrics").value;
  return (
    <Answer answer={metrics}>
      {(rows) => (
        <Table headings={["Metric", "Labels", "Value"]}>
          {rows.map((row) => (
            <tr key={`${row.name}${row.labels}`}>
              <th scope="row" title={row.help}>
                {row.name}
              </th>
              <td class="dim words">{row.labels}</td>
              <td>{row.value}</td>
            </tr>
          ))}
        </Table>
      )}
    </Answer>
  );
}
