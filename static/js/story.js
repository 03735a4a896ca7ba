// The candidates of a story: moving with keys, and marking the one that is looked at.
const table = document.getElementById("candidates");
const links = () => [...(table?.querySelectorAll("a[hx-get]") ?? [])];

function mark(link) {
  for (const other of links()) {
    other.removeAttribute("aria-current");
    other.closest("tr").classList.remove("current");
  }
  link.setAttribute("aria-current", "true");
  link.closest("tr").classList.add("current");
}
table?.addEventListener("click", ({ target }) => {
  const link = target.closest("a[hx-get]") ?? target.closest("tr")?.querySelector("a[hx-get]");
  if (!link) return;
  if (!target.closest("a")) link.click();
  mark(link);
});
document.addEventListener("lab:key", ({ detail: key }) => {
  const all = links();
  const at = all.findIndex((link) => link.hasAttribute("aria-current"));
  if (key === "o") document.querySelector("#selected h2 a")?.click();
  if (key !== "j" && key !== "k") return;
  const next = all[Math.max(0, Math.min(all.length - 1, at + (key === "j" ? 1 : -1)))];
  next?.focus({ preventScroll: true });
  next?.click();
  next?.closest("tr").scrollIntoView({ block: "nearest" });
});
document.body.addEventListener("lab:swapped", () => {
  const part = document.getElementById("selected");
  if (part && part.getBoundingClientRect().top > innerHeight) part.scrollIntoView();
});
