/** The settings in force, and where each was set. */
import { api, ask } from "../api/client";
import { useAnswer } from "../state/useAnswer";
import { Answer } from "./Answer";
import { Table } from "./Table";
import { Words } from "./Words";

interface Config {
  settings?: Record<string, Record<string, unknown>>;
  sources?: Record<string, string>;
}

export function SettingsTable() {
  const health = useAnswer(() => ask(api.GET("/v1/health", { params: { query: {} } })), "health").value;
  return (
    <Answer answer={health}>
      {(reply) => {
        const { settings = {}, sources = {} } = reply.config as Config;
        return (
          <>
            <p class="dim">
              coord {reply.version}, process {reply.pid}, {Math.round(reply.resident_bytes / 1e6)} MB; {reply.events} events in{" "}
              {(reply.db_bytes / 1e6).toFixed(1)} MB.
            </p>
            <Table headings={["Setting", "Value", "From"]}>
              {Object.entries(settings).flatMap(([section, values]) =>
                Object.entries(values).map(([key, value]) => (
                  <tr key={`${section}.${key}`}>
                    <th scope="row">
                      {section}.{key}
                    </th>
                    <td class="words">
                      <Words text={typeof value === "string" ? value : JSON.stringify(value)} />
                    </td>
                    <td class="dim">{sources[`${section}.${key}`] ?? "default"}</td>
                  </tr>
                )),
              )}
            </Table>
          </>
        );
      }}
    </Answer>
  );
}
