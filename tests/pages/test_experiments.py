"""The pages of experiments: a sentence first, filters in the address, and every number leading somewhere."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from harnesslab.actions.experiments.sources import refresh, store_record
from harnesslab.actions.rollouts.storing import store_recording
from harnesslab.core.measuring.experiments import ExperimentKind, ExperimentRecord, State, Verdict
from harnesslab.core.running.rollout import Outcome
from harnesslab.queries.experiments import listing as queries
from harnesslab.queries.experiments.filters import ExperimentFilter
from harnesslab.store.models import Experiment
from tests.recordings import recording

pytestmark = pytest.mark.django_db


def measured(name: str, outcome: Outcome, **record: Any) -> Experiment:
    row = store_record(ExperimentRecord(name, project="tests", **record))
    store_recording(recording(case="c", outcome=outcome, experiment=name), None)
    refresh([row.pk])
    return row


@pytest.fixture
def pair() -> tuple[Experiment, Experiment]:
    return (
        measured(
            "base", Outcome.SOLVED, kind=ExperimentKind.BASELINE, certification={"c": {"verdict": "deterministic"}}
        ),
        measured(
            "next",
            Outcome.TIMEOUT,
            kind=ExperimentKind.CANDIDATE,
            baseline="base",
            verdict=Verdict.REJECTED,
            reason="regressed_baseline_tasks",
            mechanism="shorter <b>prompt</b>",
            decision={"outcome": "rejected"},
        ),
    )


def page(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return answer.content.decode()


def test_the_list_says_first_what_was_decided(as_viewer: Client, pair: tuple[Experiment, Experiment]) -> None:
    text = page(as_viewer, "/experiments/")
    assert "<b>2</b> experiments: <b>0</b> promoted, 1 rejected" in text
    assert "loses cases that the baseline solves" in text
    assert "on 1 common case: 0 gained, 1 lost" in text
    assert "shorter &lt;b&gt;prompt&lt;/b&gt;" in text
    assert text.index(f"/experiments/{pair[1].pk}/") < text.index(f"/experiments/{pair[0].pk}/")


def test_filters_are_in_the_address_and_each_can_be_removed(
    as_viewer: Client, pair: tuple[Experiment, Experiment]
) -> None:
    text = page(as_viewer, "/experiments/?project=tests&decision=rejected")
    assert "<b>1</b> experiment of tests" in text
    assert 'href="?project=tests" aria-current="true"' in text
    assert "No experiment passes these filters" in page(as_viewer, "/experiments/?project=none")


def test_further_rows_come_alone(
    as_viewer: Client, pair: tuple[Experiment, Experiment], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "PAGE", 1)
    after = queries.experiment_page(ExperimentFilter()).next
    text = as_viewer.get("/experiments/", {"after": after}, headers={"HX-Request": "true"}).content.decode()
    assert text.count("<tr") == 1
    assert "<html" not in text


def test_an_empty_lab_says_what_brings_experiments(as_viewer: Client) -> None:
    assert "No experiment has been measured yet" in page(as_viewer, "/experiments/")


def test_an_experiment_says_its_decision_and_leads_to_its_rollouts_and_baseline(
    as_viewer: Client, pair: tuple[Experiment, Experiment]
) -> None:
    base, candidate = pair
    text = page(as_viewer, f"/experiments/{candidate.pk}/")
    assert "Rejected: loses cases that the baseline solves; 0 of 1 cases solved." in text
    assert "0 are gained and 1 is lost" in text
    assert f'href="/experiments/{base.pk}/"' in text
    for rollout in (*base.rollouts.all(), *candidate.rollouts.all()):
        assert f'href="/rollouts/{rollout.pk}/"' in text
    assert "− lost" in text
    assert "deterministic" in text
    assert "&quot;outcome&quot;: &quot;rejected&quot;" in text


def test_an_experiment_without_rollouts_shows_what_is_stated(as_viewer: Client) -> None:
    made = store_record(ExperimentRecord("e\udcff", baseline="elsewhere", facts={"<script>": "\x00\udcff"}))
    text = page(as_viewer, f"/experiments/{made.pk}/")
    assert "No rollout of it is here" in text
    assert "elsewhere" in text
    assert "&lt;script&gt;" in text


def test_a_cancelled_experiment_says_so_on_its_page_and_in_the_list(as_viewer: Client) -> None:
    made = measured("stopped", Outcome.SOLVED, kind=ExperimentKind.EVAL)
    Experiment.objects.filter(pk=made.pk).update(state=State.CANCELLED)
    assert "An evaluation, cancelled before its end; 1 of 1 cases solved." in page(
        as_viewer, f"/experiments/{made.pk}/"
    )
    assert ">cancelled</span>" in page(as_viewer, "/experiments/")


def test_a_hostile_case_name_finds_its_certificate(as_viewer: Client) -> None:
    odd, long = '<script>alert("1")</script>\udc80\x00', "L" * 500
    certification: dict[str, Any] = {odd: {"verdict": "forked"}, long: {"verdict": "no_chain"}}
    made = store_record(ExperimentRecord("odd", project="tests", certification=certification))
    for case in (odd, long):
        store_recording(recording(case=case, experiment="odd", project="tests"), None)
    refresh([made.pk])
    text = page(as_viewer, f"/experiments/{made.pk}/")
    assert "&lt;script&gt;alert(" in text
    found = {row.case: row.certificate for row in queries.experiment_view(made.pk).cases}
    assert sorted(found.values()) == ["forked", "no_chain"]
    assert page(as_viewer, f"/projects/{made.project_id}/")


def test_an_experiment_that_is_not_there_is_not_found(as_viewer: Client) -> None:
    assert as_viewer.get("/experiments/99/").status_code == 404
