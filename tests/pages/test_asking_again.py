"""Asking for a rerun once more: by the same form, by a form changed after going back, and by its button."""

from __future__ import annotations

import html
import re

import pytest
from django.test import Client

from harnesslab.core.running.rerun import Mode, OnMiss, RerunPlan, Switch
from harnesslab.core.running.rollout import Outcome
from harnesslab.pages.reruns.plans import form_of, plan_from_form
from harnesslab.store.models import Rerun, Rollout
from tests import live

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_wake_up")]

PLANS = [
    RerunPlan(mode=Mode.LIVE, attempts=4, seed="drawn", engine="E", revision="r2", temperature=0.5, max_tokens=9),
    RerunPlan(mode=Mode.LIVE, from_step=2, seed="17", temperature=0.0),
    RerunPlan(mode=Mode.HYBRID, switches={"tool:run": Switch.LIVE, "model": Switch.FAIL}, on_miss=OnMiss.LIVE),
    RerunPlan(mode=Mode.RECORDED, self_test=True),
]


@pytest.mark.parametrize("plan", PLANS)
def test_a_plan_becomes_the_form_that_states_it(plan: RerunPlan) -> None:
    assert plan_from_form(form_of(plan)) == plan


def test_the_button_asks_for_the_whole_plan_again(as_operator: Client) -> None:
    rerun = live.asked(live.rerunnable(), PLANS[0])
    page = html.unescape(as_operator.get(f"/reruns/{rerun.pk}/").content.decode())
    address = re.search(r'data-rerun href="([^"]+)"', page)
    assert address is not None
    form = as_operator.get(address.group(1)).content.decode()
    for field in ('value="drawn" selected', 'value="E" selected', 'value="r2"', 'value="0.5"', 'value="4"'):
        assert field in form


def test_a_form_changed_after_going_back_is_another_rerun(as_operator: Client) -> None:
    place = f"/rollouts/{live.rerunnable().pk}/rerun/"
    sent = {"mode": "live", "attempts": "2", "seed": "same", "key": "as the page had it"}
    for values in (sent, sent, {**sent, "seed": "drawn"}, {**sent, "seed": "drawn"}):
        assert as_operator.post(place, values).status_code == 302
    assert [rerun.plan.get("seed", "same") for rerun in Rerun.objects.order_by("pk")] == ["same", "drawn"]


def test_an_attempt_that_asked_nothing_is_compared_at_a_level_it_has(as_operator: Client) -> None:
    rerun = live.asked(live.rerunnable(), RerunPlan(mode=Mode.LIVE))
    made = live.attempted(rerun, 0, same=False, outcome=Outcome.INTERRUPTED)
    assert "&level=" in html.unescape(as_operator.get(f"/reruns/{rerun.pk}/").content.decode())
    Rollout.objects.filter(pk=made.pk).update(output_tokens=None)
    page = html.unescape(as_operator.get(f"/reruns/{rerun.pk}/").content.decode())
    assert f"b={made.pk}" in page
    assert "&level=" not in page
