"""Reruns, engines, the queue and regression cases over the JSON API: plans are JSON, steps count from 0."""

from __future__ import annotations

import json

import pytest
from django.test import Client

from harnesslab.accounts import tokens
from harnesslab.accounts.models import User
from harnesslab.store.models import Job, Rerun
from tests import live

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_wake_up")]
JSON = "application/json"
PLAN = {"mode": "live", "attempts": 2, "seed": "drawn"}


def client_of(user: User, scope: str) -> Client:
    _, secret = tokens.issue(user, "test", scope)
    return Client(headers={"Authorization": f"Bearer {secret}"})


@pytest.fixture
def api(operator: User) -> Client:
    return client_of(operator, "operator")


def test_the_same_key_gives_the_same_rerun(api: Client) -> None:
    place = f"/api/v1/rollouts/{live.rerunnable().pk}/reruns"
    first = api.post(place, PLAN, JSON, headers={"Idempotency-Key": "one"})
    again = api.post(place, PLAN, JSON, headers={"Idempotency-Key": "one"})
    other = api.post(place, PLAN, JSON)
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json()["id"] == again.json()["id"] != other.json()["id"]
    assert Job.objects.count() == 4
    assert first.json()["population"] == "drawn seeds"
    assert api.post(place, {"mode": "live"}, JSON, headers={"Idempotency-Key": "one"}).status_code == 409
    changed = api.post(place, {**PLAN, "attempts": 3}, JSON, headers={"Idempotency-Key": "one"})
    assert (changed.status_code, Job.objects.count()) == (409, 4)
    elsewhere = f"/api/v1/rollouts/{live.rerunnable(trial=1).pk}/reruns"
    assert api.post(elsewhere, PLAN, JSON, headers={"Idempotency-Key": "one"}).status_code == 409


@pytest.mark.parametrize(
    ("plan", "status", "said"),
    [
        ({"mode": "sideways"}, 400, "plan"),
        ({"mode": "live", "nonsense": 1}, 400, "nonsense"),
        ({"mode": "live", "attempts": 0}, 400, "0 attempts"),
        ({"mode": "live", "from_step": 9}, 409, "3 steps"),
        ({"mode": "live", "engine": "gone"}, 404, "no engine"),
        ({"mode": "live", "switches": {"model": "live"}}, 400, "hybrid"),
        ({"mode": "live", "seed": "9" * 5000}, 400, "no seed"),
        ({"mode": "live", "revision": "a\0b"}, 400, "no name"),
        ({"mode": "live", "engine": "\ud800"}, 400, "no name"),
    ],
)
def test_a_plan_that_can_not_run_gets_one_sentence(
    api: Client, plan: dict[str, object], status: int, said: str
) -> None:
    answer = api.post(f"/api/v1/rollouts/{live.rerunnable().pk}/reruns", plan, JSON)
    assert answer.status_code == status, answer.content
    assert said in answer.json()["error"]
    assert not Rerun.objects.exists()


def test_a_preview_asks_for_nothing(api: Client) -> None:
    place = f"/api/v1/rollouts/{live.rerunnable().pk}/rerun-preview"
    found = api.get(place, {"plan": json.dumps(PLAN)}).json()
    assert (found["calls"], found["commands"], found["refused"]) == (6, 6, "")
    assert {item["name"] for item in found["boundaries"]} >= {"model", "tool:run"}
    assert api.get(place, {"plan": "{"}).status_code == 400
    assert api.get(place, {"plan": "[" * 5000}).status_code == 400
    assert not Rerun.objects.exists()


def test_a_rerun_is_read_listed_and_cancelled(api: Client) -> None:
    rerun = live.asked(live.rerunnable())
    live.attempted(rerun, 0, same=True)
    found = api.get(f"/api/v1/reruns/{rerun.pk}").json()
    assert (found["same"]["k"], found["same"]["n"], found["ended"]) == (1, 1, False)
    assert found["attempts"][0]["attempt"] == 0
    assert [item["id"] for item in api.get(f"/api/v1/rollouts/{rerun.parent_id}/reruns").json()] == [rerun.pk]
    assert api.get("/api/v1/reruns").json()[0]["id"] == rerun.pk
    assert api.post(f"/api/v1/reruns/{rerun.pk}/cancel").json() == {"asked": 2}
    assert api.get("/api/v1/reruns/999").status_code == 404


def test_engines_are_listed_and_probed_once(api: Client) -> None:
    made = live.engine()
    assert api.get("/api/v1/engines").json()[0]["name"] == made.name
    first = api.post(f"/api/v1/engines/{made.pk}/probe")
    assert first.status_code == 202
    assert api.post(f"/api/v1/engines/{made.pk}/probe").json()["id"] == first.json()["id"]
    assert api.get("/api/v1/jobs").json()["waiting"][0][1]["engine"] == made.pk


def test_a_regression_case_is_made_measured_and_read(api: Client) -> None:
    rollout = live.rerunnable()
    predicate = {"what": "tool call", "tool": "run"}
    made = api.post(
        f"/api/v1/rollouts/{rollout.pk}/regressions", {"name": "a", "from_step": 1, "predicate": predicate}, JSON
    )
    assert made.status_code == 201, made.content
    place = f"/api/v1/regressions/{made.json()['id']}"
    rerun = api.post(f"{place}/measure", {"attempts": 3}, JSON, headers={"Idempotency-Key": "m"}).json()
    assert (rerun["plan"]["from_step"], rerun["population"]) == (1, "drawn seeds")
    assert api.get(place).json()["measurements"][0]["recorded"]
    assert len(api.get("/api/v1/regressions").json()) == 1
    wrong = {"name": "b", "from_step": 1, "predicate": {"what": "tool call", "tool": "never"}}
    assert api.post(f"/api/v1/rollouts/{rollout.pk}/regressions", wrong, JSON).status_code == 400


def test_consistency_is_read(api: Client) -> None:
    assert api.get(f"/api/v1/rollouts/{live.rerunnable().pk}/consistency").json()["consistent"]


def test_a_viewer_reads_and_asks_for_nothing(viewer: User) -> None:
    rerun = live.asked(live.rerunnable())
    client = client_of(viewer, "viewer")
    assert client.get(f"/api/v1/reruns/{rerun.pk}").status_code == 200
    assert client.post(f"/api/v1/rollouts/{rerun.parent_id}/reruns", PLAN, JSON).status_code == 403
    assert client.post(f"/api/v1/reruns/{rerun.pk}/cancel").status_code == 403
    assert client.post(f"/api/v1/engines/{live.engine().pk}/probe").status_code == 403
    new = {"name": "a", "from_step": 1, "predicate": {"what": "tool call", "tool": "run"}}
    assert client.post(f"/api/v1/rollouts/{rerun.parent_id}/regressions", new, JSON).status_code == 403
