"""Experiments over the JSON API: the pages' filters, a cursor, and what sources state verbatim."""

from __future__ import annotations

import math
from typing import Any

import pytest
from django.test import Client

from harnesslab.accounts.models import User
from harnesslab.actions.experiments.sources import store_record
from harnesslab.core.canonical import JSON
from harnesslab.core.measuring.experiments import ExperimentKind, ExperimentRecord, Verdict

pytestmark = pytest.mark.django_db


@pytest.fixture
def api(viewer: User) -> Client:
    client = Client()
    client.force_login(viewer)
    return client


def get(api: Client, path: str) -> Any:
    answer = api.get(f"/api/v1/{path}")
    return answer.status_code, answer.json()


def test_experiments_are_filtered_and_have_every_field(api: Client) -> None:
    store_record(ExperimentRecord("base", kind=ExperimentKind.BASELINE, certification={"a": {"verdict": "forked"}}))
    store_record(ExperimentRecord("next", kind=ExperimentKind.CANDIDATE, verdict=Verdict.PROMOTED, baseline="base"))
    _, page = get(api, "experiments?decision=promoted")
    (row,) = page["rows"]
    assert (row["external_id"], row["kind"], row["decision"], row["baseline"]) == (
        "next",
        "candidate",
        "promoted",
        "base",
    )
    assert (page["count"], page["next"]) == (1, "")
    assert get(api, "experiments?kind=baseline")[1]["rows"][0]["certification"] == {"a": "forked"}


def test_one_experiment_has_its_documents_verbatim_and_as_json_that_every_client_reads(api: Client) -> None:
    facts: dict[str, JSON] = {"odd": math.nan, "nul": "\x00\udcff", "big": 2**70}
    made = store_record(ExperimentRecord("e", decision={"outcome": "x", "new_solves": ["a"]}, facts=facts))
    answer = api.get(f"/api/v1/experiments/{made.pk}")
    assert b"NaN}" not in answer.content.replace(b" ", b"")
    assert answer.json()["decision"] == {"outcome": "x", "new_solves": ["a"]}
    assert answer.json()["facts"]["nul"] == "\x00\udcff"


@pytest.mark.parametrize(("path", "status"), [("experiments/99", 404), ("experiments?kind=odd", 400)])
def test_what_is_not_there_is_answered_with_one_sentence(api: Client, path: str, status: int) -> None:
    answered, body = get(api, path)
    assert (answered, list(body)) == (status, ["error"])
