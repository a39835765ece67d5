"use strict";
// Columns sort when their heading is pressed, what is secondary is folded, rows can be searched.
// Without a script the whole table stands as it is.
const FEW = 20; // rows that need no folding; the style sheet hides those beyond
const tool = (name, ...children) => {
  const element = document.createElement(name);
  element.append(...children);
  return element;
};
for (const table of document.querySelectorAll("table.sortable")) {
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, index) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.replaceChildren(button);
    button.addEventListener("click", () => {
      const up = heading.getAttribute("aria-sort") !== "ascending";
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", up ? "ascending" : "descending");
      const numeric = heading.classList.contains("number");
      const key = (row) => {
        const cell = row.cells[index];
        if (!numeric) return cell.textContent;
        return cell.dataset.value === "" ? NaN : Number(cell.dataset.value);
      };
      const missing = (value) => value === "" || Number.isNaN(value);
      const compare = (a, b) => {
        const [x, y] = [key(a), key(b)];
        if (missing(x) || missing(y)) return missing(x) - missing(y); // last, whichever way
        const order = numeric ? (x > y) - (x < y) : x.localeCompare(y, "en", { numeric: true });
        return up ? order : -order;
      };
      const body = table.tBodies[0];
      body.append(...[...body.rows].sort(compare));
    });
  });
  const tools = tool("div");
  tools.className = "tools";
  const fold = (kind, more, fewer) => {
    table.classList.add(kind);
    const button = tool("button", more);
    button.type = "button";
    button.setAttribute("aria-expanded", "false");
    button.addEventListener("click", () => {
      const folded = table.classList.toggle(kind);
      button.textContent = folded ? more : fewer;
      button.setAttribute("aria-expanded", String(!folded));
    });
    tools.append(button);
  };
  const secondary = headings.filter((heading) => heading.classList.contains("more")).length;
  if (secondary) fold("brief", `Show all ${headings.length} columns`, "Show fewer columns");
  const rows = [...table.tBodies[0].rows];
  if (rows.length > FEW) {
    fold("short", `Show all ${rows.length} rows`, "Show fewer rows");
    const box = tool("input");
    box.type = "search";
    box.addEventListener("input", () => {
      const wanted = box.value.trim().toLowerCase();
      if (wanted && table.classList.contains("short")) tools.lastElementChild.previousElementSibling.click();
      for (const row of rows) row.classList.toggle("out", !row.textContent.toLowerCase().includes(wanted));
    });
    tools.append(tool("label", "Find a row", box));
  }
  if (tools.children.length) table.parentElement.before(tools);
}
