// Markdown as elements: headings, lists, quotes, code, emphasis and links. What it does not know stays text.
//
// Invariants: no markup of the file is markup here, since elements are made one by one and their text is text; a link
// leads to the web only if it says so, and no picture is loaded.

import { element } from "./dom.js";

/** Levels of quotes and lists in each other. */
const LEVELS_MAX = 8;

/** Inline forms (\x60 is the mark of code), each with the element that it makes; the first that matches at the earliest place counts. */
const INLINE = new RegExp([
  "\\x60+(?<code>[^\\x60]+)\\x60+", "\\*\\*(?<strong>[^*]+)\\*\\*", "\\*(?<em>[^*\\s][^*]*)\\*",
  "(?<![\\w_])_(?<em2>[^_]+)_(?![\\w_])",
  "~~(?<del>[^~]+)~~", "!?\\[(?<label>[^\\]]*)\\]\\((?<href>[^)\\s]+)[^)]*\\)",
].join("|"), "u");

/** @param {string} words @returns {(Node | string)[]} */
function inline(words) {
  const found = INLINE.exec(words);
  if (!found?.groups) return [words];
  const { code, strong, em, em2, del, label, href } = found.groups;
  const made = code !== undefined ? element("code", {}, code)
    : strong !== undefined ? element("strong", {}, ...inline(strong))
    : em ?? em2 ? element("em", {}, ...inline(em ?? em2 ?? ""))
    : del !== undefined ? element("del", {}, ...inline(del))
    : link(label ?? "", href ?? "");
  const after = found.index + found[0].length;
  return [words.slice(0, found.index), made, ...inline(words.slice(after))];
}

/** @param {string} label @param {string} href */
function link(label, href) {
  const isSafe = /^(https?:|mailto:)/i.test(href);
  const words = label || href;
  return isSafe ? element("a", { href, rel: "noreferrer noopener", target: "_blank" }, words) : words;
}

/**
 * Returns the elements of a text in Markdown.
 * @param {string} source
 * @param {number} [level]
 * @returns {HTMLElement[]}
 */
export function markdown(source, level = 0) {
  if (level > LEVELS_MAX) return [element("pre", {}, source)];
  const lines = source.replace(/\r\n?/g, "\n").split("\n");
  /** @type {HTMLElement[]} */
  const blocks = [];
  /** Takes the lines from the next one on that match. @param {(line: string) => boolean} matches */
  const take = (matches) => {
    const end = lines.findIndex((line) => !matches(line));
    return lines.splice(0, end < 0 ? lines.length : end);
  };
  while (lines.length) {
    const [line = ""] = lines;
    const heading = /^(#{1,6})\s+(.*?)\s*#*$/.exec(line);
    const fence = /^\s*(\x60{3,}|~{3,})/.exec(line)?.[1];
    if (!line.trim()) {
      lines.shift();
    } else if (heading) {
      lines.shift();
      const tag = /** @type {"h1" | "h2"} */ (`h${heading[1]?.length}`);
      blocks.push(element(tag, {}, ...inline(heading[2] ?? "")));
    } else if (fence) {
      lines.shift();
      const code = take((inside) => !inside.trim().startsWith(fence));
      lines.shift();
      blocks.push(element("pre", {}, element("code", {}, code.join("\n"))));
    } else if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(line)) {
      lines.shift();
      blocks.push(element("hr"));
    } else if (line.startsWith(">")) {
      const quoted = take((inside) => inside.startsWith(">")).map((inside) => inside.replace(/^> ?/, ""));
      blocks.push(element("blockquote", {}, ...markdown(quoted.join("\n"), level + 1)));
    } else if (/^ {0,3}([-*+]|\d+[.)])\s/.test(line)) {
      blocks.push(listOf(take((inside) => /^(\s{2,}|\s*([-*+]|\d+[.)])\s)/.test(inside)), level));
    } else if (/^ {4}/.test(line)) {
      blocks.push(element("pre", {}, element("code", {}, take((inside) => /^ {4}/.test(inside)).join("\n"))));
    } else {
      const paragraph = take((inside) => inside.trim() !== "" && !/^(#{1,6}\s|>|\s*(\x60{3}|~~~))/.test(inside));
      blocks.push(element("p", {}, ...inline(paragraph.join("\n"))));
    }
  }
  return blocks;
}

/** @param {string[]} lines @param {number} level */
function listOf(lines, level) {
  const marker = /^ {0,3}([-*+]|\d+[.)])\s+/;
  const isOrdered = /^ {0,3}\d/.test(lines[0] ?? "");
  /** @type {string[][]} */
  const items = [];
  for (const line of lines) {
    if (marker.test(line)) items.push([line.replace(marker, "")]);
    else items.at(-1)?.push(line.replace(/^ {2,4}/, ""));
  }
  const made = items.map(([first = "", ...rest]) =>
    element("li", {}, ...inline(first), ...(rest.length ? markdown(rest.join("\n"), level + 1) : [])));
  return element(isOrdered ? "ol" : "ul", {}, ...made);
}
