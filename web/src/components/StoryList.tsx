/** The story of one subject in sentences, told again when something happens. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import { api, ask } from "../api/client";
import { Refusal } from "../api/refusal";
import { Feed } from "../state/feed";
import { Words } from "./Words";

export function StoryList({ subject }: { subject: string }) {
  const sentences = useSignal<readonly string[]>([]);
  useEffect(() => {
    let current = true;
    const tell = (lines: readonly string[]) => current && (sentences.value = lines);
    const feed = new Feed(
      () =>
        ask(api.GET("/v1/explain", { params: { query: { subject } } })).then(
          (story) => tell(story.sentences),
          (bad: unknown) => tell([bad instanceof Refusal ? bad.message : String(bad)]),
        ),
      /./,
    );
    feed.watch();
    return () => {
      current = false;
      feed.end();
    };
  }, [subject]);
  return (
    <ol class="story" reversed>
      {[...sentences.value].reverse().map((sentence, place) => (
        <li key={sentences.value.length - place}>
          <Words text={sentence} />
        </li>
      ))}
    </ol>
  );
}
