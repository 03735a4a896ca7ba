// What holds for every part that htmx puts into a page: it is HTML, the page hears of it once, and no press on it is lost.
document.body.addEventListener("htmx:beforeOnLoad", (event) => {
  // htmx swaps whatever comes, as markup: what doesn't say that it is HTML is let go before anything of it is heeded
  if (!/^text\/html(;|$)/i.test(event.detail.xhr.getResponseHeader("Content-Type") ?? "")) event.preventDefault();
});

// htmx tells of a swap once for each element that it brought: hundreds of times for a window of rows
let swapped = null;
document.body.addEventListener("htmx:beforeSwap", () => { swapped = null; });
document.body.addEventListener("htmx:afterSwap", (event) => { swapped ??= event.detail.target ?? event.target; });
document.body.addEventListener("htmx:afterRequest", () => {
  const target = swapped;
  swapped = null;
  if (target) document.body.dispatchEvent(new CustomEvent("lab:swapped", { detail: target }));
});

// An answer may replace what is being pressed; the browser then makes no click. What took its place is clicked instead.
let pressed = null;
const pressable = (target) => target.closest?.("a[href], button, summary, label, input");
const marks = ["id", "href", "formaction", "data-key"];
function successor(gone) {
  if (gone.id) return document.getElementById(gone.id);
  const alike = (each) => each.textContent === gone.textContent && marks.every((name) => each.getAttribute(name) === gone.getAttribute(name));
  const found = [...document.querySelectorAll(gone.localName)].filter(alike);
  return found.length === 1 ? found[0] : null;
}
function release() {
  const gone = pressed;
  pressed = null;
  if (gone && !gone.isConnected) successor(gone)?.click();
}
document.addEventListener("pointerdown", (event) => { pressed = event.button === 0 ? pressable(event.target) : null; });
document.addEventListener("pointerup", (event) => {
  const over = pressed && document.elementFromPoint(event.clientX, event.clientY);
  if (pressed && !pressed.isConnected && !over?.contains(successor(pressed)) && !successor(pressed)?.contains(over)) pressed = null;
  release();
});
document.addEventListener("pointercancel", () => { pressed = null; });
document.addEventListener("keydown", (event) => { if (event.key === " " && !event.repeat) pressed = event.target.closest?.("button, summary"); });
document.addEventListener("keyup", (event) => { if (event.key === " ") release(); });
