// Small helps. Every page works without them.

// A button with `data-copy` copies its text.
for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(button.dataset.copy);
    const label = button.textContent;
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = label; }, 1500);
  });
}

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
