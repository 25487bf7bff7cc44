// The preview of a file: pictures, text, Markdown, PDF, audio and video; the next one by an arrow key.
//
// Invariants: nothing of a file runs on this page: a text is text, a picture has no scripts, and a PDF is shown by the
// browser's viewer; audio and video are read by ranges. The address has the file's name, and Back closes the preview.

import { explain, request } from "./api.js";
import { button, element } from "./dom.js";
import { edit } from "./editor.js";
import { markdown } from "./markdown.js";
import { number, shown, size, text } from "./texts.js";

/** @import { Folder } from "./folder.js" */
/** @import { Entry } from "./api.js" */
/** @typedef {"image" | "audio" | "video" | "pdf" | "markdown" | "text"} Kind */

/** Bytes of a text that are shown, and that can be edited. */
const TEXT_BYTES_MAX = 1 << 20;

/** The endings of each kind. Markup is shown as its source. */
const ENDINGS = {
  image: "png jpg jpeg jfif gif webp avif bmp ico svg",
  audio: "mp3 ogg oga opus wav flac m4a aac",
  video: "mp4 m4v webm ogv mov mkv",
  pdf: "pdf",
  markdown: "md markdown",
  text: "txt text log csv tsv json jsonl xml html htm xhtml css js mjs ts jsx tsx toml yaml yml ini conf cfg env sh bash "
    + "zsh fish py rb pl php rs go c h cc cpp hpp java kt swift lua sql tex bib rst org diff patch srt vtt properties "
    + "gitignore dockerfile makefile",
};

/** @type {Map<string, Kind>} */
const KINDS = new Map(Object.entries(ENDINGS).flatMap(([kind, endings]) =>
  endings.split(" ").map((ending) => /** @type {[string, Kind]} */ ([ending, kind]))));

/** Returns the kind of a file; undefined if there is no preview of it. @param {Entry} entry */
function kindOf({ kind, name }) {
  return kind === "file" ? KINDS.get(name.slice(name.lastIndexOf(".") + 1).toLowerCase()) : undefined;
}

/** The open preview. @type {{dialog: HTMLDialogElement, folder: Folder, href: string} | undefined} */
let open;

/**
 * Opens the preview of an entry. Returns false if it has none.
 * @param {Folder} folder
 * @param {string} href
 */
export function openPreview(folder, href) {
  const entry = folder.listing.entry(href);
  if (!entry || !kindOf(entry)) return false;
  history.pushState(history.state, "", `#${href}`);
  show(folder, entry);
  return true;
}

/** Opens or closes the preview as the address says. @param {Folder | null} folder */
export function followAddress(folder) {
  const href = location.hash.slice(1);
  const entry = href ? folder?.listing.entry(href) : undefined;
  if (folder && entry && kindOf(entry)) show(folder, entry);
  else open?.dialog.close();
}

/** @param {Folder} folder @param {Entry} entry */
function show(folder, entry) {
  const dialog = open?.dialog ?? makeDialog(folder);
  open = { dialog, folder, href: entry.href };
  folder.listing.current = entry.href;
  const files = folder.listing.visible.filter(kindOf);
  const at = files.indexOf(entry);
  const step = (/** @type {number} */ by) => {
    const next = files[at + by];
    if (!next) return;
    history.replaceState(history.state, "", `#${next.href}`);
    show(folder, next);
  };
  const body = element("div", { class: "shown" });
  const tools = element("span", { class: "tools" });
  const path = folder.at(entry.href);
  const arrow = (/** @type {string} */ label, /** @type {string} */ key, /** @type {number} */ by) =>
    button(label, () => step(by), { "aria-label": text(key), disabled: !files[at + by] });
  dialog.setAttribute("aria-label", shown(entry.name));
  dialog.replaceChildren(
    element("header", {},
      element("h2", {}, element("bdi", {}, shown(entry.name))),
      element("span", { class: "quiet" }, `${at + 1} / ${files.length}`),
      tools,
      arrow("‹", "previous", -1), arrow("›", "next", 1),
      element("a", { class: "button", href: path, download: true }, text("entry.download")),
      button("×", () => dialog.close(), { class: "close", "aria-label": text("close") })),
    body);
  dialog.onkeydown = (event) => {
    const target = /** @type {Element} */ (event.target);
    if (event.defaultPrevented || target.closest("textarea, input, audio, video")) return;
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (by) step(by);
  };
  fill(folder, entry, body, tools);
  if (!dialog.open) dialog.showModal();
  // What had the focus is gone: the keys are to reach the dialog.
  dialog.focus();
}

/** @param {Folder} folder */
function makeDialog(folder) {
  const dialog = element("dialog", { class: "preview", tabindex: -1 });
  dialog.addEventListener("close", () => {
    const href = open?.href;
    dialog.remove();
    open = undefined;
    if (location.hash) history.replaceState(history.state, "", location.pathname + location.search);
    if (href) folder.rows.reveal(href);
  });
  document.body.append(dialog);
  return dialog;
}

/** @param {Folder} folder @param {Entry} entry @param {HTMLElement} body @param {HTMLElement} tools */
function fill(folder, entry, body, tools) {
  const src = folder.at(entry.href);
  const failed = () => body.replaceChildren(element("p", {}, text("preview.failed")));
  switch (kindOf(entry)) {
    case "image":
      body.append(element("img", { src, alt: shown(entry.name), onerror: failed }));
      break;
    case "audio":
      body.append(element("audio", { src, controls: true, autoplay: true, onerror: failed }));
      break;
    case "video":
      body.append(element("video", { src, controls: true, autoplay: true, onerror: failed }));
      break;
    case "pdf":
      body.append(element("iframe", { src, title: shown(entry.name) }));
      break;
    default:
      void fillText(folder, entry, body, tools);
  }
}

/** @param {Folder} folder @param {Entry} entry @param {HTMLElement} body @param {HTMLElement} tools */
async function fillText(folder, entry, body, tools) {
  const path = folder.at(entry.href);
  let answer;
  let bytes;
  try {
    const headers = entry.size ? { Range: `bytes=0-${TEXT_BYTES_MAX - 1}` } : {};
    answer = await request("GET", path, { headers: { ...headers, Accept: "*/*" } });
    bytes = new Uint8Array(await answer.arrayBuffer());
  } catch (error) {
    body.replaceChildren(element("p", {}, explain(error)));
    return;
  }
  // Bytes that are no text.
  if (bytes.includes(0)) return void body.replaceChildren(element("p", {}, text("preview.none")));
  const source = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
  const isWhole = bytes.length >= (entry.size ?? 0);
  const isText = isWhole && new TextEncoder().encode(source).length === bytes.length && !source.includes("\ufffd");
  const plain = element("pre", { tabindex: 0 }, source);
  const view = kindOf(entry) === "markdown" ? element("article", { tabindex: 0 }, ...markdown(source)) : plain;
  body.replaceChildren(view);
  if (!isWhole) {
    const values = { shown: size(bytes.length), size: number(entry.size ?? 0) };
    body.prepend(element("p", { class: "quiet" }, text("preview.start", values)));
  }
  const etag = answer.headers.get("ETag");
  if (isText && etag && folder.may.has("write") && folder.may.has("delete")) {
    const close = () => again(entry);
    tools.append(button(text("edit"), () => edit({ folder, path, source, etag, body, tools, close })));
  }
}

/** Shows a file again, after it was edited. @param {Entry} entry */
function again(entry) {
  if (open) show(open.folder, open.folder.listing.entry(entry.href) ?? entry);
}
