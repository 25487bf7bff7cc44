// The menu of an entry: by the button in its row, by the right mouse button, or by the keyboard.
//
// Invariants: it offers what the account may do here; it closes with the focus where it was.

import { element } from "./dom.js";
import { openPreview } from "./preview.js";
import { shown, text } from "./texts.js";

/** @import { Folder } from "./folder.js" */

/** Space that is kept between the menu and the window's edge, in pixels. */
const EDGE = 8;

/** @type {(() => void) | undefined} */
let closeOpen;

/**
 * Opens the menu of an entry. If it is one of several that are selected, the menu is about all of them.
 * @param {Folder} folder
 * @param {string} href
 * @param {DOMRect} at
 */
export function menuFor(folder, href, at) {
  const { listing, actions, may } = folder;
  const entry = listing.entry(href);
  if (!entry) return;
  if (!listing.selected.has(href)) listing.select([href]);
  listing.current = href;
  const isAlone = listing.selected.size === 1;
  const changes = may.has("write") && may.has("delete");
  const link = folder.rows.of(href)?.querySelector("a");
  const details = `/app/entry?at=${encodeURIComponent(folder.at(href))}`;
  const open = () => {
    if (!openPreview(folder, href)) link?.click();
  };
  /** @type {[string, () => unknown, boolean][]} */
  const items = [
    ["entry.open", open, isAlone],
    ["entry.download", () => actions.download(), true],
    ["rename.in-place", () => actions.rename(href), isAlone && changes],
    ["cut", () => actions.take("MOVE"), changes],
    ["copy", () => actions.take("COPY"), true],
    ["delete", () => actions.remove(), may.has("delete")],
    ["entry", () => location.assign(details), isAlone && (may.has("delete") || may.has("share"))],
  ];
  const buttons = items.filter(([, , isOffered]) => isOffered).map(([key, run]) =>
    element("button", { type: "button", role: "menuitem", tabindex: -1, onclick: () => close(run) }, text(key)));
  show(buttons, at, text("menu.of", { name: shown(entry.name) }));
}

/** @param {() => unknown} run */
function close(run) {
  closeOpen?.();
  void run();
}

/**
 * @param {HTMLButtonElement[]} buttons
 * @param {DOMRect} at
 * @param {string} label
 */
function show(buttons, at, label) {
  closeOpen?.();
  const before = document.activeElement;
  const menu = element("div", { class: "menu", role: "menu", "aria-label": label }, ...buttons);
  document.body.append(menu);
  const { width, height } = menu.getBoundingClientRect();
  menu.style.left = `${Math.max(EDGE, Math.min(at.left, innerWidth - width - EDGE))}px`;
  const below = at.bottom + height + EDGE < innerHeight;
  menu.style.top = `${Math.max(EDGE, below ? at.bottom : at.top - height)}px`;
  const over = new AbortController();
  closeOpen = () => {
    over.abort();
    menu.remove();
    closeOpen = undefined;
    if (before instanceof HTMLElement) before.focus({ preventScroll: true });
  };
  const leave = () => closeOpen?.();
  const { signal } = over;
  addEventListener("pointerdown", ({ target }) => menu.contains(/** @type {Node} */ (target)) || leave(), { signal });
  addEventListener("scroll", leave, { signal, passive: true });
  addEventListener("blur", leave, { signal });
  menu.addEventListener("keydown", (event) => {
    const focused = buttons.indexOf(/** @type {HTMLButtonElement} */ (document.activeElement));
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) buttons.at((focused + step) % buttons.length)?.focus();
    else if (event.key === "Escape" || event.key === "Tab") leave();
    else return;
    event.preventDefault();
  });
  buttons[0]?.focus({ preventScroll: true });
}
