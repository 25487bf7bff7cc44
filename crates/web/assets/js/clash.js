// The question what becomes of an entry whose name is taken.
//
// Invariants: one question at a time; an answer "for all" is for one upload, move or copy alone.

import { ask, element } from "./dom.js";
import { shown, size, text } from "./texts.js";

/** @typedef {"ask" | "both" | "replace" | "skip"} ClashChoice */

/** The last question, so that the next one waits. */
let last = Promise.resolve(/** @type {ClashChoice} */ ("ask"));

/**
 * @typedef {object} Clash
 * @property {string} name
 * @property {{always?: ClashChoice}} answers The answer that the person has given for all.
 * @property {boolean} mayReplace
 * @property {{size?: number, modified?: Date}} [present] What has the name.
 * @property {{size?: number, modified?: Date}} [coming] What is to get it.
 */

/**
 * Asks; resolves with "skip" if the person cancels.
 * @param {Clash} clash
 * @returns {Promise<ClashChoice>}
 */
export function askClash(clash) {
  last = last.then(() => clash.answers.always ?? show(clash));
  return last;
}

/** @param {Clash} clash @returns {Promise<ClashChoice>} */
async function show({ name, answers, mayReplace, present, coming }) {
  const all = element("input", { type: "checkbox" });
  const content = [
    ...(present ? [describe("clash.present", present)] : []),
    ...(coming ? [describe("clash.coming", coming)] : []),
    element("label", { class: "choice" }, all, text("clash.all")),
  ];
  const choices = [
    { value: "both", label: text("clash.both"), style: "primary" },
    ...(mayReplace ? [{ value: "replace", label: text("clash.replace"), style: "danger" }] : []),
    { value: "skip", label: text("clash.skip") },
  ];
  const chosen = await ask({ title: text("clash", { name: shown(name) }), content, choices, hasCancel: false });
  const choice = /** @type {ClashChoice} */ (chosen || "skip");
  if (all.checked) answers.always = choice;
  return choice;
}

/** @param {string} key @param {{size?: number, modified?: Date}} entry */
function describe(key, { size: bytes, modified }) {
  const time = modified?.toISOString().slice(0, 16).replace("T", " ");
  const parts = [bytes === undefined ? "" : size(bytes), time ?? ""];
  return element("p", {}, `${text(key)} ${parts.filter(Boolean).join(", ")}`);
}
