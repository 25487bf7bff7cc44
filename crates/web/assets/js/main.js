// The start of the page's scripts. Each page works without them; a folder gets more with them.
//
// Read on in folder.js, which has what a person does with a folder, and in queue.js and upload.js for uploads.

import { receiveFiles, upload } from "./drag.js";
import { button, element, find } from "./dom.js";
import { Folder } from "./folder.js";
import { listenToKeys, showHelp } from "./keys.js";
import { followLinks } from "./navigate.js";
import { queue, showInterrupted } from "./panel.js";
import { folderOf } from "./queue.js";
import { followAddress } from "./preview.js";
import { chosen } from "./sources.js";
import { text } from "./texts.js";

/** @type {Folder | null} */
let open = null;
let ended = new AbortController();

/** Takes over the folder of the page, if it shows one. */
async function begin() {
  ended.abort();
  ended = new AbortController();
  const table = find("main table", HTMLTableElement);
  const tools = find(".tools[data-may]", HTMLElement);
  open = tools ? new Folder(table ?? emptyTable(tools), tools, ended.signal) : null;
  if (!open || !tools) return;
  uploadButtons(open, tools);
  await open.read();
  followAddress(open);
}

/** An empty folder has no table: the first entry needs one. @param {HTMLElement} tools */
function emptyTable(tools) {
  const heads = ["name", "size", "modified"].map((column) =>
    element("th", { scope: "col" }, element("form", {}, element("button", { value: column }, text(column)))));
  const more = element("th", { scope: "col" }, element("span", { class: "unseen" }, text("entry")));
  const table = element("table", {}, element("thead", {}, element("tr", {}, ...heads, more)), element("tbody"));
  tools.after(table);
  return table;
}

/**
 * Makes the button for uploads choose files at once, and adds one for a folder.
 * @param {Folder} folder
 * @param {HTMLElement} tools
 */
function uploadButtons(folder, tools) {
  const summary = find("form[enctype]", HTMLFormElement, tools)?.closest("details")?.querySelector("summary");
  if (!summary) return;
  const choose = (/** @type {boolean} */ isFolder) => {
    const input = element("input", { type: "file", multiple: true, webkitdirectory: isFolder });
    input.addEventListener("change", () => {
      if (input.files) void upload(folder, folder.path, Promise.resolve(chosen(input.files)));
    });
    input.click();
  };
  summary.addEventListener("click", (event) => {
    event.preventDefault();
    choose(false);
  });
  summary.closest("details")?.after(button(text("upload.folder"), () => choose(true), { class: "folder-upload" }));
  tools.append(button("?", showHelp, { class: "help", "aria-label": text("keys") }));
}

let timer = 0;
/** Shows what has come into the open folder: soon, and not after each of many files. */
queue.addEventListener("change", (event) => {
  const { detail: changed } = /** @type {CustomEvent<import("./upload.js").Upload>} */ (event);
  if (changed.state !== "done" || !open || folderOf(changed) !== open.path) return;
  timer ||= setTimeout(() => {
    timer = 0;
    void open?.read();
  }, 500);
});

receiveFiles(() => open);
listenToKeys(() => open);
followLinks(() => void begin(), () => followAddress(open));
await begin();
if (open) {
  // After a reload, and on the way back from another page.
  scrollTo(0, history.state?.scroll ?? 0);
  await showInterrupted();
}
