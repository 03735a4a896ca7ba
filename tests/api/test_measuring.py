"""Experiments, trainings and panels over the JSON API: everything by name, keys, roles, and hostile bodies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from harnesslab.accounts.models import User
from harnesslab.store.models import Experiment, Job, Project, Training
from tests import live, measuring
from tests.api.test_reruns import client_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_wake_up")]
JSON = "application/json"
EXPERIMENTS, TRAININGS = "/api/v1/experiments", "/api/v1/trainings"


@pytest.fixture
def api(operator: User) -> Client:
    return client_of(operator, "operator")


def test_the_same_key_gives_the_same_experiment_and_another_request_with_it_is_refused(
    api: Client, project: Project
) -> None:
    asked = measuring.asked(cases=["a"], trials=2)
    first, again = (api.post(EXPERIMENTS, asked, JSON, headers={"Idempotency-Key": "one"}) for _ in range(2))
    assert (first.status_code, first.json()["id"]) == (201, again.json()["id"])
    assert [(row["case"], row["trial"], row["state"]) for row in first.json()["rows"]] == [
        ("a", 0, "queued"),
        ("a", 1, "queued"),
    ]
    assert Job.objects.count() == 2
    other = api.post(EXPERIMENTS, measuring.asked(trials=3), JSON, headers={"Idempotency-Key": "one"})
    assert (other.status_code, "another experiment" in other.json()["error"]) == (409, True)
    long = api.post(EXPERIMENTS, asked, JSON, headers={"Idempotency-Key": "k" * 81})
    assert long.status_code == 400


def test_progress_and_cancelling(api: Client, project: Project) -> None:
    made = api.post(EXPERIMENTS, measuring.asked(), JSON).json()["id"]
    measuring.ended(Experiment.objects.get(), "a")
    found = api.get(f"{EXPERIMENTS}/{made}/progress").json()
    assert (found["ended"], found["solved"], found["waiting"], found["over"]) == (1, 1, 1, False)
    assert api.post(f"{EXPERIMENTS}/{made}/cancel").json() == {"asked": 1}
    assert api.post(f"{EXPERIMENTS}/{made}/cancel").status_code == 409
    assert api.get(f"{EXPERIMENTS}/{made + 1}/progress").status_code == 404


@pytest.mark.parametrize(
    ("changes", "status", "said"),
    [
        ({"nonsense": 1}, 400, "nonsense"),
        ({"revision": None}, 400, "revision"),
        ({"revision": "--upload-pack=x"}, 400, "not a revision"),
        ({"project": "\x00"}, 404, "no project"),
        ({"project": "\ud800"}, 404, "no project"),
        ({"panel": "@"}, 404, "no runnable panel"),
        ({"engine": "\x00"}, 404, "no engine"),
        ({"trials": 10**30}, 400, "trials"),
        ({"temperature": 1e300}, 400, "no temperature"),
        ({"seed": "9" * 30}, 400, "no seed"),
        ({"cases": []}, 400, "no case was chosen"),
        ({"cases": ["a", "\ud800"]}, 400, "NUL or half a character"),
        ({"kind": "best"}, 400, "no kind"),
    ],
)
def test_what_can_not_be_asked_is_said(
    api: Client, project: Project, changes: dict[str, Any], status: int, said: str
) -> None:
    answer = api.post(EXPERIMENTS, measuring.asked(**changes), JSON)
    assert (answer.status_code, said in answer.json()["error"]) == (status, True), answer.json()
    assert not Experiment.objects.exists()


def test_roles(project: Project, viewer: User, operator: User, admin: User, tmp_path: Path) -> None:
    (tmp_path / "patches").mkdir()
    asked = measuring.asked(epochs=1, patches=str(tmp_path / "patches"))
    del asked["revision"]
    as_viewer, as_operator, as_admin = (client_of(user, user.role) for user in (viewer, operator, admin))
    assert as_viewer.post(EXPERIMENTS, measuring.asked(), JSON).status_code == 403
    assert as_operator.post(TRAININGS, asked, JSON).status_code == 403
    assert client_of(admin, "operator").post(TRAININGS, asked, JSON).status_code == 403
    made = as_admin.post(TRAININGS, asked, JSON).json()
    assert (made["row"]["state"], made["epochs"][0]["state"]) == ("running", "baseline")
    place = f"{TRAININGS}/{made['row']['id']}"
    assert as_viewer.post(f"{place}/stop").status_code == 403
    assert as_operator.post(f"{place}/stop").json()["row"]["state"] == "stopped"
    assert as_operator.post(f"{place}/resume").json()["row"]["state"] == "running"
    assert as_viewer.get(place).json()["row"]["why"] == ""
    assert [row["id"] for row in as_viewer.get(TRAININGS).json()] == [made["row"]["id"]]
    command = {**asked, "command": ["true"]}
    assert as_admin.post(TRAININGS, command, JSON).status_code == 400
    assert Training.objects.count() == 1


def test_panels_are_listed_with_their_digests(api: Client, project: Project) -> None:
    revision = measuring.panel()
    assert [(row["name"], row["digest"]) for row in api.get("/api/v1/panels?project=measured").json()] == [
        (measuring.PANEL, revision.digest)
    ]
    named = measuring.asked(panel=f"{measuring.PANEL}@{revision.digest[:8]}", engine=live.ENGINE)
    assert api.post(EXPERIMENTS, named, JSON).status_code == 201


def test_the_openapi_document_shows_what_can_be_asked_with_its_bounds(api: Client) -> None:
    document = api.get("/api/v1/openapi.json").json()
    schemas = document["components"]["schemas"]
    for path, name in (
        ("/experiments", "ExperimentRequest"),
        ("/trainings", "TrainingRequest"),
        ("/rollouts/{rollout_id}/reruns", "RerunRequest"),
        ("/rollouts/{rollout_id}/regressions", "RegressionRequest"),
        ("/regressions/{case_id}/measure", "RegressionMeasurementRequest"),
    ):
        body = document["paths"][f"/api/v1{path}"]["post"]["requestBody"]["content"]["application/json"]["schema"]
        assert body == {"$ref": f"#/components/schemas/{name}"}
    trials = schemas["ExperimentRequest"]["properties"]["trials"]
    assert (trials["minimum"], trials["maximum"], trials["default"]) == (1, 100, 1)
    assert schemas["RerunRequest"]["properties"]["mode"]["enum"] == ["recorded", "live", "hybrid"]


@pytest.mark.parametrize("digits", ["9" * 19, "9" * 5000])
def test_a_number_of_too_many_digits_is_refused_at_its_field(api: Client, project: Project, digits: str) -> None:
    body = '{"project": "measured", "panel": "two cases", "engine": "E", "revision": "main", "trials": ' + digits + "}"
    answer = api.post(EXPERIMENTS, body, JSON)
    assert answer.status_code == 400
    assert "trials: a number of more than 18 digits (from 1 to 100)" in answer.json()["error"]
