// Requests to the documented API, with the session's cookie: /api/openapi.json describes it.
//
// Invariants: a path in a request is percent-encoded, as the server encodes it; an error has a sentence in the
// language of the page.

import { knownText, text } from "./texts.js";

/** A refused or failed request. Its status is 0 if there was no response. */
export class Problem extends Error {
  /** @param {number} status @param {string} detail @param {string} [code] */
  constructor(status, detail, code) {
    super(detail);
    this.status = status;
    this.code = code;
  }

  /** Whether the same request may succeed later. */
  get isTemporary() {
    const { status } = this;
    return status === 0 || status === 423 || status === 429 || status >= 500 && status !== 507;
  }
}

/**
 * Returns the sentence about an error for a person: of the page's language by the code or the status, or else the
 * server's own, which is English and more precise.
 * @param {unknown} error
 */
export function explain(error) {
  if (!(error instanceof Problem)) return String(error);
  const own = error.code && knownText(`problem.${error.code}`) || knownText(`problem.${error.status}`);
  if (error.status && document.documentElement.lang === "en" && error.message) return error.message;
  return own ?? (error.message || text("problem", { status: error.status }));
}

/**
 * Returns the problem that a response describes (RFC 9457).
 * @param {number} status
 * @param {string} body
 */
export function problemOf(status, body) {
  try {
    const { detail, code } = JSON.parse(body);
    return new Problem(status, String(detail ?? ""), code);
  } catch {
    return new Problem(status, "");
  }
}

/**
 * Sends a request; fails unless it succeeds.
 * @param {string} method
 * @param {string} path
 * @param {{headers?: Record<string, string>, body?: BodyInit, signal?: AbortSignal, keepalive?: boolean}} [more]
 */
export async function request(method, path, { headers, ...more } = {}) {
  const fields = { Accept: "application/json", ...headers };
  let answer;
  try {
    answer = await fetch(path, { method, headers: fields, cache: "no-cache", redirect: "error", ...more });
  } catch (error) {
    if (more.signal?.aborted) throw error;
    throw new Problem(0, "");
  }
  if (!answer.ok) throw problemOf(answer.status, await answer.text());
  return answer;
}

/**
 * An entry of a folder, as the server lists it.
 * @typedef {object} Entry
 * @property {string} name
 * @property {"file" | "folder"} kind
 * @property {number} [size]
 * @property {string} modified
 * @property {string} etag
 * @property {string} href The name, percent-encoded; that of a folder ends with a slash.
 */

/**
 * Lists a folder.
 * @param {string} folder
 * @param {string} [order] A query for the order.
 * @param {AbortSignal} [signal]
 * @returns {Promise<Entry[]>}
 */
export async function list(folder, order = "", signal = undefined) {
  const answer = await request("GET", `${folder}?format=json${order}`, signal ? { signal } : {});
  return (await answer.json()).entries;
}

/** Percent-encodes a name, as the server does. @param {string} name */
export function encodeName(name) {
  return encodeURIComponent(name).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
}

/** Splits a path after its last slash but one at the end. @param {string} path @returns {[string, string]} */
export function split(path) {
  const start = path.lastIndexOf("/", path.length - 2) + 1;
  return [path.slice(0, start), path.slice(start)];
}

/**
 * Returns the text of a percent-encoded path. Bytes that are no UTF-8 are left encoded.
 * @param {string} path
 */
export function decoded(path) {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

/**
 * Returns a name with a number before its ending, as the server numbers names.
 * @param {string} name
 * @param {number} count
 */
export function numbered(name, count) {
  const dot = name.lastIndexOf(".");
  const stem = dot > 0 ? name.slice(0, dot) : name;
  return `${stem} (${count})${name.slice(stem.length)}`;
}

/** Names that are tried for an entry whose name is taken. */
export const NAMES_MAX = 100;

/**
 * Gives an entry another path, by MOVE or COPY. An entry that is there stays, unless it is replaced.
 * @param {"MOVE" | "COPY"} method
 * @param {string} from
 * @param {string} to
 * @param {boolean} [replaces]
 */
export function transfer(method, from, to, replaces = false) {
  return request(method, from, { headers: { Destination: to, Overwrite: replaces ? "T" : "F" } });
}

/** @param {string} path */
export function makeFolder(path) {
  return request("MKCOL", path);
}

/**
 * Deletes an entry, unless it has changed since it was listed.
 * @param {string} path
 * @param {string} etag
 */
export function remove(path, etag) {
  return request("DELETE", path, { headers: { "If-Match": etag } });
}
