/** An unlock request: who wants what of whom, and the answer in the holder's place. */
import type { UnlockRequest } from "../api/shapes";
import { answerRequest } from "../state/actions";
import { now } from "../state/now";
import { ago } from "../words/texts";
import { Card } from "./Card";

export function RequestCard({ request }: { request: UnlockRequest }) {
  const label = `${request.request}, ${request.resource}`;
  return (
    <Card
      kind="Unlock request"
      title={`${request.requested_by} asks ${request.holder} for ${request.resource}`}
      about={`${request.reason} (${request.request}, ${ago(request.requested_at, now.value)})`}
    >
      <button type="button" data-acts class="best" aria-label={`Approve ${label}`} onClick={() => void answerRequest(request, "approve")}>
        Approve
      </button>
      <button type="button" data-acts aria-label={`Reject ${label}`} onClick={() => void answerRequest(request, "reject")}>
        Reject
      </button>
    </Card>
  );
}
