// Elements, dialogs and notices.
//
// Invariant: a text stays a text. Nothing here, and no other script, parses markup.

import { text } from "./texts.js";

/**
 * Creates an element. A function is a listener of the event that its name has after "on"; true is an
 * attribute without a value; false and undefined are left out.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, unknown>} [attributes]
 * @param {(Node | string)[]} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== undefined) made.setAttribute(name, String(value));
  }
  made.append(...children);
  return made;
}

/**
 * Creates a button that submits no form.
 * @param {string} label
 * @param {(event: MouseEvent) => void} action
 * @param {Record<string, unknown>} [attributes]
 */
export function button(label, action, attributes = {}) {
  return element("button", { type: "button", onclick: action, ...attributes }, label);
}

/**
 * Returns the only element of a kind that matches, if there is one.
 * @template {Element} Kind
 * @param {string} selector
 * @param {new () => Kind} kind
 * @param {ParentNode} [within]
 * @returns {Kind | null}
 */
export function find(selector, kind, within = document) {
  const found = within.querySelector(selector);
  return found instanceof kind ? found : null;
}

/**
 * @typedef {object} Question
 * @property {string} title
 * @property {(Node | string)[]} [content]
 * @property {{value: string, label: string, style?: string}[]} choices The first is chosen by Enter.
 * @property {boolean} [hasCancel] Whether a button cancels, besides Escape.
 */

/**
 * Asks by a modal dialog. Resolves with the value of the chosen button; with "" if the person cancels.
 * @param {Question} question
 * @returns {Promise<string>}
 */
export function ask({ title, content = [], choices, hasCancel = true }) {
  const buttons = choices.map(({ value, label, style }) => element("button", { value, class: style }, label));
  const label = text(choices.length ? "cancel" : "close");
  const cancel = hasCancel ? [element("button", { value: "", formnovalidate: true }, label)] : [];
  const heading = element("h2", { id: "question" }, title);
  const form = element("form", { method: "dialog" }, heading, ...content,
    element("p", { class: "choices" }, ...buttons, ...cancel));
  const dialog = element("dialog", { class: "question", "aria-labelledby": "question" }, form);
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue);
    });
    document.body.append(dialog);
    dialog.showModal();
    const field = dialog.querySelector("input:not([type=checkbox])");
    if (field instanceof HTMLInputElement) field.select();
    else form.querySelector("button")?.focus();
  });
}

/**
 * Asks for a text. Resolves with null if the person cancels, or leaves it as it was.
 * @param {string} title
 * @param {string} label
 * @param {string} value
 * @param {string} choice
 * @returns {Promise<string | null>}
 */
export async function askText(title, label, value, choice) {
  const field = element("input", { value, required: true, autocomplete: "off", spellcheck: "false" });
  const content = [element("label", {}, label, field)];
  const chosen = await ask({ title, content, choices: [{ value: "yes", label: choice, style: "primary" }] });
  return chosen === "yes" && field.value !== value ? field.value : null;
}

/** How long a notice stays. One with an action, such as Undo, stays longer; an error until it is closed. */
const NOTICE_TIME = 5000;
const ACTION_TIME = 15000;

/** The region of notices: a live region, so that a screen reader reads each. */
const notices = element("div", { class: "notices", role: "status" });

/**
 * Shows a notice.
 * @param {string} message
 * @param {{action?: {label: string, run: () => void}, isError?: boolean}} [more]
 */
export function notice(message, { action, isError = false } = {}) {
  if (!notices.isConnected) document.body.append(notices);
  const shown = element("p", { class: isError ? "notice error" : "notice" }, element("span", {}, message));
  const close = () => shown.remove();
  if (action) {
    const act = () => {
      close();
      action.run();
    };
    shown.append(button(action.label, act));
  }
  shown.append(button("×", close, { class: "close", "aria-label": text("close") }));
  notices.append(shown);
  if (!isError) setTimeout(close, action ? ACTION_TIME : NOTICE_TIME);
}
