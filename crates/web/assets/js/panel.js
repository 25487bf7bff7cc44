// The panel of uploads: each with its progress, and all together.
//
// It sends nothing: queue.js does. Invariants: leaving the page asks while an upload is unfinished; an upload that an
// earlier page left unfinished is shown.

import { Problem, decoded, encodeName, explain, request } from "./api.js";
import { button, element, notice } from "./dom.js";
import { Queue } from "./queue.js";
import { counted, duration, number, shown, size, text } from "./texts.js";
import { TUS, interrupted, versionOf } from "./wire.js";

/** @import { Upload } from "./upload.js" */

/** Uploads that are listed; of the others there is the sum. */
const LISTED_MAX = 40;
/** How often the panel is drawn, in milliseconds. */
const DRAW_TIME = 200;
/** The order in the list: what needs the person first. */
const ORDER = ["asking", "failed", "offline", "active", "paused", "waiting"];

export const queue = new Queue();

const title = element("h2", {});
const about = element("p", { class: "quiet" });
const bar = element("progress", { max: 1, "aria-label": text("uploads") });
const rows = element("ul", { class: "rows" });
const pause = button(text("pause"), () => (isPaused() ? queue.resume() : queue.pause()));
const cancel = button(text("cancel"), () => void queue.cancel());
const close = button("×", () => hide(), { class: "close", "aria-label": text("close") });
const panel = element("section", { class: "uploads", "aria-label": text("uploads") },
  element("header", {}, title, pause, cancel, close), bar, about, rows);

/** The rows, by upload. @type {Map<Upload, ReturnType<typeof makeRow>>} */
const drawn = new Map();

function isPaused() {
  return queue.uploads.some(({ state }) => state === "paused")
    && !queue.uploads.some(({ state }) => ["active", "waiting", "offline", "asking"].includes(state));
}

function hide() {
  queue.clear();
  panel.remove();
}

/** @param {Upload} upload */
function makeRow(upload) {
  const name = shown(upload.name);
  const progress = element("progress", { max: 1, "aria-label": name });
  const state = element("span", { class: "quiet" });
  const act = (/** @type {string} */ key, /** @type {() => unknown} */ run) =>
    button(text(key), () => void run(), { "aria-label": text(`${key}.of`, { name }) });
  const buttons = {
    pause: act("pause", () => upload.pause()),
    resume: act("resume", () => upload.resume()),
    cancel: act("cancel", () => upload.cancel()),
  };
  const row = element("li", {}, element("span", {}, element("bdi", {}, name), state, progress),
    buttons.pause, buttons.resume, buttons.cancel);
  return { row, progress, state, buttons, from: { at: performance.now(), bytes: upload.sent } };
}

/** @param {Upload} upload @param {ReturnType<typeof makeRow>} made */
function drawRow(upload, { progress, state, buttons, from }) {
  const { file, sent, state: now } = upload;
  progress.value = file.size ? sent / file.size : 0;
  buttons.pause.hidden = !["active", "offline", "waiting"].includes(now);
  buttons.resume.hidden = !["paused", "failed"].includes(now);
  buttons.resume.textContent = text(now === "failed" ? "again" : "resume");
  const speed = (sent - from.bytes) / Math.max(1, performance.now() - from.at) * 1000;
  const moving = speed > 0 ? `, ${size(speed)}/s, ${duration((file.size - sent) / speed)}` : "";
  const words = now === "failed" ? problem(upload.error)
    : now === "active" ? `${size(sent)} / ${size(file.size)}${moving}` : text(`upload.${now}`);
  state.textContent = words;
}

/** @param {unknown} error */
function problem(error) {
  return error instanceof Problem ? explain(error) : text("upload.unreadable");
}

function draw() {
  const { files, done, failed, bytes, sent, speed } = queue.sums();
  if (!files && !left.length) return panel.remove();
  if (!panel.isConnected) document.body.append(panel);
  const isOver = !queue.isBusy;
  const of = { done: number(done), files: number(files) };
  title.textContent = failed && isOver ? counted("upload.failures", failed)
    : text(isOver ? "upload.all-done" : "upload.some-done", of);
  if (!files) title.textContent = text("uploads");
  bar.value = bytes ? sent / bytes : Number(isOver);
  bar.hidden = about.hidden = !files;
  const time = text("left", { time: duration((bytes - sent) / speed) });
  about.textContent = `${size(sent)} / ${size(bytes)}${speed > 0 && !isOver ? `, ${size(speed)}/s, ${time}` : ""}`;
  pause.hidden = cancel.hidden = isOver;
  close.hidden = !isOver;
  pause.textContent = text(isPaused() ? "resume" : "pause");
  drawRows();
}

function drawRows() {
  const open = queue.uploads.filter(({ state }) => ORDER.includes(state));
  open.sort((a, b) => ORDER.indexOf(a.state) - ORDER.indexOf(b.state));
  const listed = open.slice(0, LISTED_MAX);
  for (const upload of drawn.keys()) if (!listed.includes(upload)) drawn.delete(upload);
  const made = listed.map((upload) => {
    const row = drawn.get(upload) ?? makeRow(upload);
    drawn.set(upload, row);
    drawRow(upload, row);
    return row.row;
  });
  const wanted = [...left, ...made];
  // Only if they changed: a row that is put in again loses the focus.
  if (wanted.length !== rows.children.length || wanted.some((row, at) => rows.children[at] !== row)) {
    rows.replaceChildren(...wanted);
  }
}

let timer = 0;
queue.addEventListener("progress", () => {
  timer ||= setTimeout(() => {
    timer = 0;
    draw();
  }, DRAW_TIME);
});

addEventListener("beforeunload", (event) => {
  if (queue.isBusy) event.preventDefault();
});

/** Rows of uploads that an earlier page left unfinished. @type {HTMLLIElement[]} */
let left = [];

/** Shows the uploads that an earlier page left unfinished, if there are any, and how to go on. */
export async function showInterrupted() {
  const open = new Set(queue.uploads.map(({ location }) => location));
  const uploads = await interrupted().catch(() => []);
  left = uploads.filter(({ url, version, length }) => version && length && !open.has(url)).map((upload) => {
    const row = element("li", {});
    const discard = async () => {
      await request("DELETE", upload.url, { headers: TUS }).catch((error) => notice(explain(error), { isError: true }));
      left = left.filter((other) => other !== row);
      drawRows();
      if (!left.length && !queue.uploads.length) panel.remove();
    };
    const pick = () => {
      const input = element("input", { type: "file" });
      input.addEventListener("change", () => {
        const [file] = input.files ?? [];
        if (file) takeUp(upload, file);
      });
      input.click();
    };
    const state = text("upload.interrupted", { sent: size(upload.offset), size: size(upload.length) });
    const name = shown(upload.path);
    const words = element("span", { class: "quiet" }, state);
    row.append(element("span", {}, element("bdi", {}, name), words),
      button(text("resume"), pick, { "aria-label": text("resume.of", { name }) }),
      button(text("discard"), () => void discard(), { "aria-label": text("discard.of", { name }) }));
    row.dataset["path"] = decoded(upload.path);
    return row;
  });
  if (left.length) draw();
}

/**
 * Goes on with an interrupted upload, if this is its file.
 * @param {{path: string, version: string}} upload
 * @param {File} file
 */
function takeUp({ path, version }, file) {
  if (version !== versionOf(file)) return notice(text("upload.other-file"), { isError: true });
  queue.addOne(file, `/files${path.split("/").map(encodeName).join("/")}`);
}

/** Forgets the rows of interrupted uploads that have been taken up. */
queue.addEventListener("change", () => {
  const taken = new Set(queue.uploads.map((upload) => decoded(upload.path).replace(/^\/files/, "")));
  left = left.filter((row) => !taken.has(row.dataset["path"] ?? ""));
});

