// The rollouts list: selecting, the compare bar, the pinned baseline, keys.
const bar = document.getElementById("bar");
const rows = document.getElementById("rows");
const picked = () => [...document.querySelectorAll("input[name=pick]:checked")].map((box) => box.value);
const named = (id) => rows?.querySelector(`tr[data-id="${id}"]`)?.dataset.name ?? `rollout ${id}`;
let current = -1;

function baseline() { return localStorage.getItem("baseline"); }
function mark() {
  for (const row of rows?.querySelectorAll("tr.baseline") ?? []) row.classList.remove("baseline");
  rows?.querySelector(`tr[data-id="${baseline()}"]`)?.classList.add("baseline");
}
function pair() {
  const chosen = picked();
  if (chosen.length === 1 && baseline() && baseline() !== chosen[0]) return [baseline(), chosen[0]];
  return chosen.slice(0, 2);
}
function show() {
  const chosen = picked();
  bar.hidden = chosen.length === 0;
  const [a, b] = pair();
  bar.elements.a.value = a ?? ""; bar.elements.b.value = b ?? "";
  const go = document.getElementById("bar-go");
  go.disabled = !b || chosen.length > 2;
  go.textContent = `Compare (${chosen.length})`;
  const text = chosen.length > 2 ? "Two are compared at a time; untick the others." :
    b ? `${named(a)} with ${named(b)}` : "Tick a second rollout, or pin this one as baseline.";
  document.getElementById("bar-text").textContent = text;
  document.getElementById("bar-pin").hidden = chosen.length !== 1;
}
function move(by) {
  const all = [...rows.querySelectorAll("tr[data-id]")];
  all[current]?.classList.remove("current");
  current = Math.max(0, Math.min(all.length - 1, current + by));
  all[current]?.classList.add("current");
  all[current]?.scrollIntoView({ block: "nearest" });
}
document.addEventListener("change", (event) => {
  if (event.target.name === "pick") show();
  if (event.target.matches("form[role=search] select")) event.target.form.requestSubmit();
});
document.addEventListener("submit", (event) => {
  if (event.target.matches("form[role=search]")) {
    for (const field of event.target.elements) if (field.name && !field.value) field.disabled = true;
    if (event.target.elements.sort?.value === "newest") event.target.elements.sort.disabled = true;
  }
  if (event.target.id === "save-view") {
    const name = prompt("Name of this view");
    if (!name) event.preventDefault(); else event.target.elements.name.value = name;
  }
});
document.getElementById("bar-pin")?.addEventListener("click", () => { localStorage.setItem("baseline", picked()[0]); mark(); show(); });
document.getElementById("bar-clear")?.addEventListener("click", () => {
  for (const box of document.querySelectorAll("input[name=pick]:checked")) box.checked = false;
  show();
});
document.addEventListener("lab:key", ({ detail: key }) => {
  if (!rows) return;
  const row = rows.querySelectorAll("tr[data-id]")[current];
  if (key === "j") move(1);
  if (key === "k") move(-1);
  if (key === "x" && row) { row.querySelector("input").click(); }
  if (key === "c" && !document.getElementById("bar-go").disabled) bar.requestSubmit();
  if (key === "Enter" && row) location.href = row.querySelector("td.case a").href;
});
document.addEventListener("click", (event) => { if (event.target.matches("[data-facet]")) event.preventDefault(); });
document.body.addEventListener("htmx:afterSwap", mark);
mark(); if (bar) show();
