"""Walks through a running instance in a real browser and notes whatever a stored text does there."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable
from urllib.parse import parse_qsl, urljoin, urlsplit

from playwright.sync_api import Dialog, Error, Page, Request

EACH = 3
"""Addresses of one shape that are followed where no test names them: their pages differ in ids and filters alone."""
_FOUND = r"""() => ({
  links: [...document.querySelectorAll("main a[href], body > header a[href]")].map(a => a.href),
  parts: [...document.querySelectorAll("[hx-get]")].map(e => e.getAttribute("hx-get")),
  made: [...document.querySelectorAll("*")].filter(e => [...e.attributes].some(a => a.name === "evil")
    || e.matches("a, area, form, button") && /^\s*(javascript|data):/i.test(e.href ?? e.action ?? ""))
    .map(e => e.outerHTML.slice(0, 200)),
  ran: window.evil ?? null, counted: document.body.innerText.includes("7654322"), title: document.title,
})"""
_SETTLED = """async () => {
  for (const each of document.querySelectorAll("details")) each.open = true;
  for (let frame = 0; frame < 2; frame++) await new Promise(done => requestAnimationFrame(done));
}"""
_SWAPPED = """async (address) => {
  const sink = document.createElement("div");
  document.querySelector("main").append(sink);
  await htmx.ajax("GET", address, { target: sink, swap: "innerHTML" });
  const made = [...document.querySelectorAll("[evil]")].map(e => e.outerHTML.slice(0, 200));
  const nested = [...sink.querySelectorAll("[hx-get]")].map(e => e.getAttribute("hx-get"));
  const texts = [...sink.querySelectorAll("a[href*='/part/']")].map(e => e.getAttribute("href"));
  sink.remove();
  return { made, parts: [...nested, ...texts] };
}"""


def shape(address: str) -> tuple[str, ...]:
    """Return an address's path without numbers and digests, and the names of what it asks with."""
    parts = urlsplit(address)
    names = [name for name, _ in parse_qsl(parts.query, keep_blank_values=True)]
    return re.sub(r"[0-9a-f]{64}|\d+", "#", parts.path), *sorted(set(names))


_REFUSED = re.compile(r"the server responded with a status of 4\d\d|Response Status Error Code 4\d\d")
"""What the console says where a page or part is refused, as one that asks for something unknown is."""


class Crawl:
    """A walk: what was opened, and what happened that no text may make happen."""

    def __init__(self, page: Page, root: str) -> None:
        self.page = page
        self.root = root
        self.happened: list[str] = []
        self.opened: list[str] = []
        self.swapped: dict[str, None] = {}
        self._parts: Counter[tuple[str, ...]] = Counter()
        self.downloads: list[str] = []
        self.at = ""
        page.on("console", lambda said: self._console(said.type, said.text))
        page.on("pageerror", lambda error: self._note(f"error: {error}"))
        page.on("dialog", self._dialog)
        page.on("popup", lambda popup: self._note(f"window: {popup.url}"))
        page.context.on("request", self._request)

    def walk(self, named: Iterable[str]) -> None:
        """Open what is named, then what is linked from there, a few of each shape."""
        waiting = deque(urljoin(self.root, address) for address in named)
        chosen = set(waiting)
        shapes: Counter[tuple[str, ...]] = Counter()
        while waiting:
            for link in self.open(waiting.popleft()):
                plain = link.split("#")[0]
                if plain in chosen or not plain.startswith(self.root) or shapes[shape(plain)] >= EACH:
                    continue
                shapes[shape(plain)] += 1
                chosen.add(plain)
                waiting.append(plain)

    def open(self, address: str) -> list[str]:
        """Load a page, unfold what it folds, swap in each of its parts, and return where its links lead."""
        self.at = address
        try:
            self.page.goto(address, wait_until="load")
        except Error as error:
            if "Download is starting" in str(error):
                self.downloads.append(address)
                return []
            self._note(f"not opened: {error}")
            return []
        self.opened.append(address)
        if not self.page.evaluate("'htmx' in window"):
            return []  # text or JSON, as the browser shows it
        self.page.evaluate(_SETTLED)
        self.page.wait_for_function("!document.querySelector('details.htmx-request')")
        found = self.page.evaluate(_FOUND)
        for markup in found["made"]:
            self._note(f"an element was made: {markup}")
        if found["ran"] is not None or found["counted"]:
            self._note("a script or a template ran")
        landed = self.page.url.split("#")[0]
        if urlsplit(landed).path != urlsplit(address).path and "/projects/" not in landed:
            self._note(f"the page went to {landed}")
        if len(self.page.frames) > 1:
            self._note("a frame was made")
        for part in found["parts"]:
            self.swap(urljoin(landed, part))
        return list(found["links"])

    def swap(self, address: str) -> None:
        """Let htmx put what an address answers into the page that is open, and what the answer has further parts of."""
        waiting = [address]
        while waiting:
            at = waiting.pop()
            if at in self.swapped:
                continue
            self.swapped[at] = None
            try:
                found = self.page.evaluate(_SWAPPED, at)
            except Error as error:  # such as that the page is another one meanwhile
                self._note(f"{at} took the page away: {error}")
                return
            for markup in found["made"]:
                self._note(f"{at} made an element: {markup}")
            waiting += [urljoin(at, part) for part in found["parts"] if self._is_new(urljoin(at, part))]

    def _is_new(self, part: str) -> bool:
        """Say whether to swap a part in: of whole payloads that no page loads by itself, a few of each name."""
        key = shape(part)
        name = dict(parse_qsl(urlsplit(part).query)).get("name", "")
        self._parts[(*key, name)] += 1
        return "/part/" not in part or name == "kept" or self._parts[(*key, name)] <= EACH

    def _note(self, what: str) -> None:
        self.happened.append(f"{self.at}: {what}")

    def _console(self, kind: str, text: str) -> None:
        if kind in ("error", "warning") and not _REFUSED.search(text):
            self._note(f"{kind}: {text[:300]}")

    def _dialog(self, dialog: Dialog) -> None:
        self._note(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _request(self, request: Request) -> None:
        inside = request.url.startswith(self.root) and not urlsplit(request.url).path.startswith("/hostile")
        if request.method != "GET" or not (inside or request.url.startswith("blob:")):
            self._note(f"request: {request.method} {request.url}")
