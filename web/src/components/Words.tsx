/**
 * Words that an agent or a file chose. They are text and never markup; signs that cannot be seen or
 * turn the direction of writing are written out. A sentence of coord's runs from left to right, whatever
 * the name that it begins with: who holds what would be told the other way round.
 */
import { harmless } from "../words/texts";

export function Words({ text, isSentence = false }: { text: string; isSentence?: boolean }) {
  return <bdi dir={isSentence ? "ltr" : "auto"}>{harmless(text)}</bdi>;
}
