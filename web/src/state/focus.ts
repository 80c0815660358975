/**
 * The keyboard's place, where what had the focus goes away: a card that was dealt with, a lease that has
 * ended, a panel that was closed. The browser would begin again at the top of the page. The focus goes to
 * the neighbour in the same list, which does nothing when a key is pressed once more; else to the list or
 * panel around it, or back to where the panel was opened.
 */
const LISTS = "ul, ol, tbody";
const PANEL = ".detail";
const AROUND = ".detail, .scrolled, [tabindex]";
/** Elements that had the focus last; more are not gone back to. */
const REMEMBERED = 10;

interface Step {
  around: Element;
  /** The place among its children of the one that the focus was in. */
  place: number;
}

let focused: HTMLElement | null = null;
/** From the nearest element around the focus to the page's. */
let steps: readonly Step[] = [];
let earlier: readonly HTMLElement[] = [];

/** From now on, for what is in this element. */
export function keepFocus(page: HTMLElement): void {
  page.addEventListener("focusin", (event) => remember(event.target as HTMLElement, page));
  page.addEventListener("focusout", () => {
    const left = focused;
    // By then a change of the page has been noted: what is still there was left by the person.
    setTimeout(() => {
      if (focused === left && document.activeElement !== left) {
        focused = null;
      }
    });
  });
  new MutationObserver((records) => {
    if (focused !== null && document.activeElement === document.body && records.some(hasTakenFocus)) {
      (focused.isConnected ? focused : findPlace()).focus({ preventScroll: true });
    }
  }).observe(page, { childList: true, subtree: true });
}

function remember(element: HTMLElement, page: HTMLElement): void {
  focused = element;
  earlier = [element, ...earlier.filter((other) => other !== element && other.isConnected)].slice(0, REMEMBERED);
  const path: Step[] = [];
  for (let child: Element = element; child !== page && child.parentElement !== null; child = child.parentElement) {
    path.push({ around: child.parentElement, place: [...child.parentElement.children].indexOf(child) });
  }
  steps = path;
}

function hasTakenFocus(record: MutationRecord): boolean {
  return [...record.removedNodes].some((node) => node.contains(focused));
}

function findPlace(): HTMLElement {
  const main = document.getElementById("main") as HTMLElement;
  for (const { around, place } of steps) {
    if (around === main) {
      break;
    }
    if (around.isConnected) {
      const neighbour = around.matches(LISTS) ? around.children[Math.min(place, around.children.length - 1)] : undefined;
      const home = neighbour ?? (around.matches(AROUND) ? around : undefined);
      if (home instanceof HTMLElement) {
        home.tabIndex = home.hasAttribute("tabindex") ? home.tabIndex : -1;
        return home;
      }
    }
  }
  const hasPanelGone = steps.some(({ around }) => around.matches(PANEL) && !around.isConnected) || focused?.matches(PANEL);
  return (hasPanelGone && earlier.find((element) => element.isConnected && main.contains(element))) || main;
}
