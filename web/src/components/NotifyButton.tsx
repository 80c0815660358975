/** Offers to tell by the desktop what waits, as long as the browser has not been asked. */
import { allowNotifications, permission } from "../state/notifications";

export function NotifyButton() {
  return permission.value === "default" ? (
    <p>
      <button type="button" onClick={() => void allowNotifications()}>
        Show a desktop notification when something waits for me
      </button>
    </p>
  ) : null;
}
