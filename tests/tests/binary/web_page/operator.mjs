// An operator limits, disables and enables an account and ends its sessions and shares, with scripts switched off.

import assert from "node:assert/strict";
import { end, have, open, PASSWORD, send, signUp, start, until } from "./browser.mjs";

const persons = await start();
const alice = await signUp(persons.context, "alice");
const others = await start();
const bob = await signUp(others.context, "bob");
await send(alice, "PUT", "/files/notes.txt", "hello");
const json = { "Content-Type": "application/json" };
const share = JSON.stringify({ path: "/notes.txt", with: "bob", permission: "read" });
assert.equal((await send(alice, "POST", "/api/shares", share, json))[0], 201);
assert.equal((await send(bob, "GET", "/shared/alice/notes.txt"))[1], "hello");

const operators = await start({ javaScriptEnabled: false });
const page = await open(operators.context, "/app/signup");
await page.fill("[name=name]", "olga");
await page.fill("[name=password]", PASSWORD);
await page.click("button.primary");
assert.equal(await page.locator("header a", { hasText: "Server" }).count(), 0);
await have("permit olga +administer");

// The server polls for changes by other processes.
await until(async () => {
  await page.reload();
  return await page.locator("header a", { hasText: "Server" }).count() > 0;
});
await page.click("header >> text=Server");
assert.deepEqual(await page.locator("ul.rows a").allInnerTexts(), ["alice", "bob", "olga"]);
await page.fill("[name=account]", "alice");
await page.click("button:has-text('Open')");
assert.equal(await page.locator("h1").innerText(), "alice");

// A limit is enforced at the next request.
await page.fill("[name=bytes]", "8B");
await page.click("button[value=account-quota]");
assert.equal(await page.locator("[role=status]").innerText(), "Changed.");
assert.equal(await page.inputValue("[name=bytes]"), "8B");
assert.equal((await send(alice, "PUT", "/files/more.txt", "hello"))[0], 507);
await page.fill("[name=bytes]", "");
await page.click("button[value=account-quota]");
assert.equal((await send(alice, "PUT", "/files/more.txt", "hello"))[0], 201);

// So is a permission.
await page.uncheck("[name=write]");
await page.click("button[value=account-permissions]");
assert.equal(await page.isChecked("[name=write]"), false);
assert.equal(await page.isChecked("[name=read]"), true);
assert.equal((await send(alice, "PUT", "/files/third.txt", "hello"))[0], 403);

await page.click("button[value=account-unshare]");
assert.equal(await page.locator("[role=status]").innerText(), "The share has ended.");
assert.equal((await send(bob, "GET", "/shared/alice/notes.txt"))[0], 404);

await page.click("button[value=account-sessions]");
assert.equal((await send(alice, "GET", "/files/notes.txt"))[0], 401);
assert.equal((await send(bob, "GET", "/api/whoami"))[0], 200);

await page.click("button[value=account-disable]");
assert.match(await page.locator(".notice.error").innerText(), /disabled/);
await alice.goto(`${process.env.SERVER}/app/login`);
await alice.fill("[name=name]", "alice");
await alice.fill("[name=password]", PASSWORD);
await alice.click("button.primary");
assert.match(await alice.locator("[role=alert]").innerText(), /wrong/);
await page.click("button[value=account-enable]");
await alice.fill("[name=password]", PASSWORD);
await alice.click("button.primary");
await alice.waitForSelector("table.active");

// The operator's own account has no button that would lock it out.
await page.click("text=All accounts");
await page.click("ul.rows >> text=olga");
assert.equal(await page.locator("button[value=account-disable]").count(), 0);
assert.equal(await page.locator("input[type=checkbox][name=administer]").count(), 0);

await others.browser.close();
await operators.browser.close();
await end(persons, alice, bob, page);
