/** One thing that waits for a person: what it is, and what can be done about it here. */
import type { ComponentChildren } from "preact";

import { Words } from "./Words";

interface Props {
  kind: string;
  title: string;
  about: string;
  /** The actions; the best one comes first. */
  children: ComponentChildren;
}

export function Card({ kind, title, about, children }: Props) {
  return (
    <li class="card">
      <div>
        <span class="kind">{kind}</span> <strong><Words text={title} /></strong>
        <p><Words text={about} /></p>
      </div>
      <div class="actions">{children}</div>
    </li>
  );
}
