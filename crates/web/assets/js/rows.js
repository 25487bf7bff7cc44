// The rows of the open folder's table. The first ones are the server's; these replace them once all are read.
//
// A long folder has rows of one height, and only those near the window exist. Invariants: a row looks as the server
// renders it; a row that is rebuilt keeps the focus.

import { button, element, find } from "./dom.js";
import { number, shown, size, text } from "./texts.js";

/** @import { Entry } from "./api.js" */
/** @import { Listing } from "./listing.js" */

/** Up to so many rows exist at once; of more, only those near the window. */
const ROWS_MAX = 400;
/** Rows beyond each edge of the window, so that scrolling shows no gap. */
const ROWS_BEYOND = 40;
/** Rows that are remembered, though they do not exist in the table. */
const ROWS_KEPT = 2000;

export class Rows {
  #window = { start: 0, end: 0 };
  /** @type {Map<string, HTMLTableRowElement>} */
  #made = new Map();
  #height = 0;
  #before = element("tr", { class: "space", "aria-hidden": "true" }, element("td", { colspan: 4 }));
  #after = element("tr", { class: "space", "aria-hidden": "true" }, element("td", { colspan: 4 }));

  /**
   * @param {HTMLTableElement} table
   * @param {Listing} listing
   * @param {boolean} hasTools Whether there is a column of buttons.
   */
  constructor(table, listing, hasTools) {
    this.table = table;
    this.listing = listing;
    this.hasTools = hasTools;
    this.body = /** @type {HTMLTableSectionElement} */ (table.tBodies[0]);
    this.up = this.body.querySelector("a.up")?.closest("tr");
    listing.addEventListener("arranged", () => this.#arranged());
    listing.addEventListener("selected", () => this.#markSelected());
  }

  get #isLong() {
    return this.listing.visible.length > ROWS_MAX;
  }

  #arranged() {
    this.#made.clear();
    this.table.classList.toggle("long", this.#isLong);
    this.table.setAttribute("aria-rowcount", String(this.listing.visible.length + 1));
    this.#window = { start: -1, end: -1 };
    this.draw();
  }

  /** Draws the rows near the window, if others are drawn. */
  draw() {
    const { start, end } = this.#wanted();
    if (start === this.#window.start && end === this.#window.end) return;
    this.#window = { start, end };
    const focused = document.activeElement?.closest("tr")?.dataset["href"];
    if (this.#made.size > ROWS_KEPT) this.#made.clear();
    const { visible } = this.listing;
    const rows = visible.slice(start, end).map((entry, at) => this.#row(entry, start + at));
    this.#before.style.height = `${start * this.#height}px`;
    this.#after.style.height = `${(visible.length - end) * this.#height}px`;
    const spaced = this.#isLong ? [this.#before, ...rows, this.#after] : rows;
    this.body.replaceChildren(...(this.up ? [this.up] : []), ...spaced);
    if (focused) this.#made.get(focused)?.querySelector("a")?.focus({ preventScroll: true });
  }

  /** Returns the positions of the rows that should exist. */
  #wanted() {
    const all = this.listing.visible.length;
    if (!this.#isLong) return { start: 0, end: all };
    if (!this.#height) this.#height = this.#measure();
    const top = this.body.getBoundingClientRect().top;
    const first = Math.floor(-top / this.#height);
    const count = Math.ceil(innerHeight / this.#height);
    // In steps, so that not every line of scrolling draws.
    const step = (/** @type {number} */ at) => Math.floor(at / 20) * 20;
    const start = Math.min(Math.max(0, step(first - ROWS_BEYOND)), Math.max(0, all - count));
    return { start, end: Math.min(all, step(first + count + ROWS_BEYOND) + 20) };
  }

  #measure() {
    const [entry] = this.listing.visible;
    if (!entry) return 1;
    const row = this.#row(entry, 0);
    this.body.append(row);
    return row.getBoundingClientRect().height;
  }

  /**
   * Shows a row, and gives it the focus.
   * @param {string} href
   * @param {boolean} [focuses]
   */
  reveal(href, focuses = true) {
    const at = this.listing.position(href);
    if (at < 0) return;
    if (this.#isLong) {
      const top = this.body.getBoundingClientRect().top + at * this.#height;
      if (top < 0) scrollBy(0, top - this.#height);
      else if (top + 2 * this.#height > innerHeight) scrollBy(0, top + 2 * this.#height - innerHeight);
      this.draw();
    }
    const row = this.#made.get(href);
    row?.scrollIntoView({ block: "nearest" });
    if (focuses && row) find("a", HTMLAnchorElement, row)?.focus({ preventScroll: true });
  }

  /** Returns the row of an entry, if it exists. @param {string} href */
  of(href) {
    return this.#made.get(href);
  }

  #markSelected() {
    for (const [href, row] of this.#made) this.#mark(row, href);
    const { selected, visible } = this.listing;
    const all = find("input.pick", HTMLInputElement, this.table.tHead ?? this.table);
    if (all) {
      all.checked = visible.length > 0 && selected.size === visible.length;
      all.indeterminate = selected.size > 0 && !all.checked;
    }
  }

  /** @param {HTMLTableRowElement} row @param {string} href */
  #mark(row, href) {
    const isSelected = this.listing.selected.has(href);
    row.classList.toggle("selected", isSelected);
    const box = find("input.pick", HTMLInputElement, row);
    if (box) box.checked = isSelected;
  }

  /** @param {Entry} entry @param {number} at */
  #row(entry, at) {
    const known = this.#made.get(entry.href);
    if (known) return known;
    const isFolder = entry.kind === "folder";
    const name = shown(entry.name);
    const box = element("input", { type: "checkbox", class: "pick", tabindex: -1,
      "aria-label": text("select.entry", { name }) });
    const link = element("a", { href: entry.href, class: isFolder && "folder" }, isFolder ? `${name}/` : name);
    const exact = isFolder ? "" : text("bytes", { count: number(entry.size ?? 0) });
    const [date = "", clock = ""] = entry.modified.split("T");
    const time = element("time", { datetime: entry.modified }, date, element("span", {}, ` ${clock.slice(0, 5)}`));
    const row = element("tr", { draggable: "true", "aria-rowindex": at + 2 },
      element("td", {}, box, link),
      element("td", { title: exact || undefined }, isFolder ? "" : size(entry.size ?? 0)),
      element("td", {}, time));
    row.dataset["href"] = entry.href;
    if (this.hasTools) {
      const attributes = { class: "more", "aria-label": text("menu.of", { name }), "aria-haspopup": "menu" };
      row.append(element("td", {}, button("⋯", () => {}, attributes)));
    }
    this.#mark(row, entry.href);
    this.#made.set(entry.href, row);
    return row;
  }
}
