/** Where the page begins: it enters with its code, then follows the coordinator. */
import "./styles.css";
import "./time.css";

import { render } from "preact";

import { enter, readsOnly, token } from "./api/entrance";
import { App } from "./components/App";
import { connection } from "./state/connection";
import { keepFocus } from "./state/focus";
import { news } from "./state/news";
import { followHistory } from "./state/place";
import { begin } from "./state/store";

async function start(): Promise<void> {
  const refusal = await enter();
  if (refusal !== null) {
    news.value = { text: refusal.message, next: refusal.next, refused: true };
  }
  document.documentElement.toggleAttribute("data-reads-only", readsOnly());
  if (token() === "") {
    connection.value = "ended";
  } else {
    begin();
  }
  followHistory();
  // An address with a fresh code, opened in this tab, is another page: it enters anew.
  addEventListener("hashchange", () => location.hash.length > 1 && location.reload());
  const page = document.getElementById("page") as HTMLElement;
  keepFocus(page);
  render(<App />, page);
}

void start();
