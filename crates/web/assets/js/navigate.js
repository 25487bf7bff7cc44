// From folder to folder without leaving the page, so that uploads go on.
//
// The server renders each folder as for a visit of its own, and this takes over its main part. Invariants: the address
// is always that of the folder that is shown; a page that cannot be taken over is visited.

import { queue } from "./panel.js";

/** Whether a path is that of a folder of files. @param {string} path */
function isFolder(path) {
  return /^\/(files|shared)\/(.*\/)?$/.test(path);
}

/**
 * Loads a page as a document, in which nothing runs.
 * @param {string} url
 * @returns {Promise<XMLHttpRequest>}
 */
function load(url) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("GET", url);
    request.responseType = "document";
    request.setRequestHeader("Accept", "text/html");
    request.addEventListener("load", () => resolve(request));
    request.addEventListener("error", reject);
    request.send();
  });
}

/** The last visit that was started: an earlier one that comes later is not shown. */
let last = 0;

/**
 * Shows another folder.
 * @param {string} url
 * @param {{scroll?: number, isNew: boolean}} how
 * @param {() => void} shown What begins when it is shown.
 */
async function visit(url, { scroll = 0, isNew }, shown) {
  const visit = (last += 1);
  const answer = await load(url).catch(() => null);
  if (visit !== last) return;
  const page = answer?.responseXML;
  const next = page?.querySelector("main");
  const hasTable = page?.querySelector(".tools[data-may]");
  // A log-in page, an error, or a page of another version of the server.
  if (!answer || answer.status !== 200 || !page || !next || !hasTable) return void leaveFor(url);
  if (isNew) history.pushState({ scroll: 0 }, "", answer.responseURL || url);
  document.title = page.title;
  document.querySelector("main")?.replaceWith(document.adoptNode(next));
  const header = page.querySelector("body > header");
  if (header) document.querySelector("body > header")?.replaceWith(document.adoptNode(header));
  scrollTo(0, scroll);
  shown();
}

/** @param {string} url */
function leaveFor(url) {
  // An upload that is under way keeps the page: the browser asks.
  if (queue.isBusy || location.href !== new URL(url, location.href).href) location.assign(url);
  else location.reload();
}

/**
 * Follows links between folders, and the browser's Back and Forward.
 * @param {() => void} shown What begins when another folder is shown.
 * @param {() => void} sameFolder What happens when only the rest of the address has changed.
 */
export function followLinks(shown, sameFolder) {
  let path = location.pathname;
  const begin = () => {
    path = location.pathname;
    shown();
  };
  if (isFolder(path)) history.scrollRestoration = "manual";
  let timer = 0;
  addEventListener("scroll", () => {
    clearTimeout(timer);
    timer = setTimeout(() => history.replaceState({ ...history.state, scroll: scrollY }, ""), 200);
  }, { passive: true });
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    const isPlain = event.button === 0 && !(event.ctrlKey || event.metaKey || event.shiftKey || event.altKey);
    if (!link || !isPlain || event.defaultPrevented || link.target || link.hasAttribute("download")) return;
    const url = new URL(link.href);
    if (url.origin !== location.origin || url.searchParams.has("archive")) return;
    if (!isFolder(url.pathname) || !isFolder(location.pathname)) return;
    event.preventDefault();
    void visit(url.href, { isNew: true }, begin);
  });
  addEventListener("popstate", (event) => {
    if (location.pathname === path) return sameFolder();
    return void visit(location.href, { scroll: event.state?.scroll, isNew: false }, begin);
  });
}
