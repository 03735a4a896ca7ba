"""Opens every page there is a link to, and the API's, each object of each noun and a few of each other kind of link."""

from __future__ import annotations

import html
import json
import re
from collections import Counter
from collections.abc import Iterator
from functools import partial
from urllib.parse import parse_qsl, urljoin, urlsplit

from django.test import Client
from django.urls import Resolver404, URLPattern, resolve

from harnesslab.store.models import Event, Experiment, Project, Rollout, StoredManifest
from harnesslab.urls import urlpatterns

LINK = re.compile(r'(?:href|hx-get|src)="([^"#]+)')
WHOLE = {"project", "experiment", "training", "rollout", "rerun", "regression", "engine", "job", "manifest", "panel"}
"""Views of which each object is opened; of others, and with a query, a few of each shape."""
FEW = 3
BEGINNINGS = ("/", "/rollouts/?by=case", "/requests/?unstable=1", "/account/", "/import/", "/health", "/login")
NEVER = {"logout"}
CHOSEN = {"experiments-compare", "efficiency", "rerun-several"}
"""Views that need something chosen: never opened without a query."""
REFUSALS = {("rollout-part", 404), ("experiment-new", 409)}
"""What a link may come to as well: a part that the event lacks, a project without a harness."""
QUERIES = {
    "/efficiency": "?e={e}&e={f}",
    "/experiments/compare": "?e={e}&e={f}",
    "/experiments/grid": "?project={project}",
    "/comparisons": "?a={a}&b={b}",
}
"""What routes of the API need, by their path."""


class Walk:
    """What the pages answered, by address."""

    def __init__(self, client: Client) -> None:
        self.answers: dict[str, int] = {}
        self.opened: Counter[str] = Counter()
        self._client = client
        self._shapes: Counter[tuple[str, ...]] = Counter()

    def all(self) -> None:
        """Open everything."""
        waiting = [*BEGINNINGS, *_objects()]
        while waiting:
            address = waiting.pop()
            if address not in self.answers and self._wanted(address):
                waiting += self._open(address)
        self._api()

    def unopened(self) -> list[str]:
        """Return the views that no link led to, without those that only take what a form sends."""
        named = {each.name or "": each for each in urlpatterns if isinstance(each, URLPattern)}
        return [name for name, each in named.items() if not self.opened[name] and not self._takes_forms_alone(each)]

    def _open(self, address: str) -> Iterator[str]:
        answer = self._client.get(address, follow=True)
        name = str(resolve(urlsplit(address).path).url_name)
        self.opened[name] += 1
        self.answers[address] = 200 if (name, answer.status_code) in REFUSALS else answer.status_code
        body = b"".join(answer.streaming_content) if answer.streaming else answer.content  # type: ignore[attr-defined]
        if "html" not in answer.get("Content-Type", ""):
            return
        for link in LINK.findall(body.decode()):
            found = urljoin(address, html.unescape(link))
            if found.startswith("/") and not found.startswith("/static/"):
                yield found

    def _wanted(self, address: str) -> bool:
        parts = urlsplit(address)
        try:
            name = str(resolve(parts.path).url_name)
        except Resolver404:
            self.answers[address] = 404  # a link that leads nowhere
            return False
        if name in NEVER:
            self.opened[name] += 1
            return False
        if name in CHOSEN and not parts.query:
            return False
        if name in WHOLE and not parts.query:
            return True
        shape = (name, *sorted(key for key, _ in parse_qsl(parts.query)))
        self._shapes[shape] += 1
        return self._shapes[shape] <= FEW

    def _takes_forms_alone(self, pattern: URLPattern) -> bool:
        arguments = dict.fromkeys(pattern.pattern.converters, "1")
        path = re.sub(r"<(?:\w+:)?(\w+)>", lambda found: arguments[found[1]], str(pattern.pattern))
        return self._client.get(f"/{path}").status_code == 405

    def _api(self) -> None:
        document = json.loads(self._client.get("/api/v1/openapi.json").content)
        for path, methods in document["paths"].items():
            if "get" not in methods:
                continue
            address = re.sub(r"\{(?:\w+:)?(\w+)\}", partial(_argument, path), path)
            address += QUERIES.get(path.removeprefix("/api/v1"), "").format(**_examples())
            self.answers[address] = self._client.get(address).status_code


def _objects() -> Iterator[str]:
    pairs = Rollout.objects.order_by("case", "pk").values_list("pk", "case")
    last, before = 0, 0
    for rollout, case in pairs:
        yield f"/rollouts/{rollout}/"
        yield f"/rollouts/{rollout}/events/"
        if case == before:
            yield f"/compare/?a={last}&b={rollout}"
            yield f"/compare/rows/?a={last}&b={rollout}"
            yield f"/compare/report.json?a={last}&b={rollout}"
        last, before = rollout, case
    for address in ("/experiments/compare/?e={e}&e={f}", "/experiments/{e}/progress/", "/rollouts/{a}/running/"):
        yield address.format(**_examples())
    manifests = list(StoredManifest.objects.values_list("pk", flat=True))
    for one, other in zip(manifests, manifests[1:] + manifests[:1], strict=True):
        yield f"/manifests/{one}/"
        yield f"/manifests/{one}/?with={other}"


def _examples() -> dict[str, object]:
    """Return objects that stand for theirs in an address: two experiments that were measured, their project, two
    rollouts of one case, a request that was answered."""
    e, f = Experiment.objects.exclude(plan=b"").order_by("pk")[:2]
    project = Project.objects.get(pk=e.project_id)
    a, b = Rollout.objects.filter(case__name="near-tie").order_by("pk").values_list("pk", flat=True)[:2]
    return {"e": e.pk, "f": f.pk, "project": project.name, "a": a, "b": b}


def _argument(path: str, found: re.Match[str]) -> str:
    """Return an argument of an address of the API."""
    name = found[1]
    if name != "digest":
        return "1"
    if "requests" in path:
        request = Event.objects.exclude(request=None).values_list("request", flat=True)[0]
        return bytes(request or b"").hex()
    return str(StoredManifest.objects.values_list("pk", flat=True).earliest("pk"))
