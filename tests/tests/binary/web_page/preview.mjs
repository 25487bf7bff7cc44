// A person looks through files and edits one, while somebody else does too.

import assert from "node:assert/strict";
import { end, ready, send, signUp, start, until } from "./browser.mjs";

const PICTURE = `<svg xmlns="http://www.w3.org/2000/svg" width="40" height="30"><rect width="40" height="30"/></svg>`;

/** 64 samples of 8 bits at 8,000 Hz, of silence. All bytes of its head are below 128, so that it can be a text. */
const SOUND = "RIFF\x64\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x40\x1f\0\0\x01\0\x08\0data\x40\0\0\0" + "@".repeat(64);

const session = await start();
const page = await signUp(session.context, "reader");
const put = (name, body) => send(page, "PUT", `/files/${encodeURIComponent(name)}`, body);
await put("a.svg", PICTURE);
await put("b.md", "# Head\n\nA *slanted* <b>word</b> and a [link](https://example.org/), [none](javascript:alert(1)).\n\n- one\n- two\n");
await put("c.txt", "first\r\nsecond\r\n");
await put("d.html", "<script>document.title = 'run'</script>");
await put("e.bin", "no preview");
await put("f.wav", SOUND);
await put("g.txt", `${"long line ".repeat(200_000)}`);
await page.reload();
await ready(page);

// Enter opens, arrows lead to the next, the address has the name, and Back closes.
await page.keyboard.press("Home");
await page.keyboard.press("Enter");
await page.waitForSelector(".preview img");
await until(() => page.evaluate(() => document.querySelector(".preview img").naturalWidth === 40));
assert.ok(page.url().endsWith("/files/#a.svg"));
await page.keyboard.press("ArrowRight");
await page.waitForSelector(".preview article h1");
assert.equal(await page.locator(".preview article em").innerText(), "slanted");
assert.match(await page.locator(".preview article").innerText(), /<b>word<\/b>/);
assert.deepEqual(await page.locator(".preview article a").evaluateAll((all) => all.map((a) => a.href)), ["https://example.org/"]);
await page.keyboard.press("ArrowRight");
await until(async () => (await page.locator(".preview pre").innerText()).startsWith("first"));
await page.keyboard.press("ArrowRight");
await until(async () => (await page.locator(".preview pre").innerText()).startsWith("<script>"));
await page.keyboard.press("ArrowRight");
await page.waitForSelector(".preview audio");
await page.keyboard.press("ArrowRight");
await until(async () => (await page.locator(".shown .quiet").innerText()).startsWith("The first 1.0 MiB of 2,000,000"));
assert.equal(await page.locator(".preview button", { hasText: "Edit" }).count(), 0, "a part of a file is not edited");
await page.keyboard.press("ArrowLeft");
await page.waitForSelector(".preview audio");
await page.goBack();
await until(async () => await page.locator(".preview").count() === 0);
assert.ok(page.url().endsWith("/files/"));
await page.goForward();
await page.waitForSelector(".preview");
await page.keyboard.press("Escape");
await until(async () => await page.locator(".preview").count() === 0);

// A text is edited, and keeps its ends of lines.
await page.locator("tr", { hasText: "c.txt" }).locator("a").click();
await page.locator(".preview button", { hasText: "Edit" }).click();
await page.locator("textarea").fill("first\nsecond\nthird\n");
await page.keyboard.press("Control+s");
await until(async () => (await send(page, "GET", "/files/c.txt"))[1] === "first\r\nsecond\r\nthird\r\n");
// Somebody else saves another version: nothing is replaced, and this one becomes a copy.
await put("c.txt", "theirs");
await page.locator("textarea").fill("mine\n");
await page.locator(".preview button", { hasText: "Save" }).click();
await page.waitForSelector("dialog.question");
assert.match(await page.locator("dialog.question").innerText(), /changed meanwhile/);
await page.click("dialog.question button[value=copy]");
await until(async () => (await send(page, "GET", "/files/c%20(2).txt"))[1] === "mine\r\n");
assert.equal((await send(page, "GET", "/files/c.txt"))[1], "theirs");
// Unsaved changes are not lost without a question.
await page.locator("textarea").fill("unsaved");
await page.keyboard.press("Escape");
await page.waitForSelector("dialog.question");
await page.locator("dialog.question button", { hasText: "Cancel" }).click();
assert.equal(await page.locator("textarea").inputValue(), "unsaved");
await page.locator(".preview button", { hasText: "Done" }).click();
await page.click("dialog.question button[value=discard]");
await until(async () => (await page.locator(".preview pre").innerText()) === "theirs");

// The address of a preview opens it.
await page.goto(page.url().replace(/#.*$/, "") + "#b.md");
await page.reload();
await page.waitForSelector(".preview article h1");
assert.notEqual(await page.title(), "run");
await end(session, page);
