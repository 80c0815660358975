/** What was done or refused last. */
import { news } from "../state/store";
import { Words } from "./Words";

export function News() {
  const told = news.value;
  return (
    <div role={told?.refused ? "alert" : "status"} class="news" hidden={told === null}>
      {told && (
        <p class={told.refused ? "refused" : "done"}>
          <span>
            <Words text={told.text} />
            {told.next && (
              <>
                {" "}
                <Words text={told.next} />
              </>
            )}
          </span>
          <button type="button" onClick={() => (news.value = null)} aria-label="Close this message">
            ×
          </button>
        </p>
      )}
    </div>
  );
}
