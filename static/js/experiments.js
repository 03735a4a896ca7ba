// The list of experiments: keys, selecting, and the bar that leads to comparison and token efficiency.
const bar = document.getElementById("bar");
const rows = document.getElementById("rows");
const MOST = 8;
const picked = () => [...document.querySelectorAll("input[name=pick]:checked")].map((box) => box.value);
const links = { compare: document.getElementById("bar-compare"), efficiency: document.getElementById("bar-efficiency") };

function offer(link, able, chosen) {
  link.search = `?${chosen.map((id) => `e=${id}`).join("&")}`;
  link.hidden = !able;
}
function show() {
  const chosen = picked();
  bar.hidden = !chosen.length;
  const several = chosen.length >= 2 && chosen.length <= MOST;
  offer(links.compare, several, chosen);
  offer(links.efficiency, chosen.length <= MOST, chosen);
  const said = chosen.length > MOST ? `${chosen.length} are ticked; at most ${MOST} are set side by side.` :
    chosen.length === 1 ? "1 ticked; tick another to compare." : `${chosen.length} ticked`;
  document.getElementById("bar-text").textContent = chosen.length ? said : "";
}
function move(by) {
  const all = [...rows.querySelectorAll("tr[data-id]")];
  const at = all.indexOf(rows.querySelector("tr.current"));
  const next = all[Math.max(0, Math.min(all.length - 1, at + by))];
  next?.querySelector("td.name a").focus({ preventScroll: true });
  next?.scrollIntoView({ block: "nearest" });
}
rows?.addEventListener("focusin", (event) => {
  rows.querySelector("tr.current")?.classList.remove("current");
  event.target.closest("tr[data-id]")?.classList.add("current");
});
document.addEventListener("change", (event) => { if (event.target.name === "pick") show(); });
document.getElementById("bar-clear").addEventListener("click", () => {
  for (const box of document.querySelectorAll("input[name=pick]:checked")) box.checked = false;
  show();
});
document.addEventListener("lab:key", ({ detail: key }) => {
  if (!rows) return;
  if (key === "j") move(1);
  if (key === "k") move(-1);
  if (key === "x") rows.querySelector("tr.current input")?.click();
  if (key === "c" && !bar.hidden && !links.compare.hidden) links.compare.click();
  if (key === "f" && !bar.hidden && !links.efficiency.hidden) links.efficiency.click();
});
addEventListener("pageshow", show);
