// Small helps. Every page works without them.

// A button with `data-copy` copies its text.
for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(button.dataset.copy);
    const label = button.textContent;
    button.textContent = document.body.dataset.copied;
    setTimeout(() => { button.textContent = label; }, 1500);
  });
}

// A table that is wider than its place scrolls, and keys scroll only what can have the focus.
const widths = new ResizeObserver((entries) => {
  for (const { target: table } of entries) {
    const heading = table.closest("section")?.querySelector("h2") ?? document.querySelector("h1");
    const region = { tabindex: "0", role: "region", "aria-label": heading?.textContent || document.body.dataset.table };
    const scrolls = table.scrollWidth > table.clientWidth;
    for (const [name, value] of Object.entries(region)) {
      if (scrolls) table.setAttribute(name, value);
      else table.removeAttribute(name);
    }
    // The head of one that does not scroll stays in sight.
    table.classList.toggle("sticks", !scrolls && !table.closest("article"));
  }
});

// A click on the head of a column sorts the rows of the page by it, and another one turns them round.
const UNITS = { B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 };
const valueOf = (cell) => {
  const moment = cell?.querySelector("time[datetime]")?.dateTime;
  if (moment) return Date.parse(moment);
  const text = cell?.textContent.trim() ?? "";
  const [, number, unit] = cell?.classList.contains("number") ? text.match(/^([\d.]+)\s*(\w*)/) ?? [] : [];
  return number === undefined ? text : Number(number) * (UNITS[unit] ?? 1);
};
const inOrder = (a, b) =>
  typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
function sortable(table) {
  const body = table.tBodies[0];
  if (!table.tHead || body.rows.length < 3) return;
  for (const head of table.tHead.rows[0].cells) {
    const at = head.cellIndex;
    const acts = [...body.rows].some((row) => row.cells[at]?.querySelector("form, button, .button"));
    if (acts || !head.textContent.trim()) continue;
    const button = document.createElement("button");
    button.className = "sort";
    button.title = document.body.dataset.sort;
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const turned = head.ariaSort === "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", turned ? "descending" : "ascending");
      const rows = [...body.rows].map((row) => [valueOf(row.cells[at]), row]);
      rows.sort(([a], [b]) => (turned ? inOrder(b, a) : inOrder(a, b)));
      body.append(...rows.map(([, row]) => row));
    });
  }
}

const watch = (part) => part.querySelectorAll(".table").forEach((table) => {
  widths.observe(table);
  if (!table.closest("article")) table.querySelectorAll("table").forEach(sortable);
});
watch(document);
// Live parts of a page are replaced.
new MutationObserver((changes) => {
  for (const { addedNodes } of changes) for (const node of addedNodes) if (node.querySelectorAll) watch(node);
}).observe(document.body, { childList: true, subtree: true });

// The chosen tab of a row that is wider than its place is shown.
const tabWidths = new ResizeObserver((entries) => {
  for (const { target: tabs } of entries) {
    const here = tabs.querySelector("[aria-current]");
    if (here) tabs.scrollLeft = here.offsetLeft - tabs.offsetLeft - (tabs.clientWidth - here.offsetWidth) / 2;
  }
});
document.querySelectorAll(".tabs").forEach((tabs) => tabWidths.observe(tabs));

// A form that is sent twice by a double click is one form. Its key makes sure of it on the server.
for (const form of document.querySelectorAll("form[method=post]")) {
  form.addEventListener("submit", () => {
    const button = form.querySelector("button:not([name])");
    if (button) setTimeout(() => { button.disabled = true; });
  });
}
addEventListener("pageshow", ({ persisted }) => {
  if (!persisted) return;
  for (const button of document.querySelectorAll("form[method=post] button")) button.disabled = false;
});
