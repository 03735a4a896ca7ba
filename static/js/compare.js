// The comparison: selecting rows, jumping between differences, the only-differences toggle; state in the URL.
const aligned = document.getElementById("aligned");
const detail = document.getElementById("detail");
const rows = () => [...aligned.querySelectorAll(".row")];
const selected = () => Number(detail.querySelector(".detail-head")?.dataset.row ?? 0);
const differs = (row) => !row.classList.contains("equal") && !row.classList.contains("scrubbed");

function mark(scroll) {
  aligned.querySelector(".row.current")?.classList.remove("current");
  const row = document.getElementById(`r${selected()}`);
  row?.classList.add("current");
  if (scroll) row?.scrollIntoView({ block: "nearest" });
}
function remember(name, value) {
  const url = new URL(location.href);
  if (value === "") url.searchParams.delete(name); else url.searchParams.set(name, value);
  history.replaceState(null, "", url);
}
function step(by, wanted) {
  const all = rows();
  const at = all.findIndex((row) => Number(row.dataset.row) === selected());
  for (let next = at + by; next >= 0 && next < all.length; next += by) {
    if (!wanted || wanted(all[next])) { all[next].click(); return; }
  }
  const more = aligned.querySelector(by > 0 ? ".more:last-child" : ".more:first-child");
  if (more) { more.addEventListener("htmx:afterOnLoad", () => setTimeout(() => step(by, wanted)), { once: true }); more.click(); }
}
function open(number) {
  const row = document.getElementById(`r${number}`);
  if (row) { row.click(); row.scrollIntoView({ block: "center" }); return; }
  const url = new URL(location.href);
  url.searchParams.set("row", number);
  location.href = url;
}
aligned.addEventListener("click", (event) => {
  const row = event.target.closest(".row");
  if (row && !(event.metaKey || event.ctrlKey)) remember("row", row.dataset.row);
});
document.addEventListener("lab:pick", (event) => open(event.detail));
document.addEventListener("lab:key", ({ detail: key }) => {
  if (key === "n") step(1, differs);
  if (key === "p") step(-1, differs);
  if (key === "j") step(1);
  if (key === "k") step(-1);
  if (key === "s") document.getElementById("swap").click();
  if (key === "d") document.getElementById("only").click();
});
document.getElementById("only").addEventListener("change", (event) => {
  const url = new URL(location.href);
  if (event.target.checked) url.searchParams.set("differences", "1"); else url.searchParams.delete("differences");
  location.href = url;
});
document.body.addEventListener("htmx:afterSwap", (event) => {
  if (event.target === detail) detail.scrollTop = 0;
  mark(event.target === detail);
});
mark(false);
