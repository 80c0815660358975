/**
 * Words that an agent or a file chose. They are text and never markup; signs that cannot be seen or
 * turn the direction of writing are written out.
 */
import { harmless } from "../words/texts";

export function Words({ text }: { text: string }) {
  return <bdi>{harmless(text)}</bdi>;
}
