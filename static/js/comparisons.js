// The comparison: selecting rows, jumping between differences, the only-differences toggle; state in the URL.
const aligned = document.getElementById("aligned");
const detail = document.getElementById("detail");
const only = document.getElementById("only");
const head = () => detail.querySelector(".detail-head")?.dataset ?? {};
const rowAt = (number) => document.getElementById(`r${number}`);
const rows = () => [...aligned.querySelectorAll(".row")];
const pane = document.querySelector(".pane");
const narrow = matchMedia("(max-width: 1000px)");
let chosen = Number(head().row ?? 0);

function mark() {
  const before = aligned.querySelector(".row.current");
  before?.classList.remove("current"); before?.removeAttribute("aria-current");
  if (before) before.tabIndex = -1;
  (rowAt(chosen) ?? aligned.querySelector(".row") ?? {}).tabIndex = 0;
  rowAt(chosen)?.classList.add("current"); rowAt(chosen)?.setAttribute("aria-current", "true");
  if (narrow.matches && rowAt(chosen)) rowAt(chosen).after(detail);
  else if (detail.parentElement !== pane) pane.append(detail);
  document.dispatchEvent(new CustomEvent("lab:selected", { detail: chosen }));
}
function remember(name, value) {
  const url = new URL(location.href);
  if (value === "") url.searchParams.delete(name); else url.searchParams.set(name, value);
  history.replaceState(null, "", url);
}
function choose(row, block = "nearest") {
  row.click();
  row.focus({ preventScroll: true });
  row.scrollIntoView({ block });
}
async function load(number) {
  const query = new URLSearchParams(location.search);
  query.set("row", number);
  pane.append(detail);
  await htmx.ajax("GET", `${pane.dataset.rows}?${query}`, { target: aligned, swap: "innerHTML" });
}
async function open(number) {
  if (!rowAt(number)) { await load(Math.max(0, number - 20)); }
  const row = rowAt(number);
  if (row) choose(row, row.getBoundingClientRect().top > innerHeight || row.getBoundingClientRect().top < 0 ? "center" : "nearest");
}
const queued = [];
let jumping = false;
// a row says where the next difference is only once its detail is there, and a jump may replace the list: what is asked
// for meanwhile waits, and nothing is let go
const busy = () => jumping || Number(head().row) !== chosen;
async function act(way) {
  if (busy()) { queued.push(way); return; }
  if (way === "earlier" || way === "later") { aligned.querySelector(`.${way}`)?.click(); next(); return; }
  if (!head()[way]) { while (queued[0] === way) queued.shift(); next(); return; }
  jumping = true;
  try { await open(head()[way]); } finally { jumping = false; }
  next();
}
function next() { if (queued.length && !busy()) act(queued.shift()); }
// a request that failed brings nothing that what waits could act on; the pane still shows the row before
function fail({ detail: { requestConfig: { elt } } }) {
  if (elt.dataset.row !== undefined && Number(elt.dataset.row) !== chosen) return; // a later choice is on its way
  queued.length = 0;
  if (head().row === undefined) return;
  chosen = Number(head().row);
  remember("row", head().row);
  mark();
}
for (const name of ["htmx:sendError", "htmx:responseError", "htmx:timeout"]) document.body.addEventListener(name, fail);
aligned.addEventListener("click", (event) => {
  const more = event.target.closest(".more");
  if (!more || !busy()) return;
  event.stopPropagation();
  queued.push(more.classList.contains("earlier") ? "earlier" : "later");
}, true);
function step(by) {
  const all = rows();
  const next = all[all.indexOf(rowAt(chosen)) + by];
  if (next) { choose(next); return; }
  const more = aligned.querySelector(by > 0 ? ".later" : ".earlier");
  if (!more) return;
  aligned.addEventListener("htmx:afterSettle", () => step(by), { once: true });
  more.click();
}
aligned.addEventListener("click", (event) => {
  const row = event.target.closest(".row");
  if (!row || event.metaKey || event.ctrlKey) return;
  chosen = Number(row.dataset.row);
  remember("row", row.dataset.row);
  mark();
});
document.addEventListener("lab:pick", (event) => open(event.detail));
document.addEventListener("lab:key", ({ detail: key }) => {
  if (key === "n") act("after");
  if (key === "p") act("before");
  if (key === "j") step(1);
  if (key === "k") step(-1);
  if (key === "s") document.getElementById("swap").click();
  if (key === "d") only.click();
  if (key === "r") document.querySelector("a[data-rerun]")?.click();
});
only.addEventListener("change", async () => {
  remember("differences", only.checked ? "1" : "");
  await load(only.checked ? 0 : Math.max(0, chosen - 40));
  mark();
});
document.body.addEventListener("htmx:beforeSwap", (event) => {
  const asked = event.detail.requestConfig.elt.dataset.row;
  if (asked !== undefined && Number(asked) !== chosen) event.detail.shouldSwap = false; // a later choice overtook it
});
document.body.addEventListener("lab:swapped", (event) => {
  if (event.detail !== detail) { mark(); return; }
  detail.scrollTop = 0;
  say();
  next();
});
function say() { document.getElementById("place").textContent = head().place ?? ""; }
narrow.addEventListener("change", mark);
mark(); say();
rowAt(chosen)?.getBoundingClientRect().bottom > innerHeight && new URL(location.href).searchParams.has("row") && rowAt(chosen).scrollIntoView({ block: "center" });
