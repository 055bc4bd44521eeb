// The command palette: Ctrl+K or the Search link opens it, arrows choose, Enter goes. Without this
// script, the link leads to the same search as a page.
const dialog = document.importNode(document.querySelector("#palette").content, true).firstElementChild;
const [input, results, status] = dialog.children;
const options = () => [...results.querySelectorAll("[role=option]")];

// The words whose answer is shown, and those that are asked for. They differ while a search runs.
let shown = null;
let asked = null;
// Enter was pressed before the newest answer: it goes when that comes.
let goes = false;
let chosen = 0;

function choose(at) {
  const all = options();
  chosen = all.length ? (at + all.length) % all.length : 0;
  all.forEach((option, n) => option.setAttribute("aria-selected", String(n === chosen)));
  if (all.length) input.setAttribute("aria-activedescendant", all[chosen].id);
  else input.removeAttribute("aria-activedescendant");
  all[chosen]?.scrollIntoView({ block: "nearest" });
}

// Shows the answer as a list of options: the focus stays in the field, and screen readers follow it.
function show(html) {
  results.innerHTML = html;
  const list = results.querySelector("ul");
  list.id = "palette-places";
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", dialog.dataset.results);
  list.querySelectorAll("a").forEach((place, n) => {
    place.id = `palette-place-${n}`;
    place.setAttribute("role", "option");
    place.tabIndex = -1;
    place.parentElement.setAttribute("role", "presentation");
  });
  const found = options().length;
  status.textContent = found ? dialog.dataset.found.replace("\uFFFC", found) : dialog.dataset.nothing;
  choose(0);
}

function go() {
  options()[chosen]?.click();
}

async function search() {
  const words = input.value;
  if (words === asked) return;
  asked = words;
  const answer = await fetch(`/search/results?q=${encodeURIComponent(words)}`);
  if (answer.redirected || !answer.ok) return location.assign(`/search?q=${encodeURIComponent(input.value)}`);
  const html = await answer.text();
  if (words !== asked) return;
  show(html);
  shown = words;
  if (goes && input.value === shown) go();
}

function open(event) {
  event.preventDefault();
  if (!dialog.isConnected) document.body.append(dialog);
  dialog.showModal();
  input.select();
  asked = null;
  search();
}

let pause;
input.addEventListener("input", () => {
  goes = false;
  clearTimeout(pause);
  pause = setTimeout(search, 200);
});
dialog.addEventListener("keydown", (event) => {
  if (event.isComposing) return;
  if (event.key === "ArrowDown") choose(chosen + 1);
  else if (event.key === "ArrowUp") choose(chosen - 1);
  else if (event.key === "Enter" && input.value === shown) go();
  else if (event.key === "Enter") {
    goes = true;
    clearTimeout(pause);
    search();
  } else return;
  event.preventDefault();
});
dialog.addEventListener("close", () => { goes = false; });
dialog.addEventListener("click", (event) => {
  if (event.target === dialog) dialog.close();
});
// Keys for who does not enter anything: `/` searches, `g` and a letter go to a place.
const PLACES = { h: "/", p: "/projects", o: "/organizations", a: "/activity", t: "/templates", r: "/reference" };
let went = 0;
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || dialog.open) return;
  if (event.target.closest("input, textarea, select, [contenteditable]")) return;
  if (event.key === "/") open(event);
  else if (event.key === "g") went = event.timeStamp;
  else if (PLACES[event.key] && event.timeStamp - went < 1000) location.assign(PLACES[event.key]);
});
addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key === "k") open(event);
});
for (const link of document.querySelectorAll("[data-palette]")) link.addEventListener("click", open);
