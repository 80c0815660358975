/** What was done or refused last. */
import { news } from "../state/news";
import { Prose } from "./Prose";

export function News() {
  const item = news.value;
  return (
    <div role={item?.refused ? "alert" : "status"} class="news" hidden={item === null}>
      {item && (
        <p class={item.refused ? "refused" : "done"}>
          <span>
            <Prose text={item.text} />
            {item.next && (
              <>
                {" "}
                <Prose text={item.next} />
              </>
            )}
          </span>
          {item.undo && (
            <button type="button" data-acts onClick={() => void item.undo?.()}>
              Undo
            </button>
          )}
          <button type="button" onClick={() => (news.value = null)} aria-label="Close this message">
            ×
          </button>
        </p>
      )}
    </div>
  );
}
