// The uploads of this tab: a few at a time, in order.
//
// Invariants: folders are there before the files in them are sent; a file that is already on its way to a path is not
// sent a second time.

import { Problem, encodeName, list, makeFolder, split } from "./api.js";
import { Upload } from "./upload.js";
import { isTemporary, wait } from "./wire.js";

/** Uploads at a time: as many as a browser has connections to a server (HTTP/1.1). */
const UPLOADS_MAX = 6;
/** Over how many milliseconds the speed is measured. */
const SPEED_TIME = 4000;

/** A file that was chosen or dropped, with the names of the folders above it. */
/** @typedef {{file: File, folders: string[]}} Source */

export class Queue extends EventTarget {
  /** @type {Upload[]} */
  uploads = [];
  /** Whether folders are being made for what was dropped. */
  preparing = 0;
  /** @type {{at: number, bytes: number}[]} */
  #samples = [];
  #ended = new AbortController();

  /** Whether something is lost if the page is left now. */
  get isBusy() {
    return this.preparing > 0 || this.uploads.some((upload) => !upload.isOver);
  }

  /**
   * Adds what was chosen or dropped.
   * @param {string} folder Where it goes, percent-encoded.
   * @param {{sources: Source[], folders: string[][]}} dropped Files, and all folders, also those that are empty.
   * @param {boolean} mayReplace
   */
  async add(folder, { sources, folders }, mayReplace) {
    /** @type {Set<string>} */
    const taken = new Set();
    this.preparing += 1;
    try {
      const fresh = await this.#makeFolders(folder, folders);
      await this.#findTaken(folder, sources, fresh, taken);
    } finally {
      this.preparing -= 1;
    }
    const batch = { answers: {}, mayReplace, taken };
    const active = new Set(this.uploads.filter((upload) => !upload.isOver).map((upload) => upload.path));
    for (const { file, folders: above } of sources) {
      const path = pathOf(folder, above) + encodeName(file.name);
      if (!active.has(path)) this.#push(new Upload(file, path, batch));
    }
    this.#start();
  }

  /** Adds one file, for this path. @param {File} file @param {string} path */
  addOne(file, path) {
    this.#push(new Upload(file, path, { answers: {}, mayReplace: false, taken: new Set() }));
    this.#start();
  }

  /** @param {Upload} upload */
  #push(upload) {
    upload.addEventListener("change", () => this.#changed(upload));
    upload.addEventListener("progress", () => this.dispatchEvent(new Event("progress")));
    this.uploads.push(upload);
  }

  /**
   * Makes folders, the upper ones first. Returns the paths of those that were not there.
   * @param {string} base
   * @param {string[][]} folders
   */
  async #makeFolders(base, folders) {
    /** @type {Set<string>} */
    const fresh = new Set();
    const paths = new Set(folders.flatMap((names) => names.map((_, at) => pathOf(base, names.slice(0, at + 1)))));
    for (const path of paths) {
      for (let attempt = 0; ; attempt += 1) {
        try {
          await makeFolder(path);
          fresh.add(path);
          break;
        } catch (error) {
          // 405: it is there already.
          if (error instanceof Problem && error.status === 405) break;
          if (!isTemporary(error)) throw error;
          await wait(attempt, this.#ended.signal);
        }
      }
    }
    return fresh;
  }

  /**
   * Finds the paths that are taken, by one list of each folder.
   * @param {string} base
   * @param {Source[]} sources
   * @param {Set<string>} fresh
   * @param {Set<string>} taken
   */
  async #findTaken(base, sources, fresh, taken) {
    const paths = new Set(sources.map(({ folders }) => pathOf(base, folders)));
    for (const path of [...paths].filter((path) => !fresh.has(path))) {
      const entries = await list(path).catch(() => []);
      for (const { href } of entries) taken.add(path + href.replace(/\/$/, ""));
    }
  }

  /** @param {Upload} upload */
  #changed(upload) {
    this.dispatchEvent(new CustomEvent("change", { detail: upload }));
    this.#start();
  }

  /** Returns the upload that starts next, if there is a place for it. */
  #next() {
    const running = this.uploads.filter(({ state }) => ["active", "offline", "asking"].includes(state)).length;
    return running < UPLOADS_MAX ? this.uploads.find(({ state }) => state === "waiting") : undefined;
  }

  #start() {
    // One by one: the event of an upload that starts runs this function for the others.
    for (let next = this.#next(); next; next = this.#next()) void next.run();
    this.dispatchEvent(new Event("progress"));
    if (!this.isBusy) this.dispatchEvent(new Event("idle"));
  }

  pause() {
    // Those that wait first, so that they do not take the places of those that end.
    for (const upload of this.uploads.filter(({ state }) => state === "waiting")) upload.pause();
    for (const upload of this.uploads) upload.pause();
  }

  resume() {
    for (const upload of this.uploads) upload.resume();
  }

  async cancel() {
    const open = this.uploads.filter((upload) => !upload.isOver);
    for (const upload of open.filter(({ state }) => state === "waiting")) void upload.cancel();
    await Promise.all(open.map((upload) => upload.cancel()));
  }

  /** Forgets the uploads that have ended. */
  clear() {
    this.uploads = this.uploads.filter((upload) => !upload.isOver);
    this.#samples = [];
    this.dispatchEvent(new Event("progress"));
  }

  /** Returns the sums, with the speed in bytes a second. */
  sums() {
    const counted = this.uploads.filter(({ state }) => !["skipped", "cancelled"].includes(state));
    const bytes = counted.reduce((sum, { file }) => sum + file.size, 0);
    const sent = counted.reduce((sum, upload) => sum + (upload.state === "done" ? upload.file.size : upload.sent), 0);
    const done = counted.filter(({ state }) => state === "done").length;
    const failed = counted.filter(({ state }) => state === "failed").length;
    const at = performance.now();
    this.#samples = this.#samples.filter((sample) => at - sample.at < SPEED_TIME);
    this.#samples.push({ at, bytes: sent });
    const [first] = this.#samples;
    const speed = first && at > first.at ? Math.max(0, (sent - first.bytes) / (at - first.at)) * 1000 : 0;
    return { files: counted.length, done, failed, bytes, sent, speed };
  }
}

/** Returns the path of a folder below another. @param {string} base @param {string[]} names */
function pathOf(base, names) {
  return base + names.map((name) => `${encodeName(name)}/`).join("");
}

/** Returns the folder of an upload. @param {Upload} upload */
export function folderOf(upload) {
  return split(upload.path)[0];
}
