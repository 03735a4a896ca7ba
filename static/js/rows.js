// Rows of a list that are walked through and ticked: `data-walk` names what of a row takes the focus. A change of ticks is
// told as `lab:picked`, with the ids; the list's own script says what they are for.
const rows = document.getElementById("rows");
const boxes = () => [...document.querySelectorAll("input[name=pick]:checked")];
const current = () => rows?.querySelector("tr.current");
const tell = () => document.dispatchEvent(new CustomEvent("lab:picked", { detail: boxes().map((box) => box.value) }));

function move(by) {
  const all = [...rows.querySelectorAll("tr[data-id]")];
  const next = all[Math.max(0, Math.min(all.length - 1, all.indexOf(current()) + by))];
  next?.querySelector(rows.dataset.walk).focus({ preventScroll: true });
  next?.scrollIntoView({ block: "nearest" });
}
rows?.addEventListener("focusin", (event) => {
  current()?.classList.remove("current");
  event.target.closest("tr[data-id]")?.classList.add("current");
});
document.addEventListener("change", (event) => { if (event.target.name === "pick") tell(); });
document.getElementById("bar-clear").addEventListener("click", () => {
  for (const box of boxes()) box.checked = false;
  tell();
});
document.addEventListener("lab:key", ({ detail: key }) => {
  if (!rows) return;
  if (key === "j") move(1);
  if (key === "k") move(-1);
  if (key === "x") current()?.querySelector("input")?.click();
});
