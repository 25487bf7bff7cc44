// A browser for one scenario: it runs without a window, has an empty profile, and fails at the first error of a page.
//
// A scenario prints a line for what the test program must do to the server, and reads a line when it is done.

import assert from "node:assert/strict";
import { createInterface } from "node:readline/promises";
import { createRequire } from "node:module";

const { chromium } = createRequire(`${process.env.TOOLS}/`)("playwright-core");

/** The password of each account. */
export const PASSWORD = "correct horse";

/** How long something may take to appear, on a slow machine. */
const WAIT_TIME = 15_000;

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

/** Has the test program do something to the server, and waits until it is done. */
export async function have(what) {
  console.log(what);
  await lines.next();
}

export const url = process.env.SERVER;

/** Starts a browser; `settings` are those of a Playwright context. */
export async function start(settings = {}) {
  const args = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic", "--no-proxy-server"];
  const browser = await chromium.launch({ executablePath: process.env.BROWSER, args });
  const context = await browser.newContext({ locale: "en-US", viewport: { width: 1280, height: 800 }, ...settings });
  context.setDefaultTimeout(WAIT_TIME);
  return { browser, context };
}

/** Opens a page of the server. Errors of its scripts, and what its policy forbids, fail the scenario. */
export async function open(context, path) {
  const page = await context.newPage();
  page.errors = [];
  page.on("pageerror", (error) => page.errors.push(String(error.stack ?? error)));
  page.on("console", (message) => {
    const isOfNetwork = message.text().startsWith("Failed to load resource");
    if (message.type() === "error" && !isOfNetwork) page.errors.push(message.text());
  });
  await page.goto(url + path);
  return page;
}

/** Signs up, and opens the account's files. */
export async function signUp(context, name) {
  const page = await open(context, "/app/signup");
  await page.fill("[name=name]", name);
  await page.fill("[name=password]", PASSWORD);
  await page.click("button.primary");
  await ready(page);
  return page;
}

/** Waits until the scripts have taken over the open folder. */
export async function ready(page) {
  await page.waitForSelector("table.active");
}

/** Returns the names in the rows, as they are shown. */
export function names(page) {
  return page.locator("tbody tr[data-href] > td:first-child").allInnerTexts();
}

/** Waits until these names, and no others, are shown. */
export async function shows(page, expected) {
  let seen;
  await until(async () => {
    seen = await names(page);
    return JSON.stringify(seen) === JSON.stringify(expected);
  }, () => assert.deepEqual(seen, expected));
}

/** Waits for a condition. */
export async function until(condition, fail = () => assert.fail(`never: ${condition}`)) {
  const end = Date.now() + WAIT_TIME;
  while (!await condition()) {
    if (Date.now() > end) return fail();
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Sends a request with the page's cookie, from the page. Returns its status and its text. */
export function send(page, method, path, body, headers = {}) {
  return page.evaluate(async ([method, path, body, headers]) => {
    const answer = await fetch(path, { method, body, headers, cache: "no-store" });
    return [answer.status, await answer.text()];
  }, [method, path, body, headers]);
}

/** Drops files on the page, as a desktop does: each has a name, a text and, perhaps, folders above it. */
export async function drop(page, files, selector = "main") {
  const data = await page.evaluateHandle((files) => {
    const data = new DataTransfer();
    for (const { name, text, modified } of files) {
      data.items.add(new File([text], name, { lastModified: modified ?? 1_700_000_000_000 }));
    }
    return data;
  }, files);
  await page.dispatchEvent(selector, "dragover", { dataTransfer: data });
  await page.dispatchEvent(selector, "drop", { dataTransfer: data });
}

/** Ends a scenario: nothing may have failed in its pages. */
export async function end({ browser }, ...pages) {
  for (const page of pages) assert.deepEqual(page.errors, []);
  await browser.close();
  // The standard input is open still.
  process.exit(0);
}
