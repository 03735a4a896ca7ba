"""The queue shows what runs, what waits and in which order, and what has ended; it changes in place."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from harnesslab.core.running.rerun import Mode, RerunPlan
from harnesslab.store.models import Job, JobState
from tests import live
from tests.pages.reading import text

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_wake_up")]
PART = {"HX-Request": "true"}


def test_an_empty_queue_says_what_would_be_here(as_viewer: Client) -> None:
    page = text(as_viewer, "/jobs/")
    assert "Nothing has been queued yet." in page
    assert "press r" in page


def test_running_comes_first_with_progress_then_what_waits_with_its_place_then_what_ended(as_operator: Client) -> None:
    rerun = live.asked(live.rerunnable(), RerunPlan(mode=Mode.LIVE, attempts=4))
    live.attempted(rerun, 0, same=True)
    live.running(rerun, 1)
    page = text(as_operator, "/jobs/")
    assert "1 job runs, 2 wait." in page
    assert page.index("Running") < page.index("Waiting") < page.index("Ended")
    assert "step 2: 20 tokens, 9.5 tokens/s" in page
    raw = as_operator.get("/jobs/").content.decode()
    assert '<progress max="100" value="17" title="2 of at most 12"' in raw
    assert raw.count(f'<a href="/reruns/{rerun.pk}/">') == 4
    places = re.findall(r'data-label="place">(\d+)<td class="n" data-label="job"><a id="job-(\d+)"', raw)
    assert [place for place, _ in places] == ["1", "2"]


def test_a_kind_is_shown_alone(as_viewer: Client) -> None:
    live.asked(live.rerunnable(), RerunPlan(mode=Mode.LIVE))
    Job.objects.create(kind="import", state=JobState.DONE, ended_at=timezone.now())
    assert "import 1 ended" in text(as_viewer, "/jobs/")
    only = text(as_viewer, "/jobs/?kind=import", **PART)
    assert "Waiting" not in only
    assert "There is no job of this kind" in text(as_viewer, "/jobs/?kind=nothing")


def test_cancelling_needs_an_operator_and_ends_a_waiting_job_at_once(as_viewer: Client, as_operator: Client) -> None:
    live.asked(live.rerunnable(), RerunPlan(mode=Mode.LIVE))
    job = Job.objects.get()
    assert "cancel" not in text(as_viewer, "/jobs/", **PART)
    assert "cancel" in text(as_operator, "/jobs/", **PART)
    page = as_operator.post(f"/jobs/{job.pk}/cancel/", follow=True).content.decode()
    assert "cancelled before it began" in page
    assert as_operator.get(f"/jobs/{job.pk}/", headers=PART).status_code == 286


def test_more_jobs_take_no_more_queries(as_viewer: Client) -> None:
    rerun = live.asked(live.rerunnable(), RerunPlan(mode=Mode.LIVE, attempts=3))
    live.running(rerun, 0)

    def count() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert as_viewer.get("/jobs/").status_code == 200
        return len(captured)

    few = count()
    again = live.asked(rerun.parent, RerunPlan(mode=Mode.LIVE, attempts=20))
    live.running(again, 0)
    live.attempted(again, 1, same=True)
    assert count() == few <= 9
