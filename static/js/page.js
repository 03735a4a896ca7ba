// What every page does: keys, theme, copying, menus, local times, and keeping one's place over a reload.
const typing = (target) => target.closest("input:not([type=checkbox]), select, textarea, [contenteditable]");
const keys = document.getElementById("keys");
const places = { p: "/", e: "/experiments/", r: "/rollouts/", m: "/requests/", i: "/import/", q: "/jobs/", n: "/engines/", u: "/reruns/", c: "/regressions/" };
let going = false;

function search() {
  const box = document.querySelector("[data-search]");
  if (box) { box.focus(); box.select?.(); } else location.href = "/rollouts/#search";
}
function press(key) {
  if (key === "?") { if (keys.open) keys.close(); else keys.showModal(); return; }
  if (key === "/") { search(); return; }
  document.dispatchEvent(new CustomEvent("lab:key", { detail: key }));
}
function escape(target) {
  const menu = target.closest("details.menu[open]") ?? document.querySelector("details.menu[open]");
  if (menu) { menu.open = false; menu.querySelector("summary").focus(); } else if (typing(target)) target.blur();
}
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") { escape(event.target); return; }
  if (typing(event.target) || (keys.open && event.key !== "?")) return;
  if (going) { going = false; if (places[event.key]) location.href = places[event.key]; return; }
  if (event.key === "g") { going = true; setTimeout(() => { going = false; }, 1200); return; }
  if (event.key === "/" || event.key === "?") event.preventDefault();
  if (event.key === "y") document.querySelector("main [data-copy='']")?.click();
  press(event.key);
});

async function copy(button, text) {
  const said = button.textContent;
  try { await navigator.clipboard.writeText(text); button.classList.add("copied"); } catch { button.textContent = "could not copy"; }
  setTimeout(() => { button.classList.remove("copied"); button.textContent = said; }, 900);
}
document.addEventListener("click", async (event) => {
  const hint = event.target.closest("[data-key]");
  if (hint) press(hint.dataset.key);
  const button = event.target.closest("[data-copy]");
  if (button) copy(button, button.dataset.copy === "" ? location.href : button.dataset.copy);
  const remote = event.target.closest("[data-copy-from]");
  if (remote) {
    const answer = await fetch(remote.dataset.copyFrom);
    copy(remote, answer.ok ? await answer.text() : "");
  }
  for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false;
});
document.addEventListener("toggle", (event) => {
  if (!event.target.matches("details.menu") || !event.target.open) return;
  event.target.classList.remove("flip");
  const box = event.target.querySelector(":scope > div").getBoundingClientRect();
  event.target.classList.toggle("flip", box.right > document.documentElement.clientWidth);
}, true);

document.getElementById("theme")?.addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("theme", root.dataset.theme);
  document.dispatchEvent(new Event("lab:theme"));
});

function localTimes(root) {
  for (const time of root.querySelectorAll("time[datetime]:not([data-local])")) {
    const at = new Date(time.dateTime);
    const pad = (value) => String(value).padStart(2, "0");
    time.textContent = `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())} ${pad(at.getHours())}:${pad(at.getMinutes())}`;
    time.dataset.local = "";
  }
}
localTimes(document);
document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
document.body.addEventListener("lab:swapped", () => localTimes(document));
if (location.hash === "#search") search();

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-keep]");
  if (!link) return;
  const place = { path: location.pathname, y: scrollY, id: link.id, menu: link.closest("details.menu")?.id };
  sessionStorage.setItem("place", JSON.stringify(place));
});
const place = JSON.parse(sessionStorage.getItem("place") ?? "null");
sessionStorage.removeItem("place");
if (place?.path === location.pathname) {
  if (place.menu) document.getElementById(place.menu).open = true;
  document.getElementById(place.id)?.focus({ preventScroll: true });
  scrollTo(0, place.y);
}
