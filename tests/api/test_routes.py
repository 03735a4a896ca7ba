"""The JSON API speaks the pages' query language and returns their read models."""

from __future__ import annotations

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from harnesslab.accounts import tokens
from harnesslab.accounts.models import User
from harnesslab.actions.rollouts.storing import store_recording
from harnesslab.core.canonical import bytes_digest
from harnesslab.formats import bundle
from harnesslab.formats.native import importer as native
from harnesslab.store.models import Job, Rollout
from tests.recordings import recording

pytestmark = pytest.mark.django_db


@pytest.fixture
def api(operator: User) -> Client:
    _, secret = tokens.issue(operator, "test", "operator")
    return Client(headers={"Authorization": f"Bearer {secret}"})


def upload(name: str = "one.jsonl", pad: int = 0) -> SimpleUploadedFile:
    opening = {"rollout": {"schema": native.SCHEMA, "case": "c", "outcome": "solved", "facts": {"pad": "x" * pad}}}
    event = {"kind": "model_call", "messages": [{"role": "user", "content": "go"}], "text": "done"}
    return SimpleUploadedFile(name, (json.dumps(opening) + "\n" + json.dumps(event) + "\n").encode())


def test_files_are_imported_by_a_script_with_a_token_and_no_csrf(operator: User) -> None:
    _, secret = tokens.issue(operator, "test", "operator")
    client = Client(enforce_csrf_checks=True, headers={"Authorization": f"Bearer {secret}"})
    answer = client.post("/api/v1/imports", {"files": upload(), "project": "p"})
    (result,) = answer.json()["results"]
    assert (result["status"], result["format"]) == ("imported", "harnesslab")
    assert Rollout.objects.get(pk=result["rollouts"][0]).project.name == "p"


def test_sending_a_file_again_doubles_nothing(api: Client) -> None:
    first = api.post("/api/v1/imports", {"files": upload()}).json()["results"][0]
    again = api.post("/api/v1/imports", {"files": upload("renamed.jsonl")}).json()["results"][0]
    assert (again["status"], again["rollouts"]) == ("duplicate", first["rollouts"])


def test_several_files_are_answered_one_by_one(api: Client) -> None:
    bad = SimpleUploadedFile("bad.json", b"{")
    results = api.post("/api/v1/imports", {"files": [upload(), bad]}).json()["results"]
    assert [result["status"] for result in results] == ["imported", "refused"]
    assert "bad.json" in results[1]["reason"]


def test_a_large_file_becomes_a_job(api: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harnesslab.actions.imports.uploads.INLINE_BYTES", 1000)
    (result,) = api.post("/api/v1/imports", {"files": upload(pad=5000)}).json()["results"]
    assert result["status"] == "queued"
    job = api.get(f"/api/v1/jobs/{result['job']}").json()
    assert (job["kind"], job["state"]) == ("import", "queued")
    assert api.post(f"/api/v1/jobs/{result['job']}/cancel").json()["state"] == "cancelled"
    assert Job.objects.count() == 1


def test_no_file_is_said_to_be_missing(api: Client) -> None:
    assert api.post("/api/v1/imports").status_code == 422


def test_lists_filter_as_the_page_does(api: Client) -> None:
    store_recording(recording(case="a"), None)
    store_recording(recording(case="b"), None)
    page = api.get("/api/v1/rollouts?case=a").json()
    assert [row["case"] for row in page["rows"]] == ["a"]
    assert page["count"] == 1
    groups = api.get("/api/v1/rollouts?by=case").json()["groups"]
    assert [(group["case"], group["rate"]["k"], group["rate"]["n"]) for group in groups] == [("b", 1, 1), ("a", 1, 1)]


def test_a_manifest_s_bytes_have_its_digest(api: Client) -> None:
    row = store_recording(recording(), None)
    body = api.get(f"/api/v1/manifests/{row.manifest_id}").content
    assert bytes_digest(body) == row.manifest_id


def test_a_bundle_verifies(api: Client) -> None:
    row = store_recording(recording(), None)
    data = api.get(f"/api/v1/rollouts/{row.pk}/bundle").content
    assert bundle.verify(data).head == bytes(row.head or b"").hex()


def test_a_comparison_counts_from_zero(api: Client) -> None:
    a = store_recording(recording(), None)
    b = store_recording(recording(["ls", "cat b.txt"], trial=1), None)
    found = api.get(f"/api/v1/comparisons?a={a.pk}&b={b.pk}").json()
    assert (found["identical"], found["level"]) == (False, "text")
    assert (found["first_divergence"]["step"], found["first_divergence"]["boundary"]) == (1, "model")
    calls = api.get(f"/api/v1/comparisons?a={a.pk}&b={b.pk}&only=tool-calls").json()
    assert (calls["level"], calls["first_divergence"]["tool_call_index"]) == ("json", 1)


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("/api/v1/rollouts/999", 404),
        ("/api/v1/comparisons?a=1&b=999", 404),
        ("/api/v1/comparisons?a=1", 422),
        ("/api/v1/comparisons?a=1&b=1&level=vibes", 400),
        ("/api/v1/comparisons?a=1&b=1&rules=none,x@9", 400),
        ("/api/v1/manifests/zz", 404),
        ("/api/v1/requests/zz", 400),
        ("/api/v1/rollouts?outcome=x", 400),
        ("/api/v1/jobs/9", 404),
    ],
)
def test_a_wrong_question_gets_a_sentence(api: Client, address: str, status: int) -> None:
    answer = api.get(address)
    assert answer.status_code == status, answer.content
    assert isinstance(answer.json()["error"], str)


def test_the_schema_names_every_route(api: Client) -> None:
    paths = api.get("/api/v1/openapi.json").json()["paths"]
    assert {"/api/v1/rollouts", "/api/v1/comparisons", "/api/v1/imports"} <= paths.keys()


def test_an_address_that_leads_nowhere_is_answered_in_json(api: Client) -> None:
    answer = api.get("/api/v1/nothing")
    assert answer.status_code == 404
    assert "openapi.json" in answer.json()["error"]
