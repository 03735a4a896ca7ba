// Exports of a figure as SVG or PNG, and the rollouts or the experiment behind a point of it.
const SIZE = { width: 960, scale: 2 };

async function save(button) {
  const box = button.closest(".figure");
  const place = box.querySelector("[data-figure]");
  const background = getComputedStyle(document.documentElement).getPropertyValue("--bg").trim();
  const title = { text: box.querySelector("h2").textContent, x: 0, xref: "paper", y: 0.98, yref: "container", font: { size: 15 } };
  const margin = { ...place.layout.margin, t: 64 };
  const layout = { ...place.layout, paper_bgcolor: background, plot_bgcolor: background, title, margin };
  const height = (place.layout.height || 300) + 48;
  const format = button.dataset.export;
  const data = await window.Plotly.toImage(
    { data: place.data, layout: { ...layout, autosize: false, width: SIZE.width, height } },
    { format, width: SIZE.width, height, scale: format === "png" ? SIZE.scale : 1 },
  );
  const link = document.createElement("a");
  link.href = data;
  link.download = `${box.id}.${format}`;
  link.click();
}
document.addEventListener("click", async ({ target }) => {
  const button = target.closest("[data-export]");
  if (!button || button.disabled) return;
  button.disabled = true;
  try { await save(button); } finally { button.disabled = false; }
});
document.addEventListener("lab:pick", ({ target, detail }) => {
  const { rollouts: list, experiments } = target.dataset;
  if (!list || typeof detail !== "string") return;
  const [sign, id] = [detail[0], detail.slice(1)];
  location.href = sign === "#" ? `${list}${id}/` : sign === "@" ? `${experiments}${id}/` : `${list}?${detail}`;
});
