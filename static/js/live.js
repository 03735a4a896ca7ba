// Parts that refresh themselves: swapped only where something changed, with the selection and the focus kept.
const said = new WeakMap();
document.body.addEventListener("htmx:beforeSwap", (event) => {
  const { target, xhr } = event.detail;
  const selecting = !getSelection().isCollapsed && target.contains(getSelection().anchorNode);
  if (xhr.status === 200 && (said.get(target) === xhr.responseText || selecting)) { event.detail.shouldSwap = false; return; }
  said.set(target, xhr.responseText);
});
document.addEventListener("lab:key", ({ detail: key }) => {
  if (key === "r") document.querySelector("a[data-rerun]")?.click();
});
