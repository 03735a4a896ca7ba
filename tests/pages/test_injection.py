"""Stored text stays text: on every page, in every answer, in every header."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import pytest
from django.template import Context, Template
from django.urls import URLPattern, get_resolver

from harnesslab.accounts.models import User
from harnesslab.actions.annotations import add_note, save_view
from harnesslab.actions.comparisons import override_cause
from harnesslab.actions.imports.importing import import_unit
from harnesslab.actions.jobs.lifecycle import enqueue
from harnesslab.core.comparing.evidence import Cause
from harnesslab.core.contracts.contract import Contract
from harnesslab.formats.reading.inputs import InputFile, Unit
from harnesslab.store.models import Job, Rollout
from tests.actions.test_hostile_values import rollout
from tests.pages.conftest import logged_in

pytestmark = pytest.mark.django_db
TEMPLATES = Path(__file__).parents[2] / "templates"
EVIL = "\"'><img src=x onerror=alert(1)></script><script>alert(1)</script>{{7*7}}${7*7}"
ALIVE = re.compile(r"<img src=x|<script>alert|onerror=alert\(1\)>")


@pytest.fixture
def evil(admin: User, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Two rollouts, notes, views, findings, users, tokens and jobs, each text an attack."""
    monkeypatch.setattr("harnesslab.queue.wake", lambda *_: None)
    names = ("case", "project", "panel", "experiment", "harness", "revision", "model", "engine", "missing")
    header = dict.fromkeys(names, EVIL)
    facts = {"tags": [EVIL], "facts": {EVIL: EVIL}, "budgets": {EVIL: 1.0}, "conditions": {"sampling.other": EVIL}}
    events: list[dict[str, Any]] = [
        {"kind": "user_turn", "content": EVIL, "agent": EVIL},
        {"kind": "model_call", "messages": [{"role": EVIL, "content": EVIL}], "text": EVIL, "model": EVIL,
         "reasoning": EVIL, "settings": {EVIL: EVIL},
         "tool_calls": [{"name": EVIL, "arguments": {EVIL: EVIL}, "id": EVIL}],
         "finish_reason": EVIL, "response_id": EVIL, "fingerprint": EVIL},
        {"kind": "tool_call", "name": EVIL, "arguments": {EVIL: EVIL}, "id": EVIL, "result": EVIL, "error": EVIL},
        {"kind": "harness_action", "name": EVIL, "mechanism": EVIL, "detail": {EVIL: EVIL}},
        {"kind": "verification", "passed": False, "error": EVIL, "output": EVIL,
         "tests": [{"name": EVIL, "passed": False, "detail": EVIL}], "scores": {EVIL: EVIL}},
    ]  # fmt: skip
    other = [{**event, "result": "x"} if event["kind"] == "tool_call" else event for event in events]
    lines = rollout({**header, **facts}, *events) + rollout({**header, **facts, "outcome": "crash"}, *other)
    name = f"{EVIL}.jsonl"
    result = import_unit(Unit(name, {name: InputFile.of_bytes(name, lines.encode() + b'{"kind": "x"}\n')}))
    a, b = result.rollouts
    add_note(admin, a, EVIL, 0)
    save_view(admin, EVIL, "q=x")
    override_cause(a, b, Contract.parse(), Cause.UNKNOWN.value, EVIL, admin)
    job = enqueue("import", {"path": "/nowhere", "name": EVIL, "project": EVIL}, user=admin)
    Job.objects.filter(pk=job.pk).update(message=EVIL, result={"results": [{"file": EVIL, "reason": EVIL}]})
    User.objects.create_user("x" * 20, password="a-long-password", role="viewer", first_name=EVIL[:100])
    return [a, b]


def addresses(a: int, b: int) -> list[str]:
    found = []
    for pattern in get_resolver().url_patterns:
        if isinstance(pattern, URLPattern):
            route = "/" + str(pattern.pattern).replace("<int:rollout_id>", str(a)).replace("<int:index>", "2")
            found.append(route.replace("<int:job_id>", str(Job.objects.get().pk)).replace("<int:token_id>", "1"))
    manifest = Rollout.objects.get(pk=a).manifest_id
    found = [address.replace("<str:digest>", manifest) for address in found]
    found += [f"/rollouts/{a}/?event={index}" for index in range(7)]
    found += [f"/compare/{part}?a={a}&b={b}&row={row}" for part in ("", "row/", "rows/") for row in range(7)]
    found += [f"/rollouts/values/?facet={name}" for name in ("tag", "case", "model", "project", "harness", "panel")]
    return [*found, "/rollouts/?by=case", f"/manifests/{manifest}/?with={manifest}"]


def test_no_page_lets_stored_text_live(admin: User, evil: list[int]) -> None:
    client = logged_in(admin)
    seen = 0
    for address in addresses(*evil):
        answer = client.get(address)
        assert answer.status_code < 500, address
        if answer.headers.get("Content-Type", "").startswith("text/html"):
            page = answer.content.decode()
            seen += "onerror" in page
            assert not ALIVE.search(page), address
        else:
            assert answer.headers.get("X-Content-Type-Options") == "nosniff", address
    assert seen > 20


@pytest.mark.parametrize(
    "address",
    ["/rollouts/?q={}", "/rollouts/?case={}&after=x", "/rollouts/?sort={}", "/rollouts/?outcome={}",
     "/compare/?a=1&b=2&level={}",
     "/rollouts/values/?facet={}", "/manifests/{}/", "/requests/{}/", "/login?next={}", "/{}", "/rollouts/1/?step={}"],
)  # fmt: skip
def test_no_address_comes_back_alive(admin: User, evil: list[int], address: str) -> None:
    answer = logged_in(admin).get(address.format(EVIL))
    assert not ALIVE.search(answer.content.decode())


def test_no_name_adds_a_header(admin: User, evil: list[int]) -> None:
    Rollout.objects.update(model="x")
    client = logged_in(admin)
    for address in (f"/rollouts/{evil[0]}/bundle.zip", f"/compare/report.json?a={evil[0]}&b={evil[1]}"):
        disposition = client.get(address).headers["Content-Disposition"]
        assert re.fullmatch(r'attachment; filename="[\w.-]+"', disposition)


def test_results_of_an_upload_are_text(admin: User) -> None:
    from django.core.files.uploadedfile import SimpleUploadedFile

    answer = logged_in(admin).post("/import/files/", {"files": SimpleUploadedFile(f"{EVIL}.txt", EVIL.encode())})
    assert not ALIVE.search(answer.content.decode())


def test_what_others_wrote_stands_in_elements_that_htmx_does_not_heed() -> None:
    memo = "{% payload 'div' class='memo' aria_label=text %}{% endpayload %}"
    written = Template("{% payload %}\n{{ text }}{% endpayload %}" + memo).render(Context({"text": EVIL}))
    assert written.startswith('<pre class="payload" hx-disable>\n\n&quot;')
    assert '<div aria-label="&quot;' in written
    assert written.endswith(' class="memo" hx-disable></div>')
    assert not ALIVE.search(written)
    for template in TEMPLATES.rglob("*.html"):
        text = template.read_text()
        assert "<pre" not in text, f"{template.name}: use the tag payload"
        assert "hx-headers" not in text, f"{template.name}: a form carries its own token"


def test_an_answer_to_htmx_is_markup_whatever_the_view_sends(admin: User, evil: list[int]) -> None:
    client = logged_in(admin)
    for address in (f"/rollouts/{evil[0]}/events/2/part/?name=kept", f"/compare/report.json?a={evil[0]}&b={evil[1]}"):
        as_text = client.get(address)
        answer = client.get(address, headers={"HX-Request": "true"})
        assert not as_text.headers["Content-Type"].startswith("text/html")
        assert answer.headers["Content-Type"].startswith("text/html")
        assert html.unescape(answer.content.decode()) == html.unescape(as_text.content.decode())
        assert b"<" not in answer.content
        assert "HX-Request" in as_text.headers["Vary"]
