// One file on its way: in one request, or a large one in parts by tus 1.0, so that it resumes.
//
// Invariants: a file is on the server whole or not at all; the bytes of an upload are of one version of the file;
// nothing is replaced unless the person has said so. As crates/cli/src/upload does it.

import { NAMES_MAX, Problem, encodeName, numbered, request, split } from "./api.js";
import { askClash } from "./clash.js";
import { TUS, base64OfPath, interrupted, isTemporary, send, sha256, versionOf,
  wait } from "./wire.js";

/** @import { ClashChoice } from "./clash.js" */

/** The largest file that is sent in one request. */
const WHOLE_BYTES_MAX = 4 << 20;
/** Bytes of a part, which is sent again if the connection breaks: as many as take a few seconds. */
const PART_BYTES_MIN = 1 << 20;
const PART_BYTES_MAX = 16 << 20;
const PART_SECONDS = 3;

/** What an upload is waiting for, or how it ended. */
/**
 * @typedef {"waiting" | "active" | "offline" | "asking" | "paused" | "done" | "skipped" | "failed" | "cancelled"} State
 */

export class Upload extends EventTarget {
  /** @type {State} */
  state = "waiting";
  /** Bytes that the server has, and those that are on their way. */
  sent = 0;
  /** @type {unknown} */
  error = undefined;
  /** The upload on the server, if there is one. @type {string | undefined} */
  location = undefined;
  #control = new AbortController();
  #partBytes = WHOLE_BYTES_MAX;
  /** The conditions of the file that is being created. @type {Record<string, string>} */
  #condition = { "If-None-Match": "*" };

  /**
   * @param {File} file
   * @param {string} path Where it goes, percent-encoded.
   * @param {{answers: {always?: ClashChoice}, mayReplace: boolean, taken: Set<string>}} batch What was dropped or
   *   chosen together. `taken` has the paths at which there is something already.
   */
  constructor(file, path, batch) {
    super();
    this.file = file;
    this.path = path;
    this.batch = batch;
  }

  get name() {
    return this.file.name;
  }

  get isOver() {
    return ["done", "skipped", "failed", "cancelled"].includes(this.state);
  }

  /** @param {State} state */
  #enter(state) {
    this.state = state;
    this.dispatchEvent(new Event("change"));
  }

  /** Sends the file; waits out a broken connection or a restarted server for as long as it takes. */
  async run() {
    const { signal } = (this.#control = new AbortController());
    this.error = undefined;
    this.#enter("active");
    for (let attempt = 0; ; attempt += 1) {
      const before = this.sent;
      try {
        const { isSent } = await this.#attempt(signal);
        return this.#enter(isSent ? "done" : "skipped");
      } catch (error) {
        if (signal.aborted) return;
        if (!isTemporary(error)) return this.#fail(error);
        this.#enter("offline");
      }
      if (this.sent > before) attempt = 0;
      try {
        await wait(attempt, signal);
      } catch {
        return;
      }
      this.#enter("active");
    }
  }

  /** @param {unknown} error */
  #fail(error) {
    this.error = error;
    this.#enter("failed");
  }

  /** Stops for a while. What the server has, it keeps. */
  pause() {
    if (this.isOver || this.state === "paused") return;
    this.#control.abort();
    this.#enter("paused");
  }

  /** Lets the queue start it again. */
  resume() {
    if (this.state !== "paused" && this.state !== "failed") return;
    this.#enter("waiting");
  }

  /** Ends it, and discards what the server has of it. */
  async cancel() {
    if (this.state === "done" || this.state === "cancelled") return;
    this.#control.abort();
    this.#enter("cancelled");
    await this.#discard();
  }

  async #discard() {
    const { location } = this;
    if (!location) return;
    this.location = undefined;
    for (let attempt = 0; attempt < 5; attempt += 1) {
      try {
        await request("DELETE", location, { headers: TUS, keepalive: true });
        return;
      } catch (error) {
        if (!isTemporary(error)) return;
        await wait(attempt, new AbortController().signal);
      }
    }
  }

  /** @param {AbortSignal} signal @returns {Promise<{isSent: boolean}>} */
  async #attempt(signal) {
    for (;;) {
      // Known beforehand, so that the file is not sent in vain.
      if (this.batch.taken.delete(this.path) && !await this.#settleClash(signal)) return { isSent: false };
      try {
        if (this.file.size <= WHOLE_BYTES_MAX || !this.path.startsWith("/files/")) await this.#sendWhole(signal);
        else await this.#sendParts(signal);
        return { isSent: true };
      } catch (error) {
        if (!(error instanceof Problem) || error.status !== 412) throw error;
        // It may be this file: a response was lost.
        if (await this.#isStored()) return { isSent: true };
        await this.#discard();
        if (!await this.#settleClash(signal)) return { isSent: false };
      }
    }
  }

  get #fields() {
    return { "X-OC-Mtime": String(this.file.lastModified / 1000), ...this.#condition };
  }

  /** @param {AbortSignal} signal */
  async #sendWhole(signal) {
    const digest = this.file.size <= WHOLE_BYTES_MAX ? await sha256(this.file) : undefined;
    signal.throwIfAborted();
    const fields = { ...this.#fields, ...(digest ? { "Repr-Digest": `sha-256=:${digest}:` } : {}) };
    await send("PUT", this.path, { fields, body: this.file, signal, progress: (bytes) => this.#moved(bytes) });
    this.#moved(this.file.size);
  }

  /** @param {number} bytes */
  #moved(bytes) {
    this.sent = Math.min(bytes, this.file.size);
    this.dispatchEvent(new Event("progress"));
  }

  /** @param {AbortSignal} signal */
  async #sendParts(signal) {
    let offset = this.location ? await this.#offset() : undefined;
    if (offset === undefined) offset = await this.#begin(signal);
    for (let mismatches = 0; offset < this.file.size;) {
      this.#moved(offset);
      try {
        offset = await this.#sendPart(offset, signal);
      } catch (error) {
        const status = error instanceof Problem ? error.status : 0;
        // 460: the bytes did not arrive as they were sent, and are sent again.
        if (status !== 409 && (status !== 460 || ++mismatches > 3)) throw error;
        offset = await this.#offset() ?? 0;
      }
    }
    this.#moved(offset);
  }

  /** @param {number} offset @param {AbortSignal} signal */
  async #sendPart(offset, signal) {
    const part = this.file.slice(offset, offset + this.#partBytes);
    const digest = await sha256(part);
    signal.throwIfAborted();
    const fields = {
      ...TUS,
      "Content-Type": "application/offset+octet-stream",
      "Upload-Offset": String(offset),
      "X-OC-Mtime": String(this.file.lastModified / 1000),
      ...(digest ? { "Upload-Checksum": `sha256 ${digest}` } : {}),
    };
    const started = performance.now();
    const progress = (/** @type {number} */ bytes) => this.#moved(offset + bytes);
    await send("PATCH", this.location ?? "", { fields, body: part, signal, progress });
    const seconds = (performance.now() - started) / 1000;
    const fitting = this.#partBytes * Math.min(2, PART_SECONDS / seconds);
    this.#partBytes = Math.round(Math.min(PART_BYTES_MAX, Math.max(PART_BYTES_MIN, fitting)));
    return offset + part.size;
  }

  /** Returns how many bytes the server has; undefined if it knows no such upload any more. */
  async #offset() {
    try {
      const answer = await request("HEAD", this.location ?? "", { headers: TUS });
      return Number(answer.headers.get("Upload-Offset"));
    } catch (error) {
      if (!(error instanceof Problem) || error.status !== 404) throw error;
      this.location = undefined;
      return undefined;
    }
  }

  /** Starts an upload, or takes up an interrupted one of the same file. @param {AbortSignal} signal */
  async #begin(signal) {
    const metadata = { path: base64OfPath(this.path.slice("/files/".length)), version: versionOf(this.file) };
    const known = await interrupted();
    const same = known.find(({ length, version, to }) =>
      length === this.file.size && version === metadata.version && to === metadata.path);
    if (same) {
      this.location = same.url;
      return same.offset;
    }
    const fields = {
      ...TUS,
      ...this.#condition,
      "Upload-Length": String(this.file.size),
      "Upload-Metadata": Object.entries(metadata).map(([key, value]) => `${key} ${value}`).join(","),
    };
    const field = await send("POST", "/uploads", { fields, body: null, signal });
    const location = field("Location");
    if (!location) throw new Problem(0, "");
    this.location = new URL(location, document.baseURI).pathname;
    return 0;
  }

  /** Whether the file at the path is this one. */
  async #isStored() {
    if (this.#condition["If-None-Match"] === undefined || this.file.size > WHOLE_BYTES_MAX) return false;
    const digest = await sha256(this.file);
    if (!digest || this.sent < this.file.size) return false;
    const answer = await request("HEAD", this.path, { headers: { "Want-Repr-Digest": "sha-256=1" } }).catch(() => null);
    return answer?.headers.get("Repr-Digest") === `sha-256=:${digest}:`;
  }

  /** Asks about the name that is taken. Returns false if the file is left out. @param {AbortSignal} signal */
  async #settleClash(signal) {
    const answer = await request("HEAD", this.path).catch(() => null);
    const isFile = answer !== null && !answer.redirected;
    const modified = new Date(answer?.headers.get("Last-Modified") ?? NaN);
    this.#enter("asking");
    const choice = await askClash({
      name: this.name,
      answers: this.batch.answers,
      mayReplace: this.batch.mayReplace && isFile,
      ...(isFile ? { present: {
        size: Number(answer.headers.get("Content-Length")),
        ...(isNaN(modified.getTime()) ? {} : { modified }),
      } } : {}),
      coming: { size: this.file.size, modified: new Date(this.file.lastModified) },
    });
    signal.throwIfAborted();
    this.#enter("active");
    if (choice === "skip") return false;
    if (choice === "replace") this.#condition = { "If-Match": answer?.headers.get("ETag") ?? "*" };
    else this.path = await this.#freePath();
    return true;
  }

  /** Returns the path with the first number that is free. It may be taken meanwhile: then the upload asks again. */
  async #freePath() {
    const [folder] = split(this.path);
    for (let count = 2; count <= NAMES_MAX; count += 1) {
      const path = folder + encodeName(numbered(this.name, count));
      const isFree = await request("HEAD", path).then(() => false, (error) => error.status === 404);
      if (isFree) return path;
    }
    throw new Problem(412, "");
  }
}
