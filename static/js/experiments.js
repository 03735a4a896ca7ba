// The list of experiments: keys, selecting, and the bar that leads to comparison and token efficiency.
const bar = document.getElementById("bar");
const MOST = 8;
const links = { compare: document.getElementById("bar-compare"), efficiency: document.getElementById("bar-efficiency") };

function offer(link, able, chosen) {
  link.search = `?${chosen.map((id) => `e=${id}`).join("&")}`;
  link.hidden = !able;
}
function show(chosen) {
  bar.hidden = !chosen.length;
  const several = chosen.length >= 2 && chosen.length <= MOST;
  offer(links.compare, several, chosen);
  offer(links.efficiency, chosen.length <= MOST, chosen);
  const said = chosen.length > MOST ? `${chosen.length} are ticked; at most ${MOST} are set side by side.` :
    chosen.length === 1 ? "1 ticked; tick another to compare." : `${chosen.length} ticked`;
  document.getElementById("bar-text").textContent = chosen.length ? said : "";
}
const keys = { c: links.compare, f: links.efficiency };
document.addEventListener("lab:key", ({ detail: key }) => { if (!bar.hidden && keys[key] && !keys[key].hidden) keys[key].click(); });
document.addEventListener("lab:picked", ({ detail: chosen }) => show(chosen));
addEventListener("pageshow", () => show([...document.querySelectorAll("input[name=pick]:checked")].map((box) => box.value)));
