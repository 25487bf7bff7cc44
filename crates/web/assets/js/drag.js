// Entries that are dragged onto a folder, and files that are dropped from the desktop.
//
// Invariants: only this page's own entries are moved; files go to the folder over which they are dropped.

import { queue } from "./panel.js";
import { transferred } from "./sources.js";
import { explain } from "./api.js";
import { element, notice } from "./dom.js";
import { text } from "./texts.js";

/** @import { Folder } from "./folder.js" */

/** The media type of dragged entries: a list of paths. */
const ENTRIES = "application/x-plimsoll-entries";

/**
 * Returns the path of the folder under the pointer: a row's, or a breadcrumb's.
 * @param {Folder} folder
 * @param {Event} event
 */
function folderUnder(folder, event) {
  if (!(event.target instanceof Element)) return undefined;
  const href = event.target.closest("tr")?.dataset["href"];
  if (href?.endsWith("/")) return folder.at(href);
  const link = event.target.closest("h1 a, a.up");
  return link instanceof HTMLAnchorElement ? new URL(link.href).pathname : undefined;
}

/** @param {Folder} folder */
export function dragsBetween(folder) {
  const main = folder.table.closest("main") ?? document.body;
  /** @type {Element | null} */
  let marked = null;
  const mark = (/** @type {Element | null} */ next) => {
    if (next === marked) return;
    marked?.classList.remove("target");
    (marked = next)?.classList.add("target");
  };
  folder.table.addEventListener("dragstart", (event) => {
    const href = /** @type {Element} */ (event.target).closest("tr")?.dataset["href"];
    if (href === undefined || !event.dataTransfer || !folder.may.has("delete")) return;
    const { listing } = folder;
    if (!listing.selected.has(href)) listing.select([href]);
    const paths = listing.chosen.map((entry) => folder.at(entry.href));
    event.dataTransfer.setData(ENTRIES, JSON.stringify(paths));
    event.dataTransfer.effectAllowed = "move";
  });
  main.addEventListener("dragover", (event) => {
    const isEntries = event.dataTransfer?.types.includes(ENTRIES);
    const path = folderUnder(folder, event);
    if (!isEntries || !event.dataTransfer) return;
    const target = /** @type {Element} */ (event.target);
    mark(path === undefined || path === folder.path ? null : target.closest("tr") ?? target.closest("a"));
    if (marked) event.preventDefault();
  });
  main.addEventListener("dragleave", (event) => {
    if (!main.contains(/** @type {Node | null} */ (event.relatedTarget))) mark(null);
  });
  main.addEventListener("drop", (event) => {
    const data = event.dataTransfer?.getData(ENTRIES);
    const into = folderUnder(folder, event);
    mark(null);
    if (!data || into === undefined) return;
    event.preventDefault();
    /** @type {string[]} */
    const paths = JSON.parse(data);
    void folder.actions.move({ method: "MOVE", paths: paths.filter((path) => path !== into) }, into);
  });
}

/**
 * Receives files for the open folder: dropped anywhere, or pasted.
 * @param {() => Folder | null} open
 */
export function receiveFiles(open) {
  const hint = element("div", { class: "drop", hidden: true }, element("p", {}, text("upload.drop")));
  document.body.append(hint);
  const mayReceive = (/** @type {DragEvent} */ event) =>
    event.dataTransfer?.types.includes("Files") && open()?.may.has("write");
  addEventListener("dragover", (event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    // Also where nothing may be dropped: the browser would leave the page to show the file.
    event.preventDefault();
    event.dataTransfer.dropEffect = mayReceive(event) ? "copy" : "none";
    hint.hidden = !mayReceive(event);
  });
  addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) hint.hidden = true;
  });
  addEventListener("drop", (event) => {
    hint.hidden = true;
    const folder = open();
    if (!folder || !event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    const path = folderUnder(folder, event) ?? folder.path;
    if (mayReceive(event)) void upload(folder, path, transferred(event.dataTransfer));
  });
  document.addEventListener("paste", (event) => {
    const folder = open();
    const target = /** @type {Element} */ (event.target);
    if (!folder || target.closest("input:not([type=checkbox]), textarea, dialog")) return;
    if (event.clipboardData?.files.length && folder.may.has("write")) {
      event.preventDefault();
      void upload(folder, folder.path, transferred(event.clipboardData));
    } else {
      void folder.actions.paste();
    }
  });
}

/**
 * Uploads files into a folder.
 * @param {Folder} folder
 * @param {string} path
 * @param {Promise<import("./sources.js").Dropped>} dropped
 */
export async function upload(folder, path, dropped) {
  try {
    await queue.add(path, await dropped, folder.may.has("delete"));
    await folder.read();
  } catch (error) {
    notice(explain(error), { isError: true });
  }
}
