// The command palette: Ctrl+K or the Search link opens it, arrows choose, Enter goes. Without this
// script, the link leads to the same search as a page.
const dialog = document.createElement("dialog");
dialog.className = "palette";
dialog.setAttribute("aria-label", "Search");
dialog.innerHTML = `<input type="search" aria-label="Pages, projects and functions" autocomplete="off"><div aria-live="polite"></div>`;
const [input, results] = dialog.children;
const links = () => [...results.querySelectorAll("a")];
let newest = 0;

async function search() {
  const mine = ++newest;
  const answer = await fetch(`/search/results?q=${encodeURIComponent(input.value)}`);
  if (answer.redirected || !answer.ok) return location.assign("/search");
  const html = await answer.text();
  if (mine === newest) results.innerHTML = html;
}

function open(event) {
  event.preventDefault();
  if (!dialog.isConnected) document.body.append(dialog);
  dialog.showModal();
  input.select();
  search();
}

let pause;
input.addEventListener("input", () => {
  clearTimeout(pause);
  pause = setTimeout(search, 200);
});
dialog.addEventListener("keydown", (event) => {
  const all = links();
  const at = all.indexOf(document.activeElement);
  if (event.key === "ArrowDown") (all[at + 1] ?? all[0])?.focus();
  else if (event.key === "ArrowUp") (at > 0 ? all[at - 1] : input).focus();
  else if (event.key === "Enter" && at < 0) all[0]?.click();
  else return;
  event.preventDefault();
});
dialog.addEventListener("click", (event) => {
  if (event.target === dialog) dialog.close();
});
addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key === "k") open(event);
});
document.querySelector("[data-palette]")?.addEventListener("click", open);
