"""Every form that asks for something says what is wrong at each wrong field, all at once, and keeps what was typed."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from harnesslab.actions.reruns.lifecycle import make_regression
from harnesslab.core.running.predicates import Predicate, What
from harnesslab.store.models import Engine, Experiment, RegressionCase, Rerun, Training
from tests import live, measuring

pytestmark = pytest.mark.django_db
FORMS: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "/rollouts/ROLLOUT/rerun/": (
        {"mode": "live", "revision": "main"},
        {"attempts": "many", "temperature": "hot"},
    ),
    "/rollouts/ROLLOUT/regression/": ({"what": "failure"}, {"name": " ", "step": "0", "steps": "<evil>"}),
    "/regressions/CASE/measure/": ({"engine": "E"}, {"revision": "a\x07b", "attempts": "0"}),
    "/experiments/new/?project=measured": (
        {"project": "measured", "panel": measuring.PANEL, "engine": "E", "revision": "main"},
        {"trials": "0", "seed": '"><evil>'},
    ),
    "/trainings/new/?project=measured": (
        {"project": "measured", "panel": measuring.PANEL, "engine": "E", "by": "command"},
        {"command": "'x", "timeout": "inf", "epochs": "many"},
    ),
    "/engines/new/": (
        {"kind": "openai", "model": "m"},
        {"name": "<evil>", "address": "box:80", "options": "</textarea>"},
    ),
    "/engines/ENGINE/ceiling/": ({}, {"ceiling": "0"}),
    "/projects/PROJECT/binding/": ({"entry": "start"}, {"repository": " ", "command": '"'}),
}
CONTROL = re.compile(r'<(?:input|textarea|select) name="(\w+)"([^>]*)>')


@pytest.fixture(autouse=True)
def no_wake_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harnesslab.queue.wake", lambda job_id, name: None)


@pytest.fixture
def places(db: None, tmp_path: Path) -> dict[str, int]:
    project = measuring.project(tmp_path)
    measuring.panel()
    rollout = live.rerunnable()
    case = make_regression(rollout.pk, "n", 1, Predicate(What.TOOL_CALL, tool="run"), None)
    return {"ROLLOUT": rollout.pk, "CASE": case.pk, "ENGINE": live.engine().pk, "PROJECT": project.pk}


def answered(client: Client, address: str, places: dict[str, int], sent: dict[str, Any]) -> str:
    for name, key in places.items():
        address = address.replace(name, str(key))
    answer = client.post(address, sent)
    assert answer.status_code == 400
    return answer.content.decode()


@pytest.mark.parametrize("address", FORMS)
def test_each_wrong_field_is_marked_with_its_sentence(as_admin: Client, places: dict[str, int], address: str) -> None:
    right, wrong = FORMS[address]
    page = answered(as_admin, address, places, {**right, **wrong})
    marked = {name: rest for name, rest in CONTROL.findall(page) if 'aria-invalid="true"' in rest}
    assert set(marked) == set(wrong)
    for name, rest in marked.items():
        described = re.search(r'aria-describedby="([^"]*)"', rest)
        assert described is not None
        assert f"wrong-{name}" in described.group(1).split()
        assert page.count(f'id="wrong-{name}"') == 1
    assert page.count('role="alert"') == 1
    assert [name for name, rest in CONTROL.findall(page) if " autofocus" in rest] == list(marked)[:1]


@pytest.mark.parametrize("address", FORMS)
def test_what_was_typed_stays_as_text(as_admin: Client, places: dict[str, int], address: str) -> None:
    right, wrong = FORMS[address]
    page = answered(as_admin, address, places, {**right, **wrong})
    for value in {**right, **wrong}.values():
        assert html.escape(value) in page
    assert "<evil" not in page
    counted = [model.objects.count() for model in (Rerun, Experiment, Training, RegressionCase, Engine)]
    assert counted == [0, 0, 0, 1, 1]


def test_a_form_that_is_right_marks_nothing(as_admin: Client, places: dict[str, int]) -> None:
    for address in FORMS:
        for name, key in places.items():
            address = address.replace(name, str(key))
        page = as_admin.get(address.replace("measure/", "").replace("new/", "" if "engines" in address else "new/"))
        assert page.status_code in (200, 405)
        assert "aria-invalid" not in page.content.decode()


def test_what_an_action_refuses_stands_at_its_field_too(as_admin: Client, places: dict[str, int]) -> None:
    sent = {"name": "E", "kind": "openai", "address": "http://127.0.0.1:9", "model": "m"}
    answer = as_admin.post("/engines/new/", sent)
    assert answer.status_code == 409
    assert re.search(r'<input name="name"[^>]* aria-invalid="true"', answer.content.decode())
