/** What is changed and not finished below an agent's leases, or below the leases of one file. */
import { Refusal } from "../api/refusal";
import { showWork } from "../state/actions";
import { useAnswer } from "../state/useAnswer";
import { DiffText } from "./DiffText";
import { Words } from "./Words";

export function WorkList({ about }: { about: { kind: "resource" | "agent"; name: string } }) {
  const work = useAnswer(() => showWork(about), `${about.kind} ${about.name}`).value;
  if (work === null) {
    return <p class="empty">Comparing …</p>;
  }
  if (work instanceof Refusal) {
    return <p class="empty">{work.message}</p>;
  }
  if (work.items.length === 0) {
    return <p class="empty">Nothing is changed below its leases.</p>;
  }
  return (
    <ul class="plain">
      {work.items.map((file) => (
        <li key={`${file.agent}\0${file.worktree ?? ""}\0${file.resource}\0${file.path}`}>
          <p>
            <Words text={file.resource.includes("::") ? file.resource : file.path} /> <span class="dim">{file.change}</span>
            {about.kind === "resource" && (
              <span class="dim">
                {" by "}
                <Words text={file.agent} />
              </span>
            )}
          </p>
          <DiffText lines={file.diff.replace(/^---.*\n\+\+\+.*\n/, "").replace(/\n$/, "").split("\n")} />
          {file.cut && <p class="dim">The difference goes on.</p>}
        </li>
      ))}
      {(work.cut.length > 0 || work.next !== null) && <li class="dim">There is more than is shown here.</li>}
    </ul>
  );
}
