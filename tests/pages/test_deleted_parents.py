"""What becomes of a rollout's reruns when it is deleted."""

from __future__ import annotations

import html
import re

import pytest
from django.test import Client

from harnesslab.accounts.models import User
from harnesslab.actions.annotations import delete_rollout
from harnesslab.core.errors import Conflict
from harnesslab.core.running.rollout import Outcome
from harnesslab.store.models import Job, JobState, Rollout
from tests import live

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_wake_up")]


def test_its_attempts_are_cancelled_and_a_page_that_follows_them_stops(admin: User, as_operator: Client) -> None:
    rerun = live.asked(live.rerunnable())
    job = live.running(rerun, 0)
    delete_rollout(admin, rerun.parent_id, "recorded by mistake")
    job.refresh_from_db()
    assert job.cancel_requested
    assert set(Job.objects.exclude(pk=job.pk).values_list("state", flat=True)) == {JobState.CANCELLED}
    place = f"/reruns/{rerun.pk}/"
    part = as_operator.get(place, headers={"HX-Request": "true"})
    assert (part.status_code, as_operator.get(place).status_code) == (286, 404)
    assert "its rollout was deleted" in part.content.decode()


def test_what_its_attempts_made_stays_out_of_the_cases_rate(admin: User, as_viewer: Client) -> None:
    live.rerunnable(trial=1)
    rerun = live.asked(live.rerunnable())
    for attempt in range(3):
        live.attempted(rerun, attempt, same=False, outcome=Outcome.FAILED_VERIFICATION)
    delete_rollout(admin, rerun.parent_id, "recorded by mistake")
    assert Rollout.objects.filter(rerun=None).count() == 4
    page = html.unescape(re.sub(r"<[^>]*>", "", as_viewer.get("/rollouts/?by=case").content.decode()))
    assert "1 distinct path over 1 trial · 3 rollouts of reruns beside, not counted" in page
    assert "1/1" in as_viewer.get("/").content.decode()


def test_one_that_still_runs_is_not_deleted(admin: User) -> None:
    rerun = live.asked(live.rerunnable())
    job = live.running(rerun, 0)
    rollout = live.rerunnable(trial=1)
    Rollout.objects.filter(pk=rollout.pk).update(head=None, job=job)
    with pytest.raises(Conflict, match="still runs"):
        delete_rollout(admin, rollout.pk, "recorded by mistake")
    Job.objects.filter(pk=job.pk).update(state=JobState.DONE)
    delete_rollout(admin, rollout.pk, "recorded by mistake")
