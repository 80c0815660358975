/** A message of the coordinator: what stands between backticks is a command. */
import { Words } from "./Words";

export function Prose({ text }: { text: string }) {
  return (
    <>
      {text.split("`").map((part, index) =>
        index % 2 === 1 ? (
          <code key={index}>
            <Words text={part} />
          </code>
        ) : (
          <Words isSentence key={index} text={part} />
        ),
      )}
    </>
  );
}
