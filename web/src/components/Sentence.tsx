/** A sentence of the log, with its instants in this browser's own time. */
import { localise } from "../words/texts";
import { Words } from "./Words";

export function Sentence({ text }: { text: string }) {
  return <Words isSentence text={localise(text)} />;
}
