/** Says when the coordinator is away, and when this page has ended. */
import { readsOnly } from "../api/entrance";
import { connection } from "../state/connection";

export function ConnectionBanner() {
  if (connection.value === "lost") {
    return (
      <p class="banner" role="status">
        The coordinator does not answer. What you see is how it was; the page goes on by itself when it is back. Any{" "}
        <code>coord</code> command in the repository starts it again. After <code>coord down</code> open the page anew: <code>coord web</code>.
      </p>
    );
  }
  if (connection.value === "ended") {
    return (
      <p class="banner ended" role="status">
        This page is not open, or has ended with its coordinator. Type <code>coord web</code> in the repository to open it.
      </p>
    );
  }
  if (readsOnly()) {
    return (
      <p class="banner" role="status">
        This page only reads. <code>coord web</code> opens one that may change things.
      </p>
    );
  }
  return null;
}
