// The open folder: what its page offers once scripts run. It joins the listing, the rows, and what a person does
// with the mouse and the keyboard.
//
// Invariants: without this, the page that the server rendered does all of it with more clicks; a folder that cannot
// be read again stays as it was shown.

import { Actions } from "./actions.js";
import { explain } from "./api.js";
import { dragsBetween } from "./drag.js";
import { button, element, find, notice } from "./dom.js";
import { Listing } from "./listing.js";
import { menuFor } from "./menu.js";
import { openPreview } from "./preview.js";
import { Rows } from "./rows.js";
import { counted, size, text } from "./texts.js";

/** @import { Column } from "./listing.js" */

export class Folder {
  /**
   * @param {HTMLTableElement} table
   * @param {HTMLElement} tools
   * @param {AbortSignal} ended When the person leaves the folder.
   */
  constructor(table, tools, ended) {
    this.path = location.pathname;
    this.table = table;
    this.tools = tools;
    this.ended = ended;
    this.may = new Set((tools.dataset["may"] ?? "").split(" "));
    const query = new URLSearchParams(location.search);
    const by = /** @type {Column} */ (query.get("sort") ?? "name");
    this.listing = new Listing(this.path, { by, descending: query.get("order") === "desc" });
    const hasTools = find("td > button.more, th:nth-child(4)", HTMLElement, table) !== null;
    this.rows = new Rows(table, this.listing, hasTools);
    this.actions = new Actions(this);
    this.filter = find("#filter", HTMLInputElement, tools);
    this.#bar();
    this.#head();
    this.#pointer();
    this.filter?.addEventListener("input", () => this.listing.filterBy(this.filter?.value ?? ""));
    addEventListener("scroll", () => this.rows.draw(), { passive: true, signal: ended });
    addEventListener("resize", () => this.rows.draw(), { passive: true, signal: ended });
    this.listing.addEventListener("arranged", () => this.#summarise());
    dragsBetween(this);
  }

  /** Reads the entries, again after a change. */
  async read() {
    try {
      await this.listing.read();
    } catch (error) {
      if (!this.ended.aborted) notice(explain(error), { isError: true });
      return;
    }
    document.querySelector("nav.pages")?.remove();
    this.table.classList.add("active");
  }

  /** Shows an entry that has just come, selected. @param {string} href */
  async show(href) {
    await this.read();
    if (this.listing.position(href) < 0) return;
    this.listing.select([href]);
    this.listing.current = href;
    this.rows.reveal(href);
  }

  /** Returns the path of an entry. @param {string} href */
  at(href) {
    return this.path + href;
  }

  /** Writes the summary above the table: how many are shown, and their size. */
  #summarise() {
    const { visible } = this.listing;
    const files = visible.filter((entry) => entry.kind === "file");
    const folders = visible.length - files.length;
    const bytes = files.reduce((sum, file) => sum + (file.size ?? 0), 0);
    const parts = [];
    if (folders) parts.push(counted("folders", folders));
    if (files.length) parts.push(counted("files", files.length), size(bytes));
    const empty = text(this.listing.filter ? "filter.none" : "empty");
    const summary = find("#content > p", HTMLParagraphElement);
    if (summary) summary.textContent = parts.join(", ") || empty;
  }

  /** Adds the bar of what can be done with the selected entries. It lies over the tools, so that nothing moves. */
  #bar() {
    const count = element("span", { role: "status" });
    const act = (/** @type {string} */ key, /** @type {() => unknown} */ run) =>
      button(text(key), () => void run());
    const { actions } = this;
    const changes = this.may.has("write") && this.may.has("delete");
    const bar = element("div", { class: "chosen", hidden: true, role: "toolbar", "aria-label": text("selection") },
      count,
      act("entry.download", () => actions.download()),
      ...(changes ? [act("cut", () => actions.take("MOVE"))] : []),
      act("copy", () => actions.take("COPY")),
      ...(this.may.has("delete") ? [act("delete", () => actions.remove())] : []),
      button("×", () => this.listing.select([]), { class: "close", "aria-label": text("select.none") }));
    this.tools.append(bar);
    this.listing.addEventListener("selected", () => {
      const { size: selected } = this.listing.selected;
      bar.hidden = selected === 0;
      this.tools.classList.toggle("covered", selected > 0);
      count.textContent = selected ? counted("selected", selected) : "";
    });
  }

  /** Sorts by a click on the head of a column, and selects all by a box there. */
  #head() {
    const { tHead } = this.table;
    if (!tHead) return;
    const all = element("input", { type: "checkbox", class: "pick", "aria-label": text("select.all") });
    all.addEventListener("change", () => {
      this.listing.select(all.checked ? this.listing.visible.map((entry) => entry.href) : []);
    });
    tHead.rows[0]?.cells[0]?.prepend(all);
    tHead.addEventListener("submit", (event) => {
      const column = event.submitter?.getAttribute("value");
      if (!this.listing.isRead || !column) return;
      event.preventDefault();
      this.listing.sortBy(/** @type {Column} */ (column));
      const { by, descending } = this.listing.order;
      const query = `?sort=${by}&order=${descending ? "desc" : "asc"}`;
      history.replaceState(history.state, "", this.path + query);
    });
    this.listing.addEventListener("arranged", () => {
      const { by, descending } = this.listing.order;
      for (const head of tHead.querySelectorAll("th")) {
        const isSorted = find("button", HTMLButtonElement, head)?.value === by;
        const arrow = head.querySelector("b");
        if (arrow) arrow.textContent = isSorted ? (descending ? " ↓" : " ↑") : "";
        if (isSorted) head.setAttribute("aria-sort", descending ? "descending" : "ascending");
        else head.removeAttribute("aria-sort");
      }
    });
  }

  /** Selects rows, opens menus and previews by the mouse or a finger. */
  #pointer() {
    const hrefOf = (/** @type {Event} */ event) =>
      event.target instanceof Element ? event.target.closest("tr")?.dataset["href"] : undefined;
    this.table.addEventListener("click", (event) => {
      const href = hrefOf(event);
      const target = /** @type {Element} */ (event.target);
      if (href === undefined || target.closest(".renaming")) return;
      this.listing.current = href;
      const isPick = target.matches("input.pick");
      if (target.closest("button.more")) {
        event.preventDefault();
        menuFor(this, href, target.getBoundingClientRect());
      } else if (event.shiftKey) {
        if (!isPick) event.preventDefault();
        getSelection()?.removeAllRanges();
        this.listing.extendTo(href);
      } else if (isPick || event.ctrlKey || event.metaKey) {
        if (!isPick) event.preventDefault();
        this.listing.toggle(href);
      } else if (target.closest("a")) {
        if (openPreview(this, href)) event.preventDefault();
      } else {
        this.listing.select([href]);
        this.listing.anchor = href;
        this.rows.reveal(href);
      }
    });
    this.table.addEventListener("contextmenu", (event) => {
      const href = hrefOf(event);
      // With Shift, the browser's own.
      if (href === undefined || event.shiftKey) return;
      event.preventDefault();
      menuFor(this, href, new DOMRect(event.clientX, event.clientY));
    });
    this.table.addEventListener("focusin", (event) => {
      const href = hrefOf(event);
      if (href !== undefined) this.listing.current = href;
    });
  }
}
