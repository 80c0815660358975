/** The first screen: what cannot go on without a person. */
import { markSeen, letGoOn, retryDeadLetter, endSession } from "../state/actions";
import { now } from "../state/now";
import { goToReview } from "../state/place";
import { deadLetters, messages, restingAgents, silentAgents, status, waiting, warnings } from "../state/store";
import { ago, clock, counted } from "../words/texts";
import { Card } from "./Card";
import { MessageForm } from "./MessageForm";
import { NotifyButton } from "./NotifyButton";
import { RequestCard } from "./RequestCard";

export function NeedsYouScreen() {
  const snapshot = status.value;
  if (snapshot === null) {
    return null;
  }
  if (waiting.value === 0) {
    return (
      <section aria-labelledby="needs-you">
        <h2 id="needs-you">Needs you</h2>
        <p class="empty">
          Nothing waits for you. {counted(snapshot.agents.length, "agent")} at work, {counted(snapshot.leases_held ?? 0, "lease")} held.
          {snapshot.agents.length === 0 && (
            <>
              {" "}
              <code>coord launch tasks.yaml --agents 3</code> sets some to work.
            </>
          )}
        </p>
        <NotifyButton />
      </section>
    );
  }
  return (
    <section aria-labelledby="needs-you">
      <h2 id="needs-you">Needs you</h2>
      <ul class="cards">
        {warnings.value.map((warning) => (
          <Card key={warning} kind="Warning" title={warning} about="">
            <code>coord doctor</code>
          </Card>
        ))}
        {snapshot.reviews.map((review) => (
          <Card
            key={review.review}
            kind={review.reason === "unlanded" ? "Did not land" : "Review"}
            title={`${review.review}: ${review.summary}`}
            about={`${counted(review.files.length, "file")}${review.agent ? `, left by ${review.agent}` : ""}, ${ago(review.opened_at, now.value)}`}
          >
            <button type="button" class="best" onClick={() => goToReview(review.review)}>
              Look at it
            </button>
          </Card>
        ))}
        {snapshot.requests.map((request) => (
          <RequestCard key={request.request} request={request} />
        ))}
        {messages.value.map((message) => (
          <Card key={message.message} kind="Message" title={message.text} about={`${message.sender}, ${ago(message.sent_at, now.value)}`}>
            {isThere(message.sender) ? <MessageForm to={message.sender} replyTo={message.message} /> : <span class="dim">It has ended.</span>}
            <button type="button" class="best" data-acts onClick={() => void markSeen(message)}>
              Mark as read
            </button>
          </Card>
        ))}
        {silentAgents.value.map((agent) => (
          <Card
            key={agent.agent}
            kind="Silent"
            title={agent.agent}
            about={`last seen ${ago(agent.seen_at, now.value)}; ${counted(agent.leases, "lease")}${agent.progress ? `; ${agent.progress}` : ""}`}
          >
            <button type="button" class="best" data-acts onClick={() => void endSession(agent.agent)}>
              End it, keep its work
            </button>
          </Card>
        ))}
        {restingAgents.value.map((agent) => (
          <Card
            key={agent.agent}
            kind="Resting"
            title={agent.agent}
            about={`until ${clock(agent.rests_until ?? "")}${agent.rests_why ? `: ${agent.rests_why}` : ""}`}
          >
            <button type="button" class="best" data-acts onClick={() => void letGoOn(agent.agent)}>
              Let it go on now
            </button>
          </Card>
        ))}
        {deadLetters.value.map((letter) => (
          <Card
            key={letter.id}
            kind="Given up"
            title={`${letter.id}: ${letter.what}`}
            about={`${counted(letter.attempts, "attempt")}: ${letter.why}`}
          >
            <button type="button" class="best" data-acts onClick={() => void retryDeadLetter(letter)}>
              Try it again
            </button>
          </Card>
        ))}
      </ul>
      <NotifyButton />
    </section>
  );
}

/** Whether an agent can still be told something. */
function isThere(agent: string): boolean {
  return status.value?.agents.some((row) => row.agent === agent) ?? false;
}
