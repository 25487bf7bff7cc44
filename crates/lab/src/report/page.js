"use strict";
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0];
  table.querySelectorAll("th").forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const rises = head.getAttribute("aria-sort") !== "ascending";
      table.querySelectorAll("th").forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", rises ? "ascending" : "descending");
      const compare = (one, other) => {
        const a = one.cells[column], b = other.cells[column];
        if ("o" in a.dataset && "o" in b.dataset) {
          return (rises ? 1 : -1) * (a.dataset.o - b.dataset.o);
        }
        if ("o" in a.dataset || "o" in b.dataset) { return "o" in a.dataset ? -1 : 1; }
        return (rises ? 1 : -1) * a.textContent.localeCompare(b.textContent);
      };
      body.append(...[...body.rows].sort(compare));
    });
  });
}
const open = () => {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  target?.querySelector(":scope > details")?.setAttribute("open", "");
};
addEventListener("hashchange", open);
open();
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(one => { one.open = true; }));
const tip = document.createElement("div");
tip.id = "tip";
tip.hidden = true;
document.body.append(tip);
for (const title of document.querySelectorAll("svg.chart title")) {
  const mark = title.parentNode, text = title.textContent;
  title.remove();
  mark.setAttribute("aria-label", text);
  mark.addEventListener("pointerenter", event => {
    tip.textContent = text;
    tip.hidden = false;
    const box = tip.getBoundingClientRect(), edge = document.documentElement.clientWidth;
    tip.style.left = Math.max(4, Math.min(event.clientX + 12, edge - box.width - 4)) + "px";
    tip.style.top = Math.max(4, event.clientY - box.height - 10) + "px";
  });
  mark.addEventListener("pointerleave", () => { tip.hidden = true; });
}
