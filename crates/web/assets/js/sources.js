// Files from a person: chosen, dropped with their folders, or pasted.
//
// Invariant: a folder that is dropped is read to its end, however many entries it has.

/** @import { Source } from "./queue.js" */
/** @typedef {{sources: Source[], folders: string[][]}} Dropped */

/**
 * Returns chosen files. Those of a chosen folder have their folders' names.
 * @param {FileList} files
 * @returns {Dropped}
 */
export function chosen(files) {
  const sources = [...files].map((file) => ({ file, folders: file.webkitRelativePath.split("/").slice(0, -1) }));
  const folders = new Map(sources.map(({ folders: names }) => [names.join("/"), names]));
  return { sources, folders: [...folders.values()] };
}

/**
 * Returns what was dropped or pasted. It must be called before the event has ended: then the data are gone.
 * @param {DataTransfer} data
 * @returns {Promise<Dropped>}
 */
export async function transferred(data) {
  const entries = [...data.items].map((item) => item.webkitGetAsEntry?.() ?? null).filter((entry) => entry !== null);
  if (!entries.length) return chosen(data.files);
  /** @type {Dropped} */
  const dropped = { sources: [], folders: [] };
  for (const entry of entries) await walk(entry, [], dropped);
  return dropped;
}

/** @param {FileSystemEntry} entry @param {string[]} folders @param {Dropped} dropped */
async function walk(entry, folders, dropped) {
  if (entry.isFile) {
    const of = /** @type {FileSystemFileEntry} */ (entry);
    /** @type {File} */
    const file = await new Promise((resolve, reject) => of.file(resolve, reject));
    dropped.sources.push({ file, folders });
    return;
  }
  const names = [...folders, entry.name];
  dropped.folders.push(names);
  for (const child of await children(/** @type {FileSystemDirectoryEntry} */ (entry))) await walk(child, names, dropped);
}

/**
 * Returns all entries of a folder: a reader gives a hundred at a time, and none at the end.
 * @param {FileSystemDirectoryEntry} folder
 */
async function children(folder) {
  const reader = folder.createReader();
  /** @type {FileSystemEntry[]} */
  const all = [];
  for (;;) {
    /** @type {FileSystemEntry[]} */
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!some.length) return all;
    all.push(...some);
  }
}
