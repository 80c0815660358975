/** Tells by the desktop that something new waits, where the person allows it and looks elsewhere. */
import { effect, signal } from "@preact/signals";

import { counted } from "../words/texts";
import { waiting } from "./store";

const supported = typeof Notification !== "undefined";

/** What the browser says: only while it is "default" may it be asked. */
export const permission = signal<NotificationPermission>(supported ? Notification.permission : "denied");

export async function allowNotifications(): Promise<void> {
  permission.value = await Notification.requestPermission();
}

let before = 0;
effect(() => {
  const count = waiting.value;
  if (count > before && permission.value === "granted" && !document.hasFocus()) {
    // Only how much it is: what agents wrote is read in the page. One telling replaces the last.
    const notification = new Notification("coord", { body: `${counted(count, "thing")} ${count === 1 ? "waits" : "wait"} for you.`, tag: "coord" });
    notification.onclick = () => {
      window.focus();
      notification.close();
    };
  }
  before = count;
});
