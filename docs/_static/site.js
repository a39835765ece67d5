// What the theme and the gallery leave unnamed gets its name.
document.addEventListener("DOMContentLoaded", () => {
  const all = (what, act) => document.querySelectorAll(what).forEach(act);
  all("summary", (s) => s.textContent.trim() || s.setAttribute("aria-label", "Pages of this section"));
  all(".sphx-glr-thumbcontainer a", (a) => a.setAttribute("aria-label", a.textContent.trim()));
  all("[role='doc-biblioentry'], .citation-list", (e) => e.removeAttribute("role"));
  all("th", (th) => { // an empty corner is no heading
    if (th.textContent.trim()) return;
    const cell = document.createElement("td");
    cell.className = th.className;
    th.replaceWith(cell);
  });
});
