// Uploads one file after the other with progress, and lists what became of each.
const form = document.getElementById("upload");
const drop = document.getElementById("drop");
const progress = document.getElementById("progress");
const table = document.getElementById("results");

function send(file) {
  return new Promise((resolve) => {
    const body = new FormData();
    body.append("csrfmiddlewaretoken", form.elements.csrfmiddlewaretoken.value);
    body.append("project", form.elements.project.value);
    body.append("files", file);
    const request = new XMLHttpRequest();
    request.open("POST", form.action);
    request.setRequestHeader("Accept", "application/json");
    request.responseType = "json";
    request.upload.onprogress = (event) => {
      const percent = event.total ? Math.round((100 * event.loaded) / event.total) : 0;
      progress.textContent = percent < 100 ? `${file.name}: ${percent} % sent` : `${file.name}: importing …`;
    };
    request.onload = () => resolve(request.response?.results ?? [refused(file, request.response?.error ?? `the server answered ${request.status}`)]);
    request.onerror = () => resolve([refused(file, "the connection broke; the file can be sent again")]);
    request.send(body);
  });
}
const refused = (file, reason) => ({ file: file.name, status: "refused", format: "", rollouts: [], reason });
function cell(row, content) {
  const place = row.insertCell();
  place.append(...[content].flat());
  return place;
}
function link(href, text) {
  const anchor = document.createElement("a");
  anchor.href = href; anchor.textContent = text;
  return anchor;
}
function balance(lines) {
  if (!lines.length) return [];
  const details = document.createElement("details"), list = document.createElement("ul");
  details.append(Object.assign(document.createElement("summary"), { className: "quiet", textContent: "balance with the source's totals" }), list);
  for (const line of lines) list.append(Object.assign(document.createElement("li"), { textContent: `${line.rollout}: ${line.said}${line.short ? " (short)" : ""}` }));
  return [" ", details];
}
function show(result) {
  table.hidden = false;
  const row = table.tBodies[0].insertRow(0);
  cell(row, result.file).className = "mono";
  cell(row, result.status); cell(row, result.format);
  const stated = result.experiments && !result.rollouts.length ? [link("/experiments/", `${result.experiments} experiments`)] : [];
  const links = result.rollouts.slice(0, 8).flatMap((id) => [link(`/rollouts/${id}/`, id), " "]);
  cell(row, result.rollouts.length > 8 ? [...links, `and ${result.rollouts.length - 8} more`] : [...links, ...stated]).className = "n";
  cell(row, result.job ? [link(`/jobs/${result.job}/`, `job ${result.job}`)] : [result.reason, ...balance(result.balance ?? [])]);
}
async function sendAll(files) {
  progress.hidden = false;
  let done = 0;
  for (const file of files) {
    for (const result of await send(file)) show(result);
    done += 1;
  }
  progress.textContent = `${done} file${done === 1 ? "" : "s"} done.`;
  form.reset();
}
form?.addEventListener("submit", (event) => { event.preventDefault(); sendAll([...form.elements.files.files]); });
for (const kind of ["dragenter", "dragover"]) drop?.addEventListener(kind, (event) => { event.preventDefault(); drop.classList.add("over"); });
for (const kind of ["dragleave", "drop"]) drop?.addEventListener(kind, () => drop.classList.remove("over"));
drop?.addEventListener("drop", (event) => { event.preventDefault(); sendAll([...event.dataTransfer.files]); });
