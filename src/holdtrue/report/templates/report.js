"use strict";
// Columns sort when their heading is pressed; without a script the table stands as it is.
for (const table of document.querySelectorAll("table.sortable")) {
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, index) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = heading.textContent;
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
}
