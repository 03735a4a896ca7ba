"""A regression case is made from a step, measured under revisions, and says what the measurements show together."""

from __future__ import annotations

import html
import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from harnesslab.core.running.rerun import Mode, RerunPlan
from harnesslab.core.running.rollout import Outcome
from harnesslab.store.models import RegressionCase, Rerun
from tests import live
from tests.pages.reading import text

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_wake_up")]
MADE = {"name": "no cat", "step": "2", "what": "argument", "tool": "run", "argument": "command", "steps": "1"}


def case(client: Client) -> RegressionCase:
    rollout = live.rerunnable()
    client.post(f"/rollouts/{rollout.pk}/regression/", {**MADE, "holds": "cat"})
    return RegressionCase.objects.get()


def measured(found: RegressionCase, revision: str, bad: int, n: int, seed: str = "same") -> Rerun:
    asked = live.asked(
        found.parent, RerunPlan(mode=Mode.LIVE, from_step=1, attempts=n, revision=revision, seed=seed), regression=found
    )
    for attempt in range(n):
        live.attempted(asked, attempt, same=None, bad=attempt < bad, outcome=Outcome.FAILED_VERIFICATION)
    return asked


def test_a_step_leads_to_a_form_that_is_filled_from_its_tool_call(as_operator: Client) -> None:
    rollout = live.rerunnable()
    assert "make a regression case" in text(as_operator, f"/rollouts/{rollout.pk}/?step=2")
    page = as_operator.get(f"/rollouts/{rollout.pk}/regression/?step=2").content.decode()
    assert "<option selected>argument" in page
    for value in ("run", "command"):
        assert f'value="{value}"' in page
    assert ">cat a.txt</textarea>" in page


def test_a_made_case_shows_its_prefix_and_its_predicate_in_words(as_operator: Client) -> None:
    found = case(as_operator)
    assert (found.from_step, found.predicate["holds"]) == (1, "cat")
    page = text(as_operator, f"/regressions/{found.pk}/")
    assert "What must not happen from step 2 on: calls run with command holding 'cat' at that step" in page
    assert re.search(r"run ls → .*output of ls", page)
    assert "Not measured yet" in page
    assert "no cat" in text(as_operator, "/regressions/")


@pytest.mark.parametrize(
    ("change", "status", "said"),
    [
        ({"holds": "never there"}, 400, "does not meet it"),
        ({"holds": ""}, 400, "which text?"),
        ({"name": " "}, 400, "needs a name"),
        ({"what": "nonsense"}, 400, "one of"),
        ({"step": "0"}, 400, "no whole number from 1"),
        ({"step": "9"}, 400, "has no such step"),
    ],
)
def test_a_case_that_the_recording_does_not_meet_is_refused(
    as_operator: Client, change: dict[str, str], status: int, said: str
) -> None:
    rollout = live.rerunnable()
    answer = as_operator.post(f"/rollouts/{rollout.pk}/regression/", {**MADE, "holds": "cat", **change})
    assert answer.status_code == status
    assert said in html.unescape(answer.content.decode())
    assert not RegressionCase.objects.exists()


def test_two_revisions_make_the_headline(as_operator: Client) -> None:
    found = case(as_operator)
    measured(found, "", 3, 10, seed="drawn")
    page = text(as_operator, f"/regressions/{found.pk}/")
    assert "3/10, 95 % CI 11–60 % under the recorded revision, live, drawn seeds" in page
    assert "Not measured yet under another revision" in page
    assert as_operator.get(f"/regressions/{found.pk}/", headers={"HX-Request": "true"}).status_code == 286
    measured(found, "r2", 0, 10, seed="drawn")
    page = text(as_operator, f"/regressions/{found.pk}/")
    before, after = "Fails before the change (3/10, 95 % CI 11–60 %)", "passes after it (0/10, 95 % CI 0–28 %)"
    assert f"{before}, {after}; live, drawn seeds." in page
    assert "The intervals overlap" in page


def test_unlike_populations_are_never_set_side_by_side(as_operator: Client) -> None:
    found = case(as_operator)
    measured(found, "", 3, 10, seed="drawn")
    measured(found, "r2", 0, 10, seed="same")
    assert "passes after" not in text(as_operator, f"/regressions/{found.pk}/")


def test_passing_before_and_after_shows_nothing(as_operator: Client) -> None:
    found = case(as_operator)
    measured(found, "", 0, 4)
    measured(found, "r2", 0, 4)
    assert "shows nothing" in text(as_operator, f"/regressions/{found.pk}/")


def test_measuring_twice_with_one_form_makes_one_rerun(as_operator: Client) -> None:
    found = case(as_operator)
    place = f"/regressions/{found.pk}/measure/"
    sent = {"revision": "", "attempts": "2", "seed": "drawn", "key": "k"}
    assert as_operator.post(place, sent).headers["Location"] == as_operator.post(place, sent).headers["Location"]
    assert Rerun.objects.get().plan["from_step"] == 1
    assert 'hx-trigger="every 2s"' in as_operator.get(f"/regressions/{found.pk}/").content.decode()
    assert "Being measured" in text(as_operator, f"/regressions/{found.pk}/")
    assert as_operator.post(place, {**sent, "attempts": "0", "key": "other"}).status_code == 400


def test_viewers_read_and_do_not_make_or_measure(as_viewer: Client, as_operator: Client) -> None:
    found = case(as_operator)
    assert "Measure it" not in text(as_viewer, f"/regressions/{found.pk}/")
    assert as_viewer.post(f"/regressions/{found.pk}/measure/", {"attempts": "1"}).status_code == 403
    assert as_viewer.get(f"/rollouts/{found.parent_id}/regression/").status_code == 403


def test_more_cases_and_measurements_take_no_more_queries(as_operator: Client) -> None:
    found = case(as_operator)
    measured(found, "", 1, 2)

    def count(address: str) -> int:
        with CaptureQueriesContext(connection) as captured:
            assert as_operator.get(address).status_code == 200
        return len(captured)

    few, one = count("/regressions/"), count(f"/regressions/{found.pk}/")
    for number in range(3):
        as_operator.post(f"/rollouts/{found.parent_id}/regression/", {**MADE, "holds": "cat", "name": f"case {number}"})
        measured(found, "r2", 1, 2)
    assert count("/regressions/") == few <= 7
    assert count(f"/regressions/{found.pk}/") == one <= 14
