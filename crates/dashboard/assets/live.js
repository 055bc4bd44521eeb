// Shows what a server sends of an element with `data-live`. See live.rs.
for (const part of document.querySelectorAll("[data-live]")) {
  // A log shows its end.
  for (const log of [part, ...part.children]) if (log.matches(".log")) log.scrollTop = log.scrollHeight;
  const source = new EventSource(part.dataset.live);
  source.addEventListener("append", ({ data }) => {
    const follows = part.scrollHeight - part.scrollTop - part.clientHeight < 40;
    part.insertAdjacentHTML("beforeend", data);
    if (follows) part.scrollTop = part.scrollHeight;
  });
  source.addEventListener("replace", ({ data }) => {
    const fresh = document.createElement("template");
    fresh.innerHTML = data;
    const [now, next] = [[...part.children], [...fresh.content.children]];
    // What a person is about to enter or to press stays, and so does what is the same.
    if (now.length !== next.length) {
      if (!part.contains(document.activeElement)) part.replaceChildren(fresh.content);
      return;
    }
    now.forEach((child, i) => {
      if (child.isEqualNode(next[i]) || (child.contains(document.activeElement) && child !== document.activeElement)) return;
      const isFocused = child === document.activeElement;
      const [top, follows] = [child.scrollTop, child.scrollHeight - child.scrollTop - child.clientHeight < 40];
      child.replaceWith(next[i]);
      next[i].scrollTop = follows ? next[i].scrollHeight : top;
      if (isFocused) next[i].focus({ preventScroll: true });
    });
  });
  source.addEventListener("end", () => source.close());
  addEventListener("pagehide", () => source.close());
}
