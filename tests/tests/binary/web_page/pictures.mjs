// Pictures of each view at three widths, in light and dark, and what axe-core finds there.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { drop, end, have, open, ready, send, signUp, start } from "./browser.mjs";

const require = createRequire(`${process.env.TOOLS}/`);
const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const into = process.env.PICTURES;
mkdirSync(into, { recursive: true });

const WIDTHS = { phone: [390, 844], tablet: [820, 1180], wide: [1440, 900] };
const NAMES = ["Grüße aus Überlingen.txt", "日本語の名前.txt", "ملف عربي.txt", "report.pdf", "song.mp3", "notes.md",
  "a name that is long enough to be cut or wrapped on each width, because it goes on and on and on.txt"];

const first = await start();
const maker = await signUp(first.context, "alice");
for (const name of NAMES) await send(maker, "PUT", `/files/${encodeURIComponent(name)}`, "# Notes\n\nSome *words*.\n");
for (const name of ["Photos", "Größe und Maß"]) await send(maker, "MKCOL", `/files/${encodeURIComponent(name)}`);
const other = await start();
await signUp(other.context, "bob");
await other.browser.close();
await send(maker, "POST", "/api/shares", JSON.stringify({ path: "/notes.md", with: "bob", permission: "read" }),
  { "Content-Type": "application/json" });
await have("permit alice +administer");
const state = await first.context.storageState();
await maker.close();
await first.browser.close();

/** What axe-core finds that is serious. */
async function serious(page) {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => globalThis.axe.run({ resultTypes: ["violations"] }));
  const found = violations.filter(({ impact }) => ["serious", "critical"].includes(impact));
  return found.map(({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target).join(" ")}`);
}

/** The views: each leads a page to what is to be seen. */
const VIEWS = {
  folder: async () => {},
  selected: async (page) => {
    await page.keyboard.press("Control+a");
  },
  menu: async (page) => {
    await page.locator("tr[data-href='notes.md'] td").nth(0).click({ button: "right", position: { x: 120, y: 15 } });
  },
  question: async (page) => {
    await page.locator("tr[data-href='notes.md'] a").focus();
    await page.keyboard.press("Delete");
    await page.waitForSelector("dialog.question");
  },
  uploads: async (page) => {
    await drop(page, [{ name: "report.pdf", text: "x" }, { name: "fresh.txt", text: "y" }]);
    await page.waitForSelector("dialog.question");
    await page.waitForSelector(".uploads h2");
    await page.keyboard.press("Escape");
    await page.waitForTimeout(500);
  },
  preview: async (page) => {
    await page.locator("tr[data-href='notes.md'] a").click();
    await page.waitForSelector(".preview article");
  },
  editor: async (page) => {
    await page.locator("tr[data-href='notes.md'] a").click();
    await page.locator(".preview button", { hasText: "Edit" }).click();
    await page.waitForSelector("textarea");
  },
  help: async (page) => {
    await page.keyboard.press("?");
    await page.waitForSelector("dl.keys");
  },
};

for (const [size, [width, height]] of Object.entries(WIDTHS)) {
  for (const colorScheme of ["light", "dark"]) {
    const session = await start({ viewport: { width, height }, colorScheme, storageState: state });
    // The narrowest in light, and the widest in dark: the others have the same elements and the same colours.
    const isExamined = size === "phone" && colorScheme === "light" || size === "wide" && colorScheme === "dark";
    const take = async (page, name) => {
      await page.screenshot({ path: join(into, `${name}-${size}-${colorScheme}.png`) });
      if (isExamined) assert.deepEqual(await serious(page), [], `${name} ${size} ${colorScheme}`);
      const wider = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(wider <= 0, `${name} ${size}: the page is ${wider} pixels too wide`);
      assert.deepEqual(page.errors, []);
      await page.close();
    };
    for (const [name, lead] of Object.entries(VIEWS)) {
      // Between the two other widths, few things differ.
      if (size === "tablet" && !["folder", "uploads"].includes(name)) continue;
      const page = await open(session.context, "/files/");
      await ready(page);
      await lead(page);
      await take(page, name);
    }
    for (const [name, path] of Object.entries({ shares: "/app/shares", account: "/app/account", entry: "/app/entry?at=/files/notes.md",
      accounts: "/app/operate", status: "/app/status", operate: "/app/operate?account=alice" })) {
      await take(await open(session.context, path), name);
    }
    await session.browser.close();
  }
}
await end(await start());
