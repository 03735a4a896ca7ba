"""Experiments side by side and the evaluation grid: refusals, tests, rates, training cases."""

from __future__ import annotations

from html import unescape
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from harnesslab.core.measuring.attribution import Attribution, DifferenceOrigin
from harnesslab.core.measuring.experiments import ExperimentKind, Verdict
from harnesslab.core.running.rollout import Outcome
from harnesslab.queries.experiments import outcome_matrix
from harnesslab.store.models import Experiment
from harnesslab.store.text import frozen
from tests.pages.experiments import FAILED, HOSTILE, SOLVED, lineage, measured

pytestmark = pytest.mark.django_db


def page(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, answer.content[:500]
    return unescape(answer.content.decode())


def asked(*rows: Experiment, rest: str = "") -> str:
    return "?" + "&".join(f"e={row.pk}" for row in rows) + rest


def test_a_comparison_says_what_is_gained_and_lost_with_its_test_and_what_was_selected(as_viewer: Client) -> None:
    base, worse, better, *_ = lineage()
    text = page(as_viewer, f"/experiments/compare/{asked(base, better, worse)}")
    assert "B solves 1 that A doesn't and loses 0, of 2 cases that both measured (exact McNemar, p = 1)" in text
    assert "C solves 0 that A doesn't and loses 1" in text
    assert text.count("selected among 2 candidates on these same cases") == 1
    assert "2 that differ" in text
    found = as_viewer.get(f"/api/v1/experiments/compare{asked(base, better)}").json()
    assert found["contenders"][1]["selected_among"] == 2
    assert found["against"][0]["test"]["gained"] == 1
    assert [case["case"] for case in found["cases"] if case["differs"]] == ["two"]


def test_other_conditions_are_no_comparison_and_their_test_is_withheld(as_viewer: Client) -> None:
    a = measured("a", {"one": SOLVED, HOSTILE: FAILED})
    b = measured("b", {"one": FAILED, HOSTILE: FAILED}, conditions={"model.name": "<b>m-2</b>"})
    raw = as_viewer.get(f"/experiments/compare/{asked(a, b)}").content.decode()
    assert "<b>m-2" not in raw
    assert "<script>alert" not in raw
    assert "B and A are no comparison" in raw
    assert "p = " not in raw
    assert "exact McNemar, two-sided p = 1" in page(as_viewer, f"/experiments/compare/{asked(a, b, rest='&anyway=1')}")


def test_what_can_not_be_compared_gets_a_sentence(as_viewer: Client) -> None:
    row = measured("a", {"one": SOLVED})
    for query in ("", asked(row), asked(row, row), "?e=x&e=1", asked(*[row] * 1, rest="&e=")):
        assert as_viewer.get(f"/experiments/compare/{query}").status_code == 400
        assert as_viewer.get(f"/api/v1/experiments/compare{query}").status_code == 400
    assert as_viewer.get(f"/experiments/compare/{asked(row)}&e=999").status_code == 404


def test_the_grid_sets_baseline_and_trained_side_by_side_and_subtracts_training_cases(as_viewer: Client) -> None:
    base, *_ = lineage()
    extra = {"one": SOLVED, "held out": SOLVED, "refused": Outcome.REFUSED, "left": Outcome.NOT_RUN}
    measured("eval", extra, kind=ExperimentKind.EVAL, revision="c" * 40)
    address = f"/experiments/grid/?project={base.project_id}"
    text = page(as_viewer, address)
    assert "2 harness revisions" in text
    assert "selected among 2 candidates" in text
    assert "<b>2/3</b>" in text
    assert "1 refused, 1 not run" in text
    found = as_viewer.get(f"/api/v1/experiments/grid?project={base.project_id}&subtract=true").json()
    assert found["training"] == ["one", "two"]
    rates = [(cell["rate"]["trials"]["k"], cell["rate"]["trials"]["n"]) for cell in found["rows"][0]["cells"]]
    assert rates == [(0, 1), (1, 2)]
    chosen = as_viewer.get(f"/api/v1/experiments/grid?project=tests&r={'b' * 40}").json()
    assert [each["revision"] for each in chosen["revisions"] if each["chosen"]] == ["b" * 40]
    assert as_viewer.get(address + "&format=csv&table=grid").status_code == 200
    assert as_viewer.get("/experiments/grid/?project=none").status_code == 404


def attributed(base: Experiment, row: Experiment) -> dict[str, Any]:
    """What our own worker keeps of a decision in which one case flipped."""
    a, b = (each.rollouts.get(case__name="one").pk for each in (base, row))
    outcomes = ("solved", "failed_verification")
    where: dict[str, Any] = {"flipped": True, "step": 1, "boundary": "harness", "cause": "declared"}
    flip = Attribution("one", 0, a, b, outcomes, DifferenceOrigin.HARNESS, **where)
    return {"regressions": ["one"], "attribution": [flip.to_json()], "excluded": {"odd": "forked"}, "provisional": True}


def test_an_experiment_shows_every_reason_where_it_parts_and_how_outcomes_moved(as_viewer: Client) -> None:
    base, worse, *_ = lineage()
    worse.decision = frozen(attributed(base, worse))
    worse.save()
    text = page(as_viewer, f"/experiments/{worse.pk}/")
    assert "1 of 1 flip attributable to the change." in text
    assert "step 2, harness" in text
    assert "odd (forked)" in text
    a, b = (each.rollouts.get(case__name="one").pk for each in (base, worse))
    assert f"/compare/?a={a}&b={b}" in text
    assert "3 cases and trials, each counted once." in text
    assert "The environment of 1 of 2 cases repeats" in text
    for name in ("transitions", "matrix"):
        assert as_viewer.get(f"/experiments/{worse.pk}/?format=csv&table={name}").status_code == 200


def test_the_card_says_what_measuring_the_baseline_again_flipped(as_viewer: Client) -> None:
    *_, again, same = lineage()
    later = measured(
        "later", {"one": SOLVED}, kind=ExperimentKind.CANDIDATE, verdict=Verdict.REJECTED, baseline="again"
    )
    for row in (same, later):
        text = page(as_viewer, f"/experiments/{row.pk}/")
        assert "Measured again unchanged (same): 1 of 2 cases flipped by nothing: two." in text
    assert "flipped by nothing" not in page(as_viewer, f"/experiments/{again.pk}/")


def test_a_long_panel_is_shown_window_by_window_and_its_queries_stay_the_same(
    as_viewer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, worse, *_ = lineage()

    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            page(as_viewer, f"/experiments/{worse.pk}/")
        return len(captured)

    few = queries()
    measured("more", {f"case {number}": SOLVED for number in range(6)}, verdict="rejected", baseline="base")
    assert queries() == few <= 20
    monkeypatch.setattr(outcome_matrix, "ROWS", 2)
    first = outcome_matrix.outcome_matrix(worse, most=2)
    assert ([row.case for row in first.rows], first.rows[0].change, first.cases) == (["one", "case 0"], "lost", 9)
    rest = outcome_matrix.outcome_matrix(worse, start=8, most=2)
    assert (rest.start, rest.end) == (8, 9)
