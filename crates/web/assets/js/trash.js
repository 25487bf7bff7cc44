// The trash of the server, if it has one: deleted entries, and the way back.
//
// Invariant: without a trash, no one is promised that a deletion can be undone.

import { Problem, request } from "./api.js";

/** @typedef {{id: string, path: string}} Trashed */

/** @type {Promise<boolean> | undefined} */
let known;

/** Whether deleted entries are kept for a while. It is asked once. */
export function hasTrash() {
  known ??= request("GET", "/api/trash?limit=1").then(async (answer) => (await answer.json()).days > 0, (error) => {
    // A failed request is no answer, so the next deletion asks again.
    if (!(error instanceof Problem) || error.status !== 404) known = undefined;
    return false;
  });
  return known;
}

/**
 * Returns the entries of the trash that were last at these paths below /files, decoded.
 * @param {string[]} paths
 * @returns {Promise<Trashed[]>}
 */
export async function findTrashed(paths) {
  const answer = await request("GET", "/api/trash");
  /** @type {Trashed[]} */
  const trashed = Object.values(await answer.json()).find(Array.isArray) ?? [];
  const plain = (/** @type {string} */ path) => `/${path.replace(/^\/files/, "").replace(/^\/+|\/+$/g, "")}`;
  const wanted = new Set(paths.map(plain));
  // The newest comes first: of each path, only the one that was just deleted.
  return trashed.filter(({ path }) => wanted.delete(plain(path)));
}

/** @param {string} id */
export function restore(id) {
  return request("POST", `/api/trash/${encodeURIComponent(id)}/restore`);
}
