/** What the time came to: who waited for whom, files, refusals and agents, in numbers. */
import type { ComponentChildren } from "preact";

import type { Report } from "../api/shapes";
import { exactSpan } from "../words/instants";
import { counted } from "../words/texts";
import { Words } from "./Words";

interface Row {
  /** Who and what it is about: names that others chose. */
  readonly names: readonly string[];
  readonly numbers: readonly ComponentChildren[];
}

export function ReportTables({ report }: { report: Report }) {
  const refusals = report.refusals.reduce((sum, refusal) => sum + refusal.count, 0);
  return (
    <section class="report" aria-labelledby="report">
      <h2 id="report">Summary</h2>
      <p class="facts">
        {exactSpan(report.span_s)} in all, {exactSpan(report.stood_s)} lost to waiting, {exactSpan(report.waited_s)} waited in all, {counted(report.tasks["done"] ?? 0, "task")} done,{" "}
        {counted(refusals, "refusal")}, {counted(report.events, "event")}.
      </p>
      <div class="report-tables">
        <ReportTable
          title="Who waited for whom"
          heads={["Agent", "For", "Times", "Stood still", "Waited in all"]}
          rows={report.waited.map((pair) => ({ names: [pair.agent, pair.holder], numbers: [pair.times, exactSpan(pair.stood_s), exactSpan(pair.waited_s)] }))}
        />
        <ReportTable
          title="Files"
          heads={["Resource", "Agents", "Leased", "Refused", "Held", "Waited for"]}
          rows={report.files.map((file) => ({ names: [file.resource], numbers: [file.agents, file.grants, file.refused, exactSpan(file.held_s), exactSpan(file.waited_s)] }))}
        />
        <ReportTable title="Refusals" heads={["Code", "Times"]} rows={report.refusals.map((refusal) => ({ names: [refusal.code], numbers: [refusal.count] }))} />
        <ReportTable
          title="Tasks by agent"
          heads={["Agent", "Done", "Failed", "In review", "Refused", "Waited", "Held"]}
          rows={report.agents.map((agent) => ({
            names: [agent.agent],
            numbers: [agent.done, agent.failed, agent.in_review, agent.refused, exactSpan(agent.waited_s), exactSpan(agent.held_s)],
          }))}
        />
      </div>
    </section>
  );
}

function ReportTable({ title, heads, rows }: { title: string; heads: readonly string[]; rows: readonly Row[] }) {
  return (
    <div>
      <h3>{title}</h3>
      {rows.length === 0 ? (
        <p class="empty">Nothing.</p>
      ) : (
        <div class="report-table" role="group" aria-label={title} tabIndex={0}>
          <table>
            <thead>
              <tr>
                {heads.map((head, place) => (
                  <th key={head} scope="col" class={place < (rows[0]?.names.length ?? 0) ? "" : "number"}>
                    {head}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.map(({ names, numbers }) => (
                <tr key={names.join("\0")}>
                  {names.map((name, place) =>
                    place === 0 ? (
                      <th key={place} scope="row" class="words">
                        <Words text={name} />
                      </th>
                    ) : (
                      <td key={place} class="words">
                        <Words text={name} />
                      </td>
                    ),
                  )}
                  {numbers.map((number, place) => (
                    <td key={place} class="number">
                      {number}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </div>
  );
}
