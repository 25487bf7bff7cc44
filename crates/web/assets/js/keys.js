// The keyboard: through the rows, and a key for each action. "?" shows them.
//
// Invariants: a key in a field, a dialog or a menu means what it means there; every key has another way.

import { ask, element } from "./dom.js";
import { menuFor } from "./menu.js";
import { openPreview } from "./preview.js";
import { text } from "./texts.js";

/** @import { Folder } from "./folder.js" */

/** How many rows Page Up and Page Down go. */
const PAGE_ROWS = 20;

/** Each key with the text about it. */
const HELP = [
  ["↑ ↓", "keys.move"], ["Enter", "keys.open"], ["Space", "keys.select"], ["Shift ↑ ↓", "keys.extend"],
  ["Ctrl A", "keys.all"], ["Esc", "keys.none"], ["/", "keys.filter"], ["F2", "keys.rename"],
  ["Delete", "keys.delete"], ["Ctrl X, C, V", "keys.clipboard"], ["Shift F10", "keys.menu"],
  ["Backspace", "keys.up"], ["← →", "keys.preview"], ["?", "keys.help"],
];

export function showHelp() {
  const rows = HELP.map(([keys, about]) =>
    element("div", {}, element("dt", {}, element("kbd", {}, keys ?? "")), element("dd", {}, text(about ?? ""))));
  void ask({ title: text("keys"), content: [element("dl", { class: "keys" }, ...rows)], choices: [] });
}

/** @param {Folder} folder @param {number} step @param {boolean} extends_ */
function move(folder, step, extends_) {
  const { listing, rows } = folder;
  const last = listing.visible.length - 1;
  if (last < 0) return;
  const from = listing.position(listing.current);
  const start = from < 0 ? (step === -1 ? last + 1 : -1) : from;
  const to = Math.min(last, Math.max(0, start + step));
  const href = listing.visible[to]?.href ?? "";
  if (extends_) {
    listing.anchor ||= listing.current || href;
    listing.extendTo(href);
  } else {
    listing.anchor = href;
  }
  listing.current = href;
  rows.reveal(href);
}

/** Returns the actions with Ctrl, by key. @param {Folder} folder @returns {Record<string, () => void>} */
function withControl({ listing, actions }) {
  return {
    a: () => listing.select(listing.visible.map((entry) => entry.href)),
    c: () => actions.take("COPY"),
    x: () => actions.take("MOVE"),
  };
}

/**
 * Returns the actions by key.
 * @param {Folder} folder
 * @param {boolean} shift
 * @returns {Record<string, () => void>}
 */
function plain(folder, shift) {
  const { listing, actions } = folder;
  return {
    ArrowDown: () => move(folder, 1, shift),
    ArrowUp: () => move(folder, -1, shift),
    PageDown: () => move(folder, PAGE_ROWS, shift),
    PageUp: () => move(folder, -PAGE_ROWS, shift),
    Home: () => move(folder, -Infinity, shift),
    End: () => move(folder, Infinity, shift),
    " ": () => listing.toggle(listing.current),
    Escape: () => listing.select([]),
    Delete: () => void actions.remove(),
    F2: () => actions.rename(listing.current),
    "/": () => folder.filter?.focus(),
    "?": showHelp,
    Backspace: () => folder.rows.up?.querySelector("a")?.click(),
    ContextMenu: () => showMenu(folder),
    F10: () => shift && showMenu(folder),
  };
}

/** @param {Folder} folder */
function showMenu(folder) {
  const row = folder.rows.of(folder.listing.current);
  if (row) menuFor(folder, folder.listing.current, row.getBoundingClientRect());
}

/** Keys that need an entry that has the focus. */
const ABOUT_CURRENT = new Set([" ", "F2", "ContextMenu", "F10"]);

/**
 * Leads each key to the open folder.
 * @param {() => Folder | null} open
 */
export function listenToKeys(open) {
  document.addEventListener("keydown", (event) => {
    const folder = open();
    const target = /** @type {Element} */ (event.target);
    if (!folder || event.defaultPrevented || event.isComposing || event.altKey) return;
    if (target.closest("dialog, .menu, select, textarea")) return;
    if (target instanceof HTMLInputElement && target.type !== "checkbox") {
      if (target === folder.filter) inFilter(folder, event);
      return;
    }
    const { key } = event;
    const isControl = event.ctrlKey || event.metaKey;
    const known = isControl ? withControl(folder)[key.toLowerCase()] : plain(folder, event.shiftKey)[key];
    if (!known || (isControl && getSelection()?.type === "Range")) return;
    // Space presses a button, and Enter opens a link, as everywhere.
    if (key === " " && target.closest("button, summary, input")) return;
    if (!isControl && ABOUT_CURRENT.has(key) && folder.listing.position(folder.listing.current) < 0) return;
    if (key === "F10" && !event.shiftKey) return;
    event.preventDefault();
    known();
  });
}

/** From the filter, keys lead to what it found. @param {Folder} folder @param {KeyboardEvent} event */
function inFilter(folder, event) {
  const [first] = folder.listing.visible;
  if (event.key === "Escape" && folder.filter) {
    folder.filter.value = "";
    folder.listing.filterBy("");
    folder.filter.blur();
  } else if (event.key === "ArrowDown" && first) {
    event.preventDefault();
    folder.rows.reveal(first.href);
  } else if (event.key === "Enter" && first) {
    event.preventDefault();
    if (!openPreview(folder, first.href)) folder.rows.of(first.href)?.querySelector("a")?.click();
  }
}
