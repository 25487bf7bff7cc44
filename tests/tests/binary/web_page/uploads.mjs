// A person uploads: chosen files, dropped files and folders, pasted ones; names that are taken; pause and cancel; a
// server that is killed half way; a tab that was closed.

import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { mkdtempSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { drop, end, have, names, open, ready, send, shows, signUp, start, until } from "./browser.mjs";

/** Bytes of a file that is sent in several parts. */
const LARGE_BYTES = 48 << 20;

const session = await start();
const page = await signUp(session.context, "uploader");
const home = mkdtempSync(join(tmpdir(), "uploads-"));
process.on("exit", () => rmSync(home, { recursive: true }));

/** Chooses files by a button, as a person does. */
async function choose(button, paths) {
  const [chooser] = await Promise.all([page.waitForEvent("filechooser"), page.locator(button).click()]);
  await chooser.setFiles(paths);
}

const listed = async (path) => JSON.parse((await send(page, "GET", `${path}?format=json`))[1]).entries;
const pending = async () => JSON.parse((await send(page, "GET", "/uploads"))[1]).uploads;
const all = () => page.locator(".uploads h2").innerText();

// Chosen files, with their times.
writeFileSync(join(home, "one.txt"), "one");
writeFileSync(join(home, "ü & 50%.txt"), "two");
await choose(".tools summary.primary", [join(home, "one.txt"), join(home, "ü & 50%.txt")]);
await shows(page, ["one.txt", "ü & 50%.txt"]);
assert.equal((await send(page, "GET", "/files/%C3%BC%20%26%2050%25.txt"))[1], "two");
await until(async () => await all() === "2 of 2 uploaded");

// A whole folder, of which the empty ones cannot be chosen. Each file is sent once.
const sent = [];
page.on("request", (request) => request.method() === "PUT" && sent.push(request.url()));
mkdirSync(join(home, "tree", "deep", "er"), { recursive: true });
writeFileSync(join(home, "tree", "top"), "t");
for (let count = 0; count < 60; count += 1) writeFileSync(join(home, "tree", "deep", "er", `${count}`), `${count}`);
await choose("button.folder-upload", join(home, "tree"));
await until(async () => await all() === "63 of 63 uploaded");
assert.deepEqual([sent.length, new Set(sent).size], [61, 61]);
assert.equal((await listed("/files/tree/deep/er/")).length, 60);
assert.equal((await send(page, "GET", "/files/tree/top"))[1], "t");

// Dropped files; a name that is taken asks, for all of them if the person says so.
await drop(page, [{ name: "one.txt", text: "1" }, { name: "new.txt", text: "n" }]);
await page.waitForSelector("dialog.question");
assert.match(await page.locator("dialog.question").innerText(), /one\.txt is there already[^]*There: 3 B[^]*New: 1 B/);
await page.click("dialog.question button[value=skip]");
await shows(page, ["tree/", "new.txt", "one.txt", "ü & 50%.txt"]);
assert.equal((await send(page, "GET", "/files/one.txt"))[1], "one");
await drop(page, [{ name: "one.txt", text: "1" }, { name: "new.txt", text: "nn" }]);
await page.waitForSelector("dialog.question");
await page.locator("dialog.question input[type=checkbox]").check();
await page.click("dialog.question button[value=both]");
await shows(page, ["tree/", "new (2).txt", "new.txt", "one (2).txt", "one.txt", "ü & 50%.txt"]);
await drop(page, [{ name: "one.txt", text: "replaced" }]);
await page.click("dialog.question button[value=replace]");
await until(async () => (await send(page, "GET", "/files/one.txt"))[1] === "replaced");

// Dropped on a folder's row, they go into it; pasted ones go into the open folder.
await drop(page, [{ name: "into.txt", text: "in" }], "tr[data-href='tree/'] td");
await until(async () => (await send(page, "GET", "/files/tree/into.txt"))[1] === "in");
await page.evaluate(() => {
  const data = new DataTransfer();
  data.items.add(new File(["p"], "pasted.txt"));
  document.body.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true }));
});
await until(async () => (await names(page)).includes("pasted.txt"));

// A large file is paused, and goes on; cancelled, it leaves nothing.
const large = randomBytes(LARGE_BYTES);
const digest = createHash("sha256").update(large).digest("base64");
const slow = await session.context.newCDPSession(page);
await slow.send("Network.enable");
const limit = (bytes) => slow.send("Network.emulateNetworkConditions",
  { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: bytes });
writeFileSync(join(home, "large.bin"), large);
await limit(4 << 20);
await choose(".tools summary.primary", [join(home, "large.bin")]);
await until(async () => (await pending())[0]?.offset > 0);
await page.locator(".uploads li button", { hasText: "Pause" }).click();
await until(async () => (await page.locator(".uploads li").innerText()).includes("paused"));
const { offset } = (await pending())[0];
await page.locator(".uploads li button", { hasText: "Resume" }).click();
await until(async () => (await pending())[0]?.offset > offset);
await page.locator(".uploads li button", { hasText: "Cancel" }).click();
await until(async () => (await pending()).length === 0);
assert.ok(!(await names(page)).includes("large.bin"));

// The server is killed half way: the upload goes on by itself, and other folders are open meanwhile.
await choose(".tools summary.primary", [join(home, "large.bin")]);
await until(async () => (await pending())[0]?.offset > 0);
await have("kill");
await until(async () => (await page.locator(".uploads li").innerText()).includes("no connection"));
await have("start");
await until(async () => (await pending())[0]?.offset > 0);
await page.locator("tr[data-href='tree/'] a").click();
await shows(page, ["deep/", "into.txt", "top"]);

// Leaving asks. The page is left all the same, and the next one resumes the upload with the same file.
let asked = 0;
page.on("dialog", (dialog) => {
  asked += 1;
  void dialog.accept();
});
await page.goto(page.url().replace("tree/", ""));
assert.equal(asked, 1, "the browser asks before it leaves an upload");
await ready(page);
await page.waitForSelector(".uploads li");
assert.match(await page.locator(".uploads li").innerText(), /large\.bin[^]*interrupted at/);
const begun = (await pending())[0];
await limit(-1);
const [chooser] = await Promise.all([page.waitForEvent("filechooser"),
  page.locator(".uploads li button", { hasText: "Resume" }).click()]);
const requests = [];
page.on("request", (request) => requests.push(`${request.method()} ${new URL(request.url()).pathname}`));
await chooser.setFiles(join(home, "large.bin"));
await until(async () => (await names(page)).includes("large.bin"));
assert.ok(requests.includes(`PATCH ${begun.url}`) && !requests.includes("POST /uploads"), `${requests}`);
const stored = await page.evaluate(async () => {
  const answer = await fetch("/files/large.bin", { method: "HEAD", headers: { "Want-Repr-Digest": "sha-256=1" } });
  return answer.headers.get("Repr-Digest");
});
assert.equal(stored, `sha-256=:${digest}:`);
assert.deepEqual(await pending(), []);

// A tree of folders, some of them empty, as a desktop drops it: entries of a file system that is no real one.
await page.evaluate(() => {
  const file = (name, text) => ({ isFile: true, name, file: (done) => done(new File([text], name)) });
  const folder = (name, children) => ({
    isFile: false,
    name,
    createReader: () => {
      const left = [children.slice(0, 1), children.slice(1), []];
      return { readEntries: (done) => done(left.shift() ?? []) };
    },
  });
  const tree = folder("dropped", [folder("empty", []), file("x", "x"), folder("sub", [file("y", "yy")])]);
  const data = { types: ["Files"], items: [{ webkitGetAsEntry: () => tree }], files: [] };
  const event = new Event("drop", { bubbles: true, cancelable: true });
  Object.defineProperty(event, "dataTransfer", { value: data });
  document.querySelector("main").dispatchEvent(event);
});
await until(async () => (await send(page, "GET", "/files/dropped/sub/y"))[1] === "yy");
assert.deepEqual((await listed("/files/dropped/")).map(({ name }) => name), ["empty", "sub", "x"]);

// What the account may not do is refused in words.
await page.evaluate(() => globalThis.dispatchEvent(new Event("online")));
const other = await open(session.context, "/shared/");
await ready(other);
assert.equal(await other.locator(".tools summary").count(), 0);
await end(session, other);
