// A person uses the list: sort, filter, select, rename, move, copy, delete, new folder, back and forward.

import assert from "node:assert/strict";
import { end, open, ready, send, shows, signUp, start, until } from "./browser.mjs";

const session = await start();
const page = await signUp(session.context, "lister");
await shows(page, []);
for (const [name, text] of [["b.txt", "bb"], ["a10.txt", "x"], ["a9.txt", "xxx"]]) {
  assert.equal((await send(page, "PUT", `/files/${name}`, text))[0], 201);
}
assert.equal((await send(page, "MKCOL", "/files/inner"))[0], 201);
await page.reload();
await ready(page);
const byName = ["inner/", "a9.txt", "a10.txt", "b.txt"];
await shows(page, byName);

// Sort without a new page.
await page.evaluate(() => { globalThis.isSamePage = true; });
await page.click("th button[value=size]");
await shows(page, ["inner/", "a9.txt", "b.txt", "a10.txt"]);
assert.match(page.url(), /\?sort=size&order=desc$/);
await page.click("th button[value=name]");
await shows(page, byName);
assert.ok(await page.evaluate(() => globalThis.isSamePage));

// Filter by the keyboard.
await page.keyboard.press("/");
await page.keyboard.type("A1");
await shows(page, ["a10.txt"]);
await page.keyboard.press("Escape");
await shows(page, byName);

// Select by the keyboard and by the mouse; the boxes agree.
await page.keyboard.press("Home");
await page.keyboard.press("ArrowDown");
await page.keyboard.press("Shift+ArrowDown");
assert.match(await page.locator(".chosen > span").innerText(), /^2 selected/);
await page.locator("tr", { hasText: "b.txt" }).locator("input.pick").click();
assert.equal(await page.locator("tbody input.pick:checked").count(), 3);
await page.keyboard.press("Escape");
await page.locator("tr", { hasText: "a9.txt" }).locator("time").click();
await page.locator("tr", { hasText: "b.txt" }).locator("time").click({ modifiers: ["Shift"] });
assert.equal(await page.locator("tr.selected").count(), 3);
await page.keyboard.press("Control+a");
assert.equal(await page.locator("tr.selected").count(), 4);
await page.keyboard.press("Escape");
assert.equal(await page.locator("tr.selected").count(), 0);

// Rename in the row; a taken name replaces nothing.
await page.locator("tr", { hasText: "b.txt" }).locator("time").click();
await page.keyboard.press("F2");
await page.locator("input.renaming").fill("a9.txt");
await page.keyboard.press("Enter");
await page.waitForSelector(".notice.error");
assert.equal((await send(page, "GET", "/files/a9.txt"))[1], "xxx");
await page.locator(".notice.error .close").click();
await page.locator("tr", { hasText: "b.txt" }).locator("time").click();
await page.keyboard.press("F2");
await page.locator("input.renaming").fill("c & ü%20.txt");
await page.keyboard.press("Enter");
await shows(page, ["inner/", "a9.txt", "a10.txt", "c & ü%20.txt"]);
assert.equal((await send(page, "GET", "/files/c%20%26%20%C3%BC%2520.txt"))[1], "bb");

// Copy into a folder by cut and paste; a taken name asks.
await page.locator("tr", { hasText: "a9.txt" }).locator("time").click();
await page.keyboard.press("Control+c");
await page.locator("tr", { hasText: "inner" }).locator("a").click();
await ready(page);
await until(() => page.url().endsWith("/files/inner/"));
assert.ok(await page.evaluate(() => globalThis.isSamePage), "the next folder is shown in the same page");
await page.click("button.paste");
await shows(page, ["a9.txt"]);
await page.click("button.paste");
await page.waitForSelector("dialog.question");
await page.click("dialog.question button[value=both]");
await shows(page, ["a9 (2).txt", "a9.txt"]);
await page.goBack();
await shows(page, ["inner/", "a9.txt", "a10.txt", "c & ü%20.txt"]);
await page.goForward();
await shows(page, ["a9 (2).txt", "a9.txt"]);
await page.goBack();
await shows(page, ["inner/", "a9.txt", "a10.txt", "c & ü%20.txt"]);

// Move by dragging onto a folder.
await page.locator("tr", { hasText: "a10.txt" }).locator("time").dragTo(page.locator("tr", { hasText: "inner/" }));
await shows(page, ["inner/", "a9.txt", "c & ü%20.txt"]);
assert.equal((await send(page, "GET", "/files/inner/a10.txt"))[1], "x");

// A new folder, and one with a name that is taken.
await page.locator("summary", { hasText: "New folder" }).click();
await page.locator("dialog input").fill("made");
await page.keyboard.press("Enter");
await shows(page, ["inner/", "made/", "a9.txt", "c & ü%20.txt"]);

// Delete asks first; a file that has changed meanwhile is not deleted.
await page.locator("tr", { hasText: "a9.txt" }).locator("time").click();
await page.keyboard.press("Delete");
await page.waitForSelector("dialog.question");
await page.keyboard.press("Escape");
await shows(page, ["inner/", "made/", "a9.txt", "c & ü%20.txt"]);
await send(page, "PUT", "/files/a9.txt", "another version");
await page.keyboard.press("Delete");
await page.click("dialog.question button[value=yes]");
await page.waitForSelector(".notice.error");
assert.equal((await send(page, "GET", "/files/a9.txt"))[1], "another version");
await page.locator(".notice.error .close").click();
const deleteAll = async () => {
  await page.keyboard.press("Control+a");
  await page.keyboard.press("Delete");
  await page.click("dialog.question button[value=yes]");
  await shows(page, []);
};
await deleteAll();
await page.locator(".notice button", { hasText: "Undo" }).click();
await shows(page, ["inner/", "made/", "a9.txt", "c & ü%20.txt"]);
await deleteAll();

// A menu by the right mouse button, and its way by the keyboard.
await send(page, "PUT", "/files/menu.txt", "hello");
await page.reload();
await ready(page);
await page.locator("tr", { hasText: "menu.txt" }).locator("time").click({ button: "right" });
await page.waitForSelector(".menu");
assert.deepEqual(await page.locator(".menu button").allInnerTexts(),
  ["Open", "Download", "Rename", "Move", "Copy", "Delete", "Details"]);
await page.keyboard.press("Escape");
assert.equal(await page.locator(".menu").count(), 0);
await page.keyboard.press("?");
await page.waitForSelector("dl.keys");
await page.keyboard.press("Escape");

// A folder that does not let itself be read twice stays shown.
const other = await open(session.context, "/files/?sort=size&order=asc");
await ready(other);
await shows(other, ["menu.txt"]);
await end(session, page, other);
