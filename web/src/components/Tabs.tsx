/** A row of tabs and the panel below it. */
import type { ComponentChildren } from "preact";

interface Props<T extends string> {
  label: string;
  /** Each tab's title, in order. */
  titles: Readonly<Partial<Record<T, ComponentChildren>>>;
  shown: T;
  show(tab: T): void;
  children: ComponentChildren;
}

export function Tabs<T extends string>({ label, titles, shown, show, children }: Props<T>) {
  return (
    <>
      <div class="tabs" role="tablist" aria-label={label}>
        {(Object.keys(titles) as T[]).map((name) => (
          <button key={name} type="button" role="tab" id={`tab-${name}`} aria-controls="tab-panel" aria-selected={shown === name} onClick={() => show(name)}>
            {titles[name]}
          </button>
        ))}
      </div>
      <div role="tabpanel" id="tab-panel" aria-labelledby={`tab-${shown}`}>
        {children}
      </div>
    </>
  );
}
