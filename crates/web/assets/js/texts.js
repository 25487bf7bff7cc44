// Texts in the language of the page, and numbers, sizes and times for people.
//
// The server renders the same texts from the same file. Invariant: a key without a text is shown as the key.

const language = document.documentElement.lang || "en";

/** @type {Record<string, string>} */
const texts = await fetch(new URL(`./${language}.json`, import.meta.url)).then((answer) => answer.json());

/**
 * Returns a text with its placeholders replaced.
 * @param {string} key
 * @param {Record<string, string | number>} [values]
 */
export function text(key, values = {}) {
  return (texts[key] ?? key).replace(/\{(\w+)\}/g, (all, name) => String(values[name] ?? all));
}

/** Returns a text, if there is one. @param {string} key */
export function knownText(key) {
  return Object.hasOwn(texts, key) ? texts[key] : undefined;
}

const grouped = new Intl.NumberFormat("en-US");

/** Returns a number in groups of three digits, as the server writes it. @param {number} value */
export function number(value) {
  return grouped.format(value);
}

const UNITS = ["KiB", "MiB", "GiB", "TiB", "PiB"];

/** Returns a size with at most three digits, as the server rounds it. @param {number} bytes */
export function size(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  let scale = 1024;
  for (const unit of UNITS) {
    const tenths = Math.round((bytes * 10) / scale);
    const whole = Math.round(bytes / scale);
    if (tenths < 100) return `${Math.floor(tenths / 10)}.${tenths % 10} ${unit}`;
    if (whole < 1000) return `${whole} ${unit}`;
    scale *= 1024;
  }
  return `${number(bytes)} B`;
}

/** Returns a rounded duration. @param {number} seconds */
export function duration(seconds) {
  if (seconds < 60) return text("seconds", { count: Math.max(1, Math.ceil(seconds)) });
  if (seconds < 3600) return text("minutes", { count: Math.ceil(seconds / 60) });
  return text("hours", { count: Math.ceil(seconds / 3600) });
}

/** Characters that change how those around them are read, and control characters: `is_unsafe_to_show`. */
const UNSAFE = new RegExp("[\\p{Cc}\\u061c\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u2069\\ufeff\\ufff9-\\ufffb"
  + "\\u{e0000}-\\u{e007f}]", "gu");

/** Returns a name for display. @param {string} name */
export function shown(name) {
  return name.replace(UNSAFE, "\ufffd");
}

const collator = new Intl.PluralRules(language);

/** Returns the text for a count: KEY.one or KEY.other. @param {string} key @param {number} count */
export function counted(key, count) {
  return text(`${key}.${collator.select(count) === "one" ? "one" : "other"}`, { count: number(count) });
}
