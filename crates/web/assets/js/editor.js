// The editor of a text file.
//
// Invariants: a file that somebody else has changed meanwhile is not replaced without a question; unsaved changes are
// not lost without one; a save keeps the ends of lines as they were.

import { NAMES_MAX, Problem, decoded, encodeName, explain, numbered, request, split } from "./api.js";
import { ask, button, element, notice } from "./dom.js";
import { shown, text } from "./texts.js";
import { sha256 } from "./wire.js";

/** @import { Folder } from "./folder.js" */

/**
 * @typedef {object} Edited
 * @property {Folder} folder
 * @property {string} path
 * @property {string} source The text as it was read.
 * @property {string} etag The version that was read.
 * @property {HTMLElement} body
 * @property {HTMLElement} tools
 * @property {() => void} close
 */

/** Edits a text in place of its preview. @param {Edited} edited */
export function edit({ folder, path, source, etag, body, tools, close }) {
  const dialog = /** @type {HTMLDialogElement} */ (body.closest("dialog"));
  const ending = source.includes("\r\n") ? "\r\n" : "\n";
  const label = text("edit.of", { name: dialog.ariaLabel ?? "" });
  const field = element("textarea", { spellcheck: "false", "aria-label": label });
  field.value = source;
  // A field has its own ends of lines.
  let saved = field.value;
  let version = etag;
  const over = new AbortController();
  const { signal } = over;
  const isChanged = () => field.value !== saved;
  const end = () => {
    over.abort();
    close();
  };
  const save = async () => {
    const words = field.value;
    const bytes = new Blob([words.replace(/\n/g, ending)]);
    try {
      const answer = await put(path, bytes, { "If-Match": version });
      version = answer.headers.get("ETag") ?? version;
      saved = words;
      notice(text("saved"));
    } catch (error) {
      if (!(error instanceof Problem) || error.status !== 412) return notice(explain(error), { isError: true });
      if (!await settle(path, bytes)) return undefined;
      saved = words;
    }
    return folder.read();
  };
  const leave = async () => {
    if (isChanged()) {
      const choices = [
        { value: "save", label: text("save"), style: "primary" },
        { value: "discard", label: text("edit.discard"), style: "danger" },
      ];
      const choice = await ask({ title: text("edit.unsaved"), choices });
      if (!choice) return;
      if (choice === "save") await save();
      if (choice === "save" && isChanged()) return;
    }
    end();
  };
  tools.replaceChildren(
    button(text("save"), () => void save(), { class: "primary" }),
    button(text("edit.end"), () => void leave()));
  body.replaceChildren(field);
  field.focus();
  field.setSelectionRange(0, 0);
  dialog.addEventListener("cancel", (event) => {
    event.preventDefault();
    void leave();
  }, { signal });
  dialog.addEventListener("close", () => over.abort(), { signal });
  for (const other of dialog.querySelectorAll("header > button, header > a")) {
    other.toggleAttribute("hidden", !other.matches(".close"));
  }
  dialog.querySelector("button.close")?.addEventListener("click", (event) => {
    event.stopImmediatePropagation();
    void leave();
  }, { signal, capture: true });
  field.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() !== "s" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    void save();
  });
  addEventListener("beforeunload", (event) => {
    if (isChanged()) event.preventDefault();
  }, { signal });
}

/**
 * Stores a file whole, on a condition.
 * @param {string} path
 * @param {Blob} bytes
 * @param {Record<string, string>} condition
 */
async function put(path, bytes, condition) {
  const digest = await sha256(bytes);
  const headers = { ...condition, ...(digest ? { "Repr-Digest": `sha-256=:${digest}:` } : {}) };
  return request("PUT", path, { headers, body: bytes });
}

/**
 * Asks what becomes of changes to a file that has changed meanwhile. Returns whether they are stored.
 * @param {string} path
 * @param {Blob} bytes
 */
async function settle(path, bytes) {
  const content = [element("p", {}, text("edit.changed-help"))];
  const choices = [{ value: "copy", label: text("edit.copy"), style: "primary" }];
  if (await ask({ title: text("edit.changed"), content, choices }) !== "copy") return false;
  const [folder, name] = split(path);
  for (let count = 2; count <= NAMES_MAX; count += 1) {
    const copy = numbered(decoded(name), count);
    try {
      await put(folder + encodeName(copy), bytes, { "If-None-Match": "*" });
      notice(text("edit.copied", { name: shown(copy) }));
      return true;
    } catch (error) {
      if (error instanceof Problem && error.status === 412) continue;
      notice(explain(error), { isError: true });
      return false;
    }
  }
  return false;
}
