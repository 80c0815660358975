/** What lands now or waits to, what landed, and what a command has verified. */
import { api, ask } from "../api/client";
import { now } from "../state/now";
import { useAnswer } from "../state/useAnswer";
import { ago, span } from "../words/texts";
import { Answer } from "./Answer";
import { Sentence } from "./Sentence";
import { Words } from "./Words";

const LANDINGS_MAX = 50;

export function LandingList() {
  const queue = useAnswer(() => ask(api.GET("/v1/landings", { params: { query: {} } })), "queue", /^(landing|task|target)_/).value;
  const landed = useAnswer(
    () => ask(api.GET("/v1/events", { params: { query: { kind: "target_moved", tail: true, limit: LANDINGS_MAX } } })),
    "landed",
  ).value;
  const verified = useAnswer(() => ask(api.GET("/v1/verifications", { params: { query: {} } })), "verified").value;
  return (
    <>
      <h3>Lands now, or waits to</h3>
      <Answer answer={queue}>
        {(list) =>
          list.items.length === 0 ? (
            <p class="empty">Nothing waits to land.</p>
          ) : (
            <ol class="plain" aria-label="Landing queue">
              {list.items.map((landing) => (
                <li key={landing.task}>
                  <strong>{landing.state === "landing" ? "lands" : "waits"}</strong>{" "}
                  <Words text={`${landing.task} ${landing.title}, of ${landing.agent}, on ${landing.target}`} />{" "}
                  <span class="dim">since {span((now.value - Date.parse(landing.began_at ?? landing.queued_at)) / 1000)}</span>
                </li>
              ))}
            </ol>
          )
        }
      </Answer>
      <h3>Landed</h3>
      <Answer answer={landed}>
        {(list) =>
          list.items.length === 0 ? (
            <p class="empty">No branch has landed. What an agent of a launch has committed lands when its task is done; what is in conflict becomes a review.</p>
          ) : (
            <ol class="story">
              {list.items.toReversed().map((event) => (
                <li key={event.seq}>
                  <Sentence text={event.text} />
                </li>
              ))}
            </ol>
          )
        }
      </Answer>
      <h3>Verified</h3>
      <Answer answer={verified}>
        {(list) =>
          list.command === "" ? (
            <p class="empty">
              No check is set up. Set one in <code>coord.toml</code>: <code>[verify] command = "make test"</code>.
            </p>
          ) : (
            <>
              {list.left.length > 0 && (
                <ul class="plain" aria-label="Waits for it">
                  {list.left.map((work) => (
                    <li key={work.task}>
                      <Words isSentence text={`${work.task} of ${work.agent}: ${work.state}`} />
                    </li>
                  ))}
                </ul>
              )}
              <ul class="plain">
                {list.items.map((run) => (
                  <li key={run.verification}>
                    <strong>{run.state}</strong> <Words isSentence text={`${run.verification} of ${run.tasks.join(", ")}: ${run.said || run.command}`} />{" "}
                    <span class="dim">{ago(run.begun_at, now.value)}</span>
                  </li>
                ))}
              </ul>
            </>
          )
        }
      </Answer>
    </>
  );
}
