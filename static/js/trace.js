// One rollout: selecting events by click and key, unfolding payloads, finding in the list.
const list = document.getElementById("events");
const detail = document.getElementById("detail");
const trace = document.querySelector(".trace");
const all = () => [...list.querySelectorAll(".event:not(.hidden)")];
const selected = () => Number(detail.querySelector(".detail-head")?.dataset.index ?? 0);

function mark() {
  list.querySelector(".event.current")?.classList.remove("current");
  const row = document.getElementById(`e${selected()}`);
  row?.classList.add("current");
  row?.scrollIntoView({ block: "nearest" });
  const prefix = document.getElementById("same-prefix");
  if (prefix) prefix.search = `?prefix=${trace.dataset.rollout}@${Math.max(1, selected())}`;
}
function move(by, wholeSteps) {
  const rows = all();
  let at = rows.findIndex((row) => Number(row.dataset.index) === selected());
  do { at += by; } while (wholeSteps && rows[at] && !rows[at].classList.contains("opens"));
  rows[Math.max(0, Math.min(rows.length - 1, at))]?.click();
}
document.addEventListener("lab:key", ({ detail: key }) => {
  if (key === "j") move(1);
  if (key === "k") move(-1);
  if (key === "J") move(1, true);
  if (key === "K") move(-1, true);
});
list.addEventListener("click", (event) => {
  const row = event.target.closest(".event");
  if (row && !(event.metaKey || event.ctrlKey)) history.replaceState(null, "", row.getAttribute("href"));
});
document.body.addEventListener("htmx:afterSwap", (event) => {
  if (event.target === detail) { detail.scrollTop = 0; }
  mark();
});
document.addEventListener("click", async (event) => {
  const link = event.target.closest("[data-unfold]");
  if (!link) return;
  event.preventDefault();
  const answer = await fetch(link.href);
  if (answer.ok) { link.previousElementSibling.textContent = await answer.text(); link.remove(); }
});
document.querySelector("[data-search]").addEventListener("input", (event) => {
  const words = event.target.value.toLowerCase();
  for (const row of list.querySelectorAll(".event")) {
    row.classList.toggle("hidden", words !== "" && !row.textContent.toLowerCase().includes(words));
  }
});
const facts = document.getElementById("facts");
if (facts) document.getElementById("facts-shown").textContent = JSON.stringify(JSON.parse(facts.textContent), null, 2);
mark();
