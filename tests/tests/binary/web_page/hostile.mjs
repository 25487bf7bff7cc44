// Names and contents of files that would run, if any of them became markup or code.

import assert from "node:assert/strict";
import { drop, end, open, ready, send, signUp, start, until } from "./browser.mjs";

const CODE = "globalThis.hasRun=1";

/** Names of sixty kinds: elements, attributes, quotes, URLs, templates, entities, marks of direction, and more. */
const NAMES = [
  `<script>${CODE}<script>`, `<img src=x onerror=${CODE}>`, `<svg onload=${CODE}>`, `<iframe srcdoc="<script>${CODE}<script>">`,
  `<body onload=${CODE}>`, `<video><source onerror=${CODE}>`, `<audio src=x onerror=${CODE}>`, `<input autofocus onfocus=${CODE}>`,
  `<details open ontoggle=${CODE}>`, `<a href=javascript:${CODE}>x<a>`, `<form action=javascript:${CODE}><button>`,
  `<button formaction=javascript:${CODE}>`, `<object data=javascript:${CODE}>`, `<embed src=javascript:${CODE}>`,
  `<math><mi xlink:href=javascript:${CODE}>`, `<style>@import 'javascript:${CODE}'<style>`, `<link rel=stylesheet href=x onerror=${CODE}>`,
  `<meta http-equiv=refresh content=0;url=javascript:${CODE}>`, `<base href=javascript:${CODE}>`, `<template><script>${CODE}<script>`,
  `<noscript><img src=x onerror=${CODE}>`, `<textarea><img src=x onerror=${CODE}>`, `<title><img src=x onerror=${CODE}>`,
  `<xmp><img src=x onerror=${CODE}>`, `<!--><img src=x onerror=${CODE}>`, `<![CDATA[<img src=x onerror=${CODE}>]]>`,
  `"><script>${CODE}<script>`, `'><script>${CODE}<script>`, `"onmouseover="${CODE}`, `'onfocus='${CODE}' autofocus='`,
  `\` onerror=${CODE} \``, `javascript:${CODE}`, `data:text,<script>${CODE}<script>`, `vbscript:${CODE}`,
  `\${${CODE}}`, `{{${CODE}}}`, `<%= ${CODE} %>`, `#{${CODE}}`, `{%raw%}${CODE}`, `&lt;script&gt;${CODE}`, `&#60;img src=x onerror=${CODE}&#62;`,
  `%3Cscript%3E${CODE}%3C%2Fscript%3E`, `\\u003cscript\\u003e${CODE}`, `\\x3cimg src=x onerror=${CODE}\\x3e`,
  `';${CODE};'`, `";${CODE};"`, `);${CODE};(`, `-->${CODE}<!--`, `]]>${CODE}`, `{name}{count}{files}`, `?archive=zip&sort=size`, `#${CODE}`,
  `a\u202egnp.exe`, `\u200b<b>`, "\u2066<i>", `..%5c..%5c`, `...`, `con.txt:stream`, `__proto__`, `constructor`, `toString`,
  `x`.repeat(200), `<b>bold.md`, `<script>${CODE}<script>.txt`, `<script>${CODE}<script>.png`, `;${CODE}.csv`,
];

const CONTENTS = {
  "page.html": `<script>${CODE}</script><img src=x onerror=${CODE}>`,
  "picture.svg": `<svg xmlns="http://www.w3.org/2000/svg" onload="${CODE}"><script>${CODE}</script></svg>`,
  "text.md": `<script>${CODE}</script>\n\n[x](javascript:${CODE})\n\n![x](data:text/html,x)\n\n# <img src=x onerror=${CODE}>\n\n`
    + `> <svg onload=${CODE}>\n\n- <img src=x onerror=${CODE}>\n\n\`<script>${CODE}</script>\`\n\n[a]("onclick=${CODE})`,
  "data.json": `{"__proto__": {"x": "<img src=x onerror=${CODE}>"}}`,
  "feed.xml": `<?xml version="1.0"?><x:script xmlns:x="http://www.w3.org/1999/xhtml">${CODE}</x:script>`,
  "script.js": CODE,
};

assert.ok(NAMES.length >= 60);
const session = await start();
const page = await signUp(session.context, "victim");
const hasRun = async (page) => assert.equal(await page.evaluate(() => globalThis.hasRun), undefined);
for (const name of NAMES) {
  const [status, text] = await send(page, "PUT", `/files/${encodeURIComponent(name)}`, "x");
  assert.ok(status === 201, `${name}: ${status} ${text}`);
}
for (const [name, content] of Object.entries(CONTENTS)) await send(page, "PUT", `/files/${name}`, content);
await page.reload();
await ready(page);
await hasRun(page);
assert.equal(await page.locator("tbody tr").count(), NAMES.length + 6);

// Each row: its menu, its details, its preview, its question before deletion, and its rename.
for (let at = 0; at < NAMES.length + 6; at += 1) {
  await page.locator("tbody tr").nth(at).locator("button.more").click();
  await page.keyboard.press("Escape");
}
await page.keyboard.press("Home");
await page.keyboard.press("Control+a");
await page.keyboard.press("Delete");
await page.waitForSelector("dialog.question");
await page.keyboard.press("Escape");
await page.keyboard.press("Escape");
await hasRun(page);
const previews = await page.locator("tbody a").evaluateAll((links) =>
  links.map((link) => link.textContent ?? "").filter((name) => /\.(html|svg|md|json|xml|js|txt|png|csv)$/.test(name)));
assert.ok(previews.length >= 10, `${previews}`);
await page.locator("tbody a", { hasText: previews[0] }).first().click();
for (let count = 0; count < previews.length; count += 1) {
  await page.waitForSelector(".preview .shown > *");
  await page.keyboard.press("ArrowRight");
}
await page.keyboard.press("Escape");
await hasRun(page);

// Uploads whose names are taken: the question and the panel show them.
await drop(page, NAMES.slice(0, 30).filter((name) => !name.includes("/")).map((name) => ({ name, text: "y" })));
await page.waitForSelector("dialog.question");
await page.locator("dialog.question input[type=checkbox]").check();
await page.click("dialog.question button[value=skip]");
await until(async () => await page.locator(".uploads").count() === 0);
await hasRun(page);

// The pages of the server, and each file as its own page.
for (const path of ["/app/shares", ...Object.keys(CONTENTS).map((name) => `/app/entry?at=/files/${name}`)]) {
  const other = await open(session.context, path);
  await hasRun(other);
  assert.deepEqual(other.errors, []);
  await other.close();
}
for (const name of ["text.md", "data.json"]) {
  const other = await session.context.newPage();
  await other.goto(page.url().replace(/files\/.*/, `files/${name}`)).catch(() => {});
  await hasRun(other);
  await other.close();
}
// Markup in the page could load no script, not even one of the account's own files.
const loaded = await page.evaluate(() => new Promise((resolve) => {
  const script = document.createElement("script");
  addEventListener("securitypolicyviolation", () => resolve("refused"));
  script.onload = () => resolve("ran");
  document.body.append(script);
  try {
    script.src = "/files/script.js";
  } catch {
    resolve("refused");
  }
}));
assert.equal(loaded, "refused");
await hasRun(page);
page.errors.length = 0;
await end(session, page);
