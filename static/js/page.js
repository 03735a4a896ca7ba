// What every page does: keys, theme, copying, local times.
const typing = (target) => target.closest("input, select, textarea, [contenteditable]");
const keys = document.getElementById("keys");
const places = { p: "projects", r: "rollouts", m: "requests", q: "jobs" };
let going = false;

function search() {
  const box = document.querySelector("[data-search]");
  if (box) { box.focus(); box.select?.(); } else location.href = "/rollouts/#search";
}
function press(key) {
  if (key === "?") keys.open ? keys.close() : keys.showModal();
  if (key === "/") search();
}
function go(key) {
  const target = { p: "/", r: "/rollouts/", m: "/requests/", q: "/jobs/" }[key];
  if (target && places[key]) location.href = target;
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (typing(event.target)) { if (event.key === "Escape") event.target.blur(); return; }
  if (going) { going = false; go(event.key); return; }
  if (event.key === "g") { going = true; setTimeout(() => { going = false; }, 1200); return; }
  if (event.key === "/" || event.key === "?") { event.preventDefault(); press(event.key); return; }
  document.dispatchEvent(new CustomEvent("lab:key", { detail: event.key }));
});
document.addEventListener("click", async (event) => {
  const hint = event.target.closest("[data-key]");
  if (hint) press(hint.dataset.key);
  const copy = event.target.closest("[data-copy]");
  if (copy) {
    await navigator.clipboard?.writeText(copy.dataset.copy === "" ? location.href : copy.dataset.copy);
    copy.classList.add("copied");
    setTimeout(() => copy.classList.remove("copied"), 900);
  }
  const remote = event.target.closest("[data-copy-from]");
  if (remote) {
    const answer = await fetch(remote.dataset.copyFrom);
    if (answer.ok) await navigator.clipboard?.writeText(await answer.text());
    remote.textContent = answer.ok ? "copied" : "could not be read";
  }
  const menu = document.querySelector("details.menu[open]");
  if (menu && !menu.contains(event.target)) menu.open = false;
});
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
document.body.addEventListener("htmx:afterSwap", (event) => localTimes(event.target));
if (location.hash === "#search") search();
