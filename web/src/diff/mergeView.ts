/**
 * CodeMirror's merge view, to read or to edit, in a shadow root: there it styles itself by constructed style sheets,
 * which the page's policy allows; in the document it would need inline styles, which it does not.
 */
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { HighlightStyle, LanguageDescription, syntaxHighlighting } from "@codemirror/language";
import { languages } from "@codemirror/language-data";
import { MergeView, unifiedMergeView } from "@codemirror/merge";
import { EditorState, type Extension } from "@codemirror/state";
import { EditorView, highlightSpecialChars, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";

import { UNSAFE } from "../words/texts";

/** Colours that are told apart on light and on dark ground, and without red and green. */
const COLOURS = HighlightStyle.define([
  { tag: [tags.keyword, tags.modifier, tags.operatorKeyword], color: "light-dark(#6f2da8, #d3a6ff)" },
  { tag: [tags.string, tags.regexp, tags.special(tags.string)], color: "light-dark(#8a4b00, #f0b35e)" },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: "light-dark(#0b5c6b, #7fd3e6)" },
  { tag: [tags.comment, tags.meta], color: "light-dark(#55606e, #a6afbb)", fontStyle: "italic" },
  { tag: [tags.definition(tags.variableName), tags.function(tags.variableName), tags.heading], color: "light-dark(#0b4f94, #8cc0ff)" },
  { tag: [tags.typeName, tags.className, tags.tagName], color: "light-dark(#0b4f94, #8cc0ff)" },
]);

export type Layout = "side-by-side" | "unified";

/** What hears of an edited text. */
export interface Editing {
  onChange(text: string): void;
  onSave(): void;
}

/** Show how a text has changed; with `editing` what it has become can be edited. Returns what takes the view away again. */
export async function showMerge(host: HTMLElement, path: string, before: string, after: string, layout: Layout, editing: Editing | null): Promise<() => void> {
  const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  root.replaceChildren();
  const extensions = [
    lineNumbers(),
    highlightSpecialChars({ addSpecialChars: UNSAFE }),
    syntaxHighlighting(COLOURS),
    EditorView.lineWrapping,
    EditorView.theme(
      {
        "&": { fontSize: "13px" },
        "&.cm-focused": { outline: "3px solid var(--best)", outlineOffset: "-3px" },
        ".cm-scroller": { fontFamily: "ui-monospace, monospace" },
        ".cm-gutters": { background: "var(--raised)", color: "var(--dim)", borderColor: "var(--line)" },
        ".cm-collapsedLines": { background: "var(--raised)", color: "var(--text)" },
        // A sign that cannot be seen is no change of colour alone: it has a frame.
        ".cm-specialChar": { color: "var(--bad)", outline: "1px solid" },
      },
      { dark: matchMedia("(prefers-color-scheme: dark)").matches },
    ),
    ...(await loadLanguage(path)),
  ];
  const sides = (label: string, further: Extension = EditorState.readOnly.of(true)) => [
    further,
    ...extensions,
    EditorView.contentAttributes.of({ "aria-label": `${path}, ${label}`, tabindex: "0" }),
  ];
  const left = editing === null ? sides("as it was left") : sides("your text", edited(after, editing));
  const collapseUnchanged = { margin: 3, minSize: 6 };
  const view =
    layout === "unified"
      ? new EditorView({
          doc: after,
          extensions: [editing === null ? sides("what has changed") : left, unifiedMergeView({ original: before, mergeControls: false, gutter: true, collapseUnchanged })],
          parent: root,
          root,
        })
      : new MergeView({
          a: { doc: before, extensions: sides("when it was leased") },
          b: { doc: after, extensions: left },
          parent: root,
          root,
          collapseUnchanged,
          gutter: true,
        });
  if (editing !== null) {
    (view instanceof MergeView ? view.b : view).focus();
  }
  return () => view.destroy();
}

/** A text that is edited keeps its own line ends. Tab goes on to the next control, as everywhere. */
function edited(text: string, { onChange, onSave }: Editing): Extension {
  const save = () => {
    onSave();
    return true;
  };
  return [
    EditorState.lineSeparator.of(/^(?:[^\n]*\r\n)+[^\n]*$/.test(text) ? "\r\n" : "\n"),
    keymap.of([{ key: "Mod-Enter", run: save }, ...defaultKeymap, ...historyKeymap]),
    history(),
    EditorView.contentAttributes.of({ "data-editing": "" }),
    EditorView.updateListener.of((update) => update.docChanged && onChange(update.state.sliceDoc())),
  ];
}

async function loadLanguage(path: string): Promise<Extension[]> {
  const language = LanguageDescription.matchFilename(languages, path.split("/").at(-1) ?? path);
  if (language === null) {
    return [];
  }
  try {
    return [await language.load()];
  } catch {
    return []; // without colours, then
  }
}
