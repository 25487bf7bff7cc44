// What a person does with entries: rename, move, copy, delete, and new folders.
//
// Invariants: nothing is replaced without a question; an entry that has changed since it was shown is not deleted;
// a failure is shown with the name that it is about, and ends nothing else.

import { NAMES_MAX, Problem, decoded, encodeName, explain, makeFolder, numbered, remove, split, transfer } from "./api.js";
import { askClash } from "./clash.js";
import { ask, askText, button, element, find, notice } from "./dom.js";
import { findTrashed, hasTrash, restore } from "./trash.js";
import { counted, shown, text } from "./texts.js";

/** @import { Folder } from "./folder.js" */
/** @import { Entry } from "./api.js" */
/** @import { ClashChoice } from "./clash.js" */
/** @typedef {{method: "MOVE" | "COPY", paths: string[]}} Taken */

/** Where entries that were cut or copied are noted, for the other folders of this tab. */
const CLIPBOARD = "plimsoll.clipboard";

export class Actions {
  /** @param {Folder} folder */
  constructor(folder) {
    this.folder = folder;
    this.#newFolder();
    this.#pasteButton();
  }

  /** Returns the selected entries; without a selection, the one with the focus. @returns {Entry[]} */
  get #chosen() {
    const { listing } = this.folder;
    const current = listing.entry(listing.current);
    return listing.selected.size ? listing.chosen : current ? [current] : [];
  }

  /**
   * Runs an action for each entry; shows what failed.
   * @param {string[]} names
   * @param {(at: number) => Promise<unknown>} act
   */
  async #each(names, act) {
    let done = 0;
    for (const [at, name] of names.entries()) {
      try {
        if (await act(at) !== false) done += 1;
      } catch (error) {
        notice(`${shown(name)}: ${explain(error)}`, { isError: true });
      }
    }
    await this.folder.read();
    return done;
  }

  /**
   * Downloads the chosen entries: one file as itself, others as a zip by a form, which the browser streams. A server
   * without zips gives each file.
   */
  download() {
    const chosen = this.#chosen;
    const hasZip = find('a[href$="archive=zip"]', HTMLAnchorElement, this.folder.tools) !== null;
    if (!hasZip || (chosen.length === 1 && chosen[0]?.kind === "file")) {
      for (const { href } of chosen.filter(({ kind }) => kind === "file")) {
        element("a", { href: this.folder.at(href), download: true }).click();
      }
      return;
    }
    const names = chosen.map(({ href }) =>
      element("input", { type: "hidden", name: "names", value: decoded(href.replace(/\/$/, "")) }));
    const action = `${this.folder.path}?archive=zip`;
    const form = element("form", { method: "post", action, hidden: true }, ...names);
    document.body.append(form);
    form.submit();
    form.remove();
  }

  async remove() {
    const { folder } = this;
    const chosen = this.#chosen;
    if (!chosen.length || !folder.may.has("delete")) return;
    const keeps = await hasTrash();
    const [first] = chosen;
    const title = first && chosen.length === 1
      ? text("delete.one", { name: shown(first.name) })
      : counted("delete.many", chosen.length);
    const warning = text(keeps ? "delete.to-trash" : "delete.for-good");
    const choices = [{ value: "yes", label: text("delete"), style: "danger" }];
    if (await ask({ title, content: [element("p", {}, warning)], choices }) !== "yes") return;
    const paths = chosen.map(({ href }) => folder.at(href));
    const next = this.#neighbour(chosen);
    const removed = await this.#each(chosen.map(({ name }) => name), async (at) => {
      await remove(paths[at] ?? "", chosen[at]?.etag ?? "");
    });
    if (next) folder.rows.reveal(next);
    // In a share, they are in the trash of its owner.
    const canUndo = keeps && paths.every((path) => path.startsWith("/files/"));
    if (removed) notice(counted("deleted", removed), canUndo ? { action: this.#undo(paths) } : {});
  }

  /** Returns the entry after those, which gets the focus when they are gone. @param {Entry[]} chosen */
  #neighbour(chosen) {
    const { visible } = this.folder.listing;
    const last = visible.indexOf(/** @type {Entry} */ (chosen.at(-1)));
    return (visible[last + 1] ?? visible.find((entry) => !chosen.includes(entry)))?.href;
  }

  /** @param {string[]} paths */
  #undo(paths) {
    const run = async () => {
      const trashed = await findTrashed(paths.map(decoded));
      await this.#each(trashed.map(({ path }) => path), (at) => restore(trashed[at]?.id ?? ""));
    };
    return { label: text("undo"), run: () => void run() };
  }

  /** Renames in the row. Enter renames, Escape leaves it. @param {string} href */
  rename(href) {
    const { folder } = this;
    const entry = folder.listing.entry(href);
    const row = folder.rows.of(href);
    const link = row && find("a", HTMLAnchorElement, row);
    if (!entry || !row || !link || !folder.may.has("write") || !folder.may.has("delete")) return;
    const label = text("rename.of", { name: shown(entry.name) });
    const attributes = { class: "renaming", value: entry.name, "aria-label": label, spellcheck: "false" };
    const field = element("input", attributes);
    let isOver = false;
    const end = async (/** @type {boolean} */ renames) => {
      if (isOver) return;
      isOver = true;
      field.replaceWith(link);
      row.draggable = true;
      link.focus();
      if (renames && field.value && field.value !== entry.name) await this.#renameTo(entry, field.value);
    };
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter") void end(true);
      if (event.key === "Escape") void end(false);
      event.stopPropagation();
    });
    field.addEventListener("blur", () => void end(true));
    link.replaceWith(field);
    row.draggable = false;
    field.focus();
    const dot = entry.kind === "file" ? entry.name.lastIndexOf(".") : -1;
    field.setSelectionRange(0, dot > 0 ? dot : entry.name.length);
  }

  /** @param {Entry} entry @param {string} name */
  async #renameTo(entry, name) {
    const { folder } = this;
    if (name.includes("/")) return notice(text("rename.slash"), { isError: true });
    const href = encodeName(name) + (entry.kind === "folder" ? "/" : "");
    try {
      await transfer("MOVE", folder.at(entry.href), folder.at(href));
    } catch (error) {
      const isTaken = error instanceof Problem && error.status === 412;
      return notice(isTaken ? text("rename.taken", { name: shown(name) }) : explain(error), { isError: true });
    }
    await folder.show(href);
  }

  /** Replaces the form for a new folder by a dialog. */
  #newFolder() {
    const action = find('.tools button[value="mkdir"]', HTMLButtonElement, this.folder.tools);
    const summary = action?.closest("details")?.querySelector("summary");
    summary?.addEventListener("click", (event) => {
      event.preventDefault();
      void this.makeFolder();
    });
  }

  async makeFolder() {
    const { folder } = this;
    const name = await askText(text("folder.new"), text("name"), "", text("folder.make"));
    if (!name) return;
    try {
      await makeFolder(folder.at(encodeName(name)));
    } catch (error) {
      const isTaken = error instanceof Problem && error.status === 405;
      notice(isTaken ? text("rename.taken", { name: shown(name) }) : explain(error), { isError: true });
      return;
    }
    await folder.show(`${encodeName(name)}/`);
  }

  /**
   * Notes the chosen entries, to be moved or copied to where the person pastes.
   * @param {"MOVE" | "COPY"} method
   */
  take(method) {
    const { folder } = this;
    const paths = this.#chosen.map(({ href }) => folder.at(href));
    if (!paths.length || (method === "MOVE" && !folder.may.has("delete"))) return;
    /** @type {Taken} */
    const taken = { method, paths };
    sessionStorage.setItem(CLIPBOARD, JSON.stringify(taken));
    folder.listing.select([]);
    this.#pasteButton();
    notice(counted(method === "MOVE" ? "taken.cut" : "taken.copied", paths.length));
  }

  /** @returns {Taken | null} */
  get taken() {
    return JSON.parse(sessionStorage.getItem(CLIPBOARD) ?? "null");
  }

  async paste() {
    const { taken } = this;
    if (!taken || !this.folder.may.has("write")) return;
    if (taken.method === "MOVE") sessionStorage.removeItem(CLIPBOARD);
    this.#pasteButton();
    await this.move(taken, this.folder.path);
  }

  /** Offers to paste while there is something to paste. */
  #pasteButton() {
    const { tools, may } = this.folder;
    tools.querySelector(".paste")?.remove();
    const { taken } = this;
    if (!taken || !may.has("write")) return;
    const label = counted("paste", taken.paths.length);
    tools.querySelector(".filter")?.before(button(label, () => void this.paste(), { class: "paste" }));
  }

  /** Moves or copies entries into a folder. @param {Taken} taken @param {string} into */
  async move({ method, paths }, into) {
    /** @type {{always?: ClashChoice}} */
    const answers = {};
    const names = paths.map((path) => decoded(split(path)[1]));
    const done = await this.#each(names, (at) => this.#moveOne(method, paths[at] ?? "", into, answers));
    if (done) notice(counted(method === "MOVE" ? "moved" : "copied", done));
  }

  /**
   * @param {"MOVE" | "COPY"} method
   * @param {string} path
   * @param {string} into
   * @param {{always?: ClashChoice}} answers
   */
  async #moveOne(method, path, into, answers) {
    const [from, href] = split(path);
    if (from === into && method === "MOVE") return false;
    const isFolder = href.endsWith("/");
    const name = decoded(href.replace(/\/$/, ""));
    const target = (/** @type {number} */ count) =>
      into + (count === 1 ? href : encodeName(numbered(name, count)) + (isFolder ? "/" : ""));
    /** @type {ClashChoice} */
    let choice = from === into ? "both" : "ask";
    for (let count = 1; count <= NAMES_MAX; count += 1) {
      try {
        await transfer(method, path, target(choice === "both" ? count : 1), choice === "replace");
        return true;
      } catch (error) {
        if (!(error instanceof Problem) || error.status !== 412 || choice === "replace") throw error;
        const mayReplace = this.folder.may.has("delete") && !isFolder;
        if (choice === "ask") choice = await askClash({ name, answers, mayReplace });
        if (choice === "skip") return false;
      }
    }
    throw new Problem(412, "");
  }
}
