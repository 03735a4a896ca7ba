// The rollouts list: selecting, the compare bar, the pinned baseline, the filter menu, keys.
const bar = document.getElementById("bar");
const rows = document.getElementById("rows");
const form = document.querySelector("form[role=search]");
const pinned = document.getElementById("pinned");
const picked = () => [...document.querySelectorAll("input[name=pick]:checked")].map((box) => box.value);
const rowOf = (id) => rows?.querySelector(`tr[data-id="${id}"]`);
const named = (id) => rowOf(id)?.dataset.name ?? (baseline()?.id === id ? baseline()?.name : null) ?? `rollout ${id}`;

function baseline() {
  try { return JSON.parse(localStorage.getItem("baseline")); } catch { return null; }
}
function pin(id) {
  if (id) localStorage.setItem("baseline", JSON.stringify({ id, name: named(id) })); else localStorage.removeItem("baseline");
  mark(); show();
}
function mark() {
  for (const row of rows?.querySelectorAll("tr.baseline") ?? []) row.classList.remove("baseline");
  const chosen = baseline();
  if (chosen) rowOf(chosen.id)?.classList.add("baseline");
  pinned.hidden = !chosen;
  const link = pinned.querySelector("a");
  link.href = chosen ? `/rollouts/${chosen.id}/` : "";
  link.textContent = chosen?.name ?? "";
}
function pair(chosen) {
  const first = baseline()?.id;
  return chosen.length === 1 && first && first !== chosen[0] ? [first, chosen[0]] : chosen.slice(0, 2);
}
function show() {
  const chosen = picked();
  bar.hidden = chosen.length === 0;
  const [a, b] = pair(chosen);
  bar.elements.a.value = a ?? ""; bar.elements.b.value = b ?? "";
  const go = document.getElementById("bar-go");
  go.disabled = !b || chosen.length > 2;
  const text = chosen.length > 2 ? `${chosen.length} are ticked; two are compared at a time. Untick the others.` :
    b ? `${chosen.length === 1 ? "baseline " : ""}${named(a)} with ${named(b)}` : `${named(a)}. Tick a second rollout, or pin this one as baseline.`;
  document.getElementById("bar-text").textContent = chosen.length ? text : "";
  const again = document.getElementById("bar-rerun");
  if (again) { again.search = `?ids=${chosen.join(",")}`; again.textContent = `Rerun (${chosen.length})`; }
  document.getElementById("bar-pin").hidden = chosen.length !== 1 || chosen[0] === baseline()?.id;
}
function rerun() {
  if (!bar.hidden) { document.getElementById("bar-rerun")?.click(); return; }
  const id = rows.querySelector("tr.current")?.dataset.id;
  if (id && document.getElementById("bar-rerun")) location.href = `/rollouts/${id}/rerun/`;
}
document.addEventListener("change", (event) => {
  if (event.target.matches("form[role=search] select")) form.requestSubmit();
});
form.addEventListener("formdata", ({ formData }) => {
  for (const [name, value] of [...formData]) if (!value || `${name}=${value}` === "sort=newest") formData.delete(name);
});
form.elements.q.addEventListener("keydown", (event) => {
  if (event.key === "Backspace" && !event.target.value) [...form.querySelectorAll(".chip .x")].at(-1)?.click();
});
document.addEventListener("submit", (event) => {
  if (event.target.id !== "save-view") return;
  const name = prompt("Name of this view");
  if (!name) event.preventDefault(); else event.target.elements.name.value = name;
});
document.getElementById("bar-pin").addEventListener("click", () => pin(picked()[0]));
pinned.querySelector("button").addEventListener("click", () => pin(""));
document.addEventListener("lab:picked", show);
document.addEventListener("lab:key", ({ detail: key }) => {
  if (!rows) return;
  if (key === "r") rerun();
  if (key === "c" && !bar.hidden && !document.getElementById("bar-go").disabled) bar.requestSubmit();
});
document.body.addEventListener("htmx:afterSwap", (event) => {
  if (event.target.id !== "facet") return;
  const name = event.detail.requestConfig.elt.dataset.facet;
  for (const button of document.querySelectorAll("[data-facet]")) button.setAttribute("aria-pressed", button.dataset.facet === name);
});
document.body.addEventListener("lab:swapped", ({ detail: target }) => {
  mark();
  if (target.id === "facet") target.querySelector("input, a")?.focus();
});
addEventListener("pageshow", (event) => { if (event.persisted) form.reset(); show(); });
mark(); show();
