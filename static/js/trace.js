// One rollout: selecting events by click and key, unfolding payloads, finding in the list.
const steps = document.getElementById("steps");
const list = document.getElementById("events");
const detail = document.getElementById("detail");
const trace = document.querySelector(".trace");
const all = () => [...list.querySelectorAll(".event:not(.hidden)")];
let chosen = Number(detail.querySelector(".detail-head").dataset.index);

function mark() {
  const before = list.querySelector(".event.current");
  before?.classList.remove("current"); before?.removeAttribute("aria-current");
  if (before) before.tabIndex = -1;
  const row = document.getElementById(`e${chosen}`);
  row?.classList.add("current"); row?.setAttribute("aria-current", "true");
  (row ?? list.querySelector(".event") ?? {}).tabIndex = 0;
  document.getElementById("same-prefix").search = `?prefix=${trace.dataset.rollout}@${Math.max(1, chosen)}`;
  return row;
}
function reveal(row) {
  // inside the list only, so that the page stays where it is
  const [place, frame] = [row.getBoundingClientRect(), steps.getBoundingClientRect()];
  const [top, bottom] = [Math.max(frame.top, 40) + 60, Math.min(frame.bottom, innerHeight) - 60];
  if (place.top < top) steps.scrollTop -= top - place.top;
  else if (place.bottom > bottom) steps.scrollTop += place.bottom - bottom;
}
function choose(row) {
  row.click();
  row.focus({ preventScroll: true });
  reveal(row);
}
function move(by, wholeSteps) {
  const rows = all();
  let at = rows.findIndex((row) => Number(row.dataset.index) === chosen);
  do { at += by; } while (wholeSteps && rows[at] && !rows[at].classList.contains("opens"));
  if (rows[at]) { choose(rows[at]); return; }
  const more = list.querySelector(by > 0 ? ".later" : ".earlier");
  if (!more) { if (rows.length) choose(rows.at(by > 0 ? -1 : 0)); return; }
  list.addEventListener("htmx:afterSettle", () => move(by, wholeSteps), { once: true });
  more.click();
}
document.addEventListener("lab:key", ({ detail: key }) => {
  if (key === "j") move(1);
  if (key === "k") move(-1);
  if (key === "J") move(1, true);
  if (key === "K") move(-1, true);
  if (key === "r") document.getElementById("rerun-this")?.click();
});
list.addEventListener("click", (event) => {
  const row = event.target.closest(".event");
  if (!row || event.metaKey || event.ctrlKey) return;
  history.replaceState(null, "", row.getAttribute("href"));
  chosen = Number(row.dataset.index);
  mark();
});
document.body.addEventListener("htmx:beforeSwap", (event) => {
  const asked = event.detail.requestConfig.elt.dataset.index;
  if (asked !== undefined && Number(asked) !== chosen) event.detail.shouldSwap = false; // a later choice overtook it
});
document.body.addEventListener("lab:swapped", (event) => {
  if (event.detail !== detail) { mark(); return; }
  detail.scrollTop = 0;
  const top = trace.getBoundingClientRect().top - 48;
  if (top < -8 && innerWidth > 860) scrollBy(0, Math.max(top, -scrollY));
  document.getElementById("said").textContent = detail.querySelector("h2").textContent;
});
document.addEventListener("click", async (event) => {
  const link = event.target.closest("[data-unfold]");
  if (!link) return;
  event.preventDefault();
  const answer = await fetch(link.href);
  if (!answer.ok) { link.textContent = "could not be read"; return; }
  const payload = link.previousElementSibling;
  payload.textContent = await answer.text();
  payload.tabIndex = 0;
  payload.focus({ preventScroll: true });
  link.remove();
});
document.querySelector("[data-search]").addEventListener("input", (event) => {
  const words = event.target.value.toLowerCase();
  for (const row of list.querySelectorAll(".event")) {
    row.classList.toggle("hidden", words !== "" && !row.textContent.toLowerCase().includes(words));
  }
});
const facts = document.getElementById("facts");
if (facts) document.getElementById("facts-shown").textContent = JSON.stringify(JSON.parse(facts.textContent), null, 2);
const first = mark();
if (first) reveal(first);
