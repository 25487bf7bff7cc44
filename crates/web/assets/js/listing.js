// The entries of the open folder: their order, the filter, and the selection.
//
// It draws nothing: rows.js does. Invariants: the order is the server's; an entry is known by its href, which is
// exact to the byte; what is selected is shown.

import { list } from "./api.js";

/** @import { Entry } from "./api.js" */
/** @typedef {"name" | "size" | "modified"} Column */

/**
 * Returns the key that sorts a name as the server does: case does not matter, and a number in it counts by its
 * value. A number is "0", how many digits it has, and those.
 * @param {string} name
 */
function sortKey(name) {
  return name.toLowerCase().replace(/[0-9]+/g, (digits) => {
    const value = digits.replace(/^0+/, "");
    return `0${String.fromCharCode(value.length)}${value}`;
  });
}

/** @param {string | number} a @param {string | number} b */
function compare(a, b) {
  return a < b ? -1 : Number(a > b);
}

export class Listing extends EventTarget {
  /** @type {Entry[]} All entries. */
  entries = [];
  /** @type {Entry[]} The entries that pass the filter, in order. */
  visible = [];
  /** @type {Set<string>} The hrefs of the selected entries. */
  selected = new Set();
  /** The entry that has the keyboard's focus, and the one where a range begins. */
  current = "";
  anchor = "";
  filter = "";
  /** Whether the entries have been read. */
  isRead = false;
  /** @type {{key: string, entry: Entry}[]} */
  #keyed = [];
  #reading = new AbortController();

  /**
   * @param {string} path The folder's path, percent-encoded.
   * @param {{by: Column, descending: boolean}} order
   */
  constructor(path, order) {
    super();
    this.path = path;
    this.order = order;
  }

  /** Reads the folder, again if it has been read. The selection stays, without entries that have gone. */
  async read() {
    this.#reading.abort();
    this.#reading = new AbortController();
    this.entries = await list(this.path, "", this.#reading.signal);
    this.isRead = true;
    this.#keyed = this.entries.map((entry) => ({ key: sortKey(entry.name), entry }));
    this.#arrange();
  }

  /** Sorts by a column; again by the same one, in the reverse order. @param {Column} column */
  sortBy(column) {
    const { by, descending } = this.order;
    this.order = { by: column, descending: by === column ? !descending : column !== "name" };
    this.#arrange();
  }

  /** Shows the entries whose names contain a text. @param {string} filter */
  filterBy(filter) {
    this.filter = filter.trim().toLowerCase();
    this.#arrange();
  }

  #arrange() {
    const { by, descending } = this.order;
    const direction = descending ? -1 : 1;
    /** @type {(entry: Entry) => string | number} */
    const value = by === "size" ? (entry) => entry.size ?? 0 : (entry) => entry.modified;
    const passing = this.filter
      ? this.#keyed.filter(({ entry }) => entry.name.toLowerCase().includes(this.filter))
      : this.#keyed;
    passing.sort((a, b) => {
      const byName = compare(a.key, b.key) || compare(a.entry.name, b.entry.name);
      const byColumn = by === "name" ? byName : compare(value(a.entry), value(b.entry));
      return compare(a.entry.kind === "folder" ? 0 : 1, b.entry.kind === "folder" ? 0 : 1)
        || byColumn * direction || byName;
    });
    this.visible = passing.map(({ entry }) => entry);
    const shown = new Set(this.visible.map((entry) => entry.href));
    this.selected = new Set([...this.selected].filter((href) => shown.has(href)));
    this.dispatchEvent(new Event("arranged"));
    this.dispatchEvent(new Event("selected"));
  }

  /** Returns the selected entries, in order. */
  get chosen() {
    return this.visible.filter((entry) => this.selected.has(entry.href));
  }

  /** Returns the position of an entry; -1 if it is not shown. @param {string} href */
  position(href) {
    return this.visible.findIndex((entry) => entry.href === href);
  }

  /** @param {string} href */
  entry(href) {
    return this.visible.find((entry) => entry.href === href);
  }

  /** Selects these entries only. @param {string[]} hrefs */
  select(hrefs) {
    this.selected = new Set(hrefs);
    this.dispatchEvent(new Event("selected"));
  }

  /** Selects an entry, or no longer. @param {string} href */
  toggle(href) {
    if (!this.selected.delete(href)) this.selected.add(href);
    this.anchor = href;
    this.dispatchEvent(new Event("selected"));
  }

  /** Selects all entries between the anchor and this one. @param {string} href */
  extendTo(href) {
    const to = this.position(href);
    const from = Math.max(0, this.anchor ? this.position(this.anchor) : to);
    const range = this.visible.slice(Math.min(from, to), Math.max(from, to) + 1);
    this.select(range.map((entry) => entry.href));
  }
}
