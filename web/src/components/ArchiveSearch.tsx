/** A search of the context archive, and the section that was found. */
import { useSignal } from "@preact/signals";

import { api, ask } from "../api/client";
import type { ArchiveSection, Hit } from "../api/shapes";
import { act } from "../state/news";
import { Words } from "./Words";

export function ArchiveSearch() {
  const query = useSignal("");
  const hits = useSignal<readonly Hit[] | null>(null);
  const section = useSignal<ArchiveSection | null>(null);
  const search = (event: Event) => {
    event.preventDefault();
    section.value = null;
    void act(
      () => ask(api.GET("/v1/archive/search", { params: { query: { query: query.value } } })),
      (reply) => {
        hits.value = reply.items;
        return `${reply.items.length} found.`;
      },
    );
  };
  const open = (hit: Hit) =>
    void act(
      () => ask(api.GET("/v1/archive/show", { params: { query: { ref: `${hit.number}@${hit.source.split("/").at(-1) ?? ""}` } } })),
      (reply) => {
        section.value = reply;
        return `${reply.number} is shown.`;
      },
    );
  return (
    <>
      <form class="filter" role="search" onSubmit={search}>
        <label class="filter">
          Words <input type="search" value={query} required onInput={(event) => (query.value = event.currentTarget.value)} />
        </label>
        <button type="submit">Search</button>
      </form>
      {hits.value?.length === 0 && <p class="empty">No section of the archive has these words.</p>}
      <ul class="plain">
        {hits.value?.map((hit) => (
          <li key={`${hit.source} ${hit.number}`}>
            <button type="button" class="link" onClick={() => open(hit)}>
              <Words text={`${hit.number} ${hit.title}`} />
            </button>{" "}
            <span class="dim">
              <Words text={hit.source} />
            </span>
            <br />
            <Words text={hit.snippet} />
          </li>
        ))}
      </ul>
      {section.value !== null && (
        <article aria-label={section.value.title}>
          <h3>
            <Words text={`${section.value.number} ${section.value.title}`} />
          </h3>
          <pre class="log" tabIndex={0}>
            <Words text={section.value.body} />
          </pre>
        </article>
      )}
    </>
  );
}
