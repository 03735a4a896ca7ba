// Draws every [data-figure] with the page's colours and fonts; `var:name` in a figure is a token of base.css.
const token = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

function themed(value) {
  if (typeof value === "string") return value.startsWith("var:") ? token(value.slice(4)) : value;
  if (Array.isArray(value)) return value.map(themed);
  if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, themed(item)]));
  return value;
}
const boxed = (starts, row) => {
  const at = starts.findLastIndex((start) => start <= row);
  return { type: "rect", x0: at - 0.5, x1: at + 0.5, y0: -0.08, y1: 2.23, line: { color: token("accent"), width: 2 }, fillcolor: "rgba(0,0,0,0)" };
};
let selected = null;
function draw(place) {
  const figure = themed(JSON.parse(document.getElementById(place.dataset.figure).textContent));
  const layout = {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: token("sans"), size: 12, color: token("soft") },
    hoverlabel: { bgcolor: token("raised"), bordercolor: token("line"), font: { family: token("mono"), color: token("ink") } },
    ...figure.layout,
  };
  if (selected !== null && layout.meta?.starts) layout.shapes = [boxed(layout.meta.starts, selected)];
  window.Plotly.react(place, figure.data, layout, { displayModeBar: false, responsive: true, doubleClick: "reset" });
  if (!place.dataset.drawn) {
    place.on("plotly_click", (event) => {
      const row = event.points[0]?.customdata;
      if (row !== undefined) place.dispatchEvent(new CustomEvent("lab:pick", { detail: row, bubbles: true }));
    });
    place.dataset.drawn = "1";
  }
}
function drawAll() { for (const place of document.querySelectorAll("[data-figure]")) draw(place); }
let ready = false;
addEventListener("DOMContentLoaded", () => { ready = true; drawAll(); });
document.addEventListener("lab:selected", ({ detail }) => {
  if (detail === selected) return;
  selected = detail;
  if (ready) drawAll();
});
document.addEventListener("lab:theme", drawAll);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
