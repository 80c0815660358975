/** The story of one subject in sentences, told again when something happens. */
import { api, ask } from "../api/client";
import { Refusal } from "../api/refusal";
import { useAnswer } from "../state/useAnswer";
import { Words } from "./Words";

export function StoryList({ subject }: { subject: string }) {
  const story = useAnswer(() => ask(api.GET("/v1/explain", { params: { query: { subject } } })), subject).value;
  const sentences = story === null ? [] : story instanceof Refusal ? [story.message] : story.sentences;
  return (
    <ol class="story" reversed>
      {[...sentences].reverse().map((sentence, place) => (
        <li key={sentences.length - place}>
          <Words text={sentence} />
        </li>
      ))}
    </ol>
  );
}
