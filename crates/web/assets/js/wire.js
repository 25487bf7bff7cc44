// One request with a body, with its progress; checksums; and the waits between attempts.
//
// XMLHttpRequest, because fetch reports no progress of a request's body.

import { Problem, problemOf, request } from "./api.js";

/** The version of tus, which each of its requests names. */
export const TUS = { "Tus-Resumable": "1.0.0" };

/**
 * Sends a blob. Resolves with a function that returns fields of the response.
 * @param {string} method
 * @param {string} path
 * @param {{fields: Record<string, string>, body: Blob | null, signal: AbortSignal,
 *   progress?: (bytes: number) => void}} more
 * @returns {Promise<(name: string) => string | null>}
 */
export function send(method, path, { fields, body, signal, progress }) {
  return new Promise((resolve, reject) => {
    const sent = new XMLHttpRequest();
    sent.open(method, path);
    sent.setRequestHeader("Accept", "application/json");
    for (const [name, value] of Object.entries(fields)) sent.setRequestHeader(name, value);
    if (progress) sent.upload.addEventListener("progress", ({ loaded }) => progress(loaded));
    const abort = () => sent.abort();
    signal.addEventListener("abort", abort);
    sent.addEventListener("loadend", () => {
      signal.removeEventListener("abort", abort);
      if (signal.aborted) reject(signal.reason);
      else if (sent.status >= 200 && sent.status < 300) resolve((name) => sent.getResponseHeader(name));
      else reject(problemOf(sent.status, sent.responseText));
    });
    signal.throwIfAborted();
    sent.send(body);
  });
}

/** Tells versions of a file apart, in an upload's metadata. @param {File} file */
export function versionOf(file) {
  return base64OfText(`${file.size} ${file.lastModified}`);
}

/** Returns bytes in base64. @param {Uint8Array} bytes */
function base64(bytes) {
  return btoa(String.fromCharCode(...bytes));
}

/**
 * Returns the SHA-256 of a blob in base64. Without HTTPS, browsers offer none: then TCP's checks have to do.
 * @param {Blob} blob
 * @returns {Promise<string | undefined>}
 */
export async function sha256(blob) {
  if (!globalThis.crypto?.subtle) return undefined;
  return base64(new Uint8Array(await crypto.subtle.digest("SHA-256", await blob.arrayBuffer())));
}

/**
 * Returns the bytes of a percent-encoded path in base64, exact also where they are no UTF-8.
 * @param {string} path
 */
export function base64OfPath(path) {
  const bytes = path.replace(/%([0-9a-fA-F]{2})/g, (_, code) => String.fromCharCode(parseInt(code, 16)));
  return btoa(bytes);
}

/** @param {string} words */
function base64OfText(words) {
  return base64(new TextEncoder().encode(words));
}

/** The waits after attempts that failed, in milliseconds; the last one is repeated. */
const WAITS = [500, 1000, 2000, 4000, 8000, 15000];

/**
 * Waits before another attempt; less if the browser is online again.
 * @param {number} attempt
 * @param {AbortSignal} signal
 * @returns {Promise<void>}
 */
export function wait(attempt, signal) {
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer);
      removeEventListener("online", end);
      signal.removeEventListener("abort", end);
      if (signal.aborted) reject(signal.reason);
      else resolve();
    };
    const timer = setTimeout(end, WAITS[Math.min(attempt, WAITS.length - 1)]);
    addEventListener("online", end);
    signal.addEventListener("abort", end);
  });
}

/** Whether an error is about the connection or the server's state, so that the same request may succeed later. */
export const isTemporary = (/** @type {unknown} */ error) => error instanceof Problem && error.isTemporary;

/**
 * Returns the account's interrupted uploads, with what they were begun for.
 * @returns {Promise<{url: string, path: string, length: number, offset: number, to: string, version: string}[]>}
 */
export async function interrupted() {
  const { uploads } = await (await request("GET", "/uploads")).json();
  const own = await Promise.all(uploads.filter((/** @type {any} */ upload) => !upload.partial).map(
    async (/** @type {any} */ upload) => {
      const answer = await request("HEAD", upload.url, { headers: TUS }).catch(() => null);
      const pairs = (answer?.headers.get("Upload-Metadata") ?? "").split(",").map((pair) => pair.trim().split(" "));
      const { path: to = "", version = "" } = Object.fromEntries(pairs);
      return { ...upload, to, version };
    }));
  return own;
}
