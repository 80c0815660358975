/** The story of one subject in sentences, told again when something happens. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import { api, ask } from "../api/client";
import { Refusal } from "../api/refusal";
import { lastSeq } from "../state/store";
import { Words } from "./Words";

export function StoryList({ subject }: { subject: string }) {
  const sentences = useSignal<readonly string[]>([]);
  const seq = lastSeq.value;
  useEffect(() => {
    let current = true;
    const timer = setTimeout(() => {
      ask(api.GET("/v1/explain", { params: { query: { subject } } })).then(
        (story) => current && (sentences.value = story.sentences),
        (bad: unknown) => current && (sentences.value = [bad instanceof Refusal ? bad.message : String(bad)]),
      );
    }, 100);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [subject, seq]);
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
