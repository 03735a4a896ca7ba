"""The queue as it is read: places, counts of all however few are shown, and what each job belongs to."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from harnesslab.actions.rollouts.storing import store_recording
from harnesslab.core.errors import NotFound
from harnesslab.queries.jobs import listing
from harnesslab.queries.jobs.groups import audits_group, proposals_group, rollouts_group
from harnesslab.queries.jobs.listing import job_row, jobs_of_groups, queue_page
from harnesslab.store.models import Job, JobState, Rollout
from tests.recordings import recording

pytestmark = pytest.mark.django_db


def job(kind: str = "rollout", **fields: Any) -> Job:
    return Job.objects.create(kind=kind, **fields)


def test_an_empty_queue_and_an_idle_one_are_told_apart() -> None:
    assert queue_page().sentence == "Nothing has been queued yet."
    job(state=JobState.DONE)
    assert queue_page().sentence == "Nothing runs and nothing waits."
    job(state=JobState.RUNNING, started_at=timezone.now())
    assert queue_page().sentence == "1 job runs, 0 wait."
    for _ in range(2):
        job("certify")
    assert queue_page().sentence == "1 job runs, 2 wait."


def test_places_are_counted_in_each_queue_over_all_kinds() -> None:
    for kind, queue in (("import", "cpu"), ("rollout", "gpu"), ("certify", "cpu"), ("rollout", "gpu")):
        job(kind, queue=queue)
    assert [(place, row.kind) for place, row in queue_page().waiting] == [
        (1, "import"),
        (1, "rollout"),
        (2, "certify"),
        (2, "rollout"),
    ]
    assert [place for place, _ in queue_page("certify").waiting] == [2]


def test_counts_are_of_all_jobs_though_only_some_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "MOST_WAITING", 2)
    for state in [JobState.QUEUED] * 3 + [JobState.DONE, JobState.FAILED, JobState.CANCELLED]:
        job(state=state)
    page = queue_page(ended=1)
    assert (len(page.waiting), [row.state for row in page.ended]) == (2, ["cancelled"])
    (count,) = page.kinds
    assert (count.running, count.waiting, count.ended) == (0, 3, 3)
    assert queue_page("none such").kinds == page.kinds


def test_a_job_names_what_it_belongs_to_and_nothing_that_only_looks_so() -> None:
    rows = {
        group: job_row(job(group=group).pk)
        for group in (rollouts_group(3), audits_group(4), proposals_group(5), "rerun 6", "engine 7", "rerun x", "rerun")
    }
    assert rows["experiment 3"].experiment == 3
    assert rows[audits_group(4)].experiment == 4
    assert rows[proposals_group(5)].training is None  # that iteration is gone
    assert (rows["rerun 6"].rerun, rows["engine 7"].engine) == (6, 7)
    assert (rows["rerun x"].rerun, rows["rerun"].rerun) == (None, None)


def test_progress_is_a_percentage_only_of_a_known_total() -> None:
    assert job_row(job(done=5, total=None).pk).percent is None
    assert job_row(job(done=5, total=0).pk).percent is None
    assert job_row(job(done=0, total=4).pk).percent == 0
    assert job_row(job(done=9, total=4).pk).percent == 100


def test_time_runs_from_the_start_to_the_end_and_is_unknown_before() -> None:
    begun = timezone.now() - timedelta(hours=1)
    assert job_row(job().pk).elapsed is None
    over = job(state=JobState.DONE, started_at=begun, ended_at=begun + timedelta(seconds=5))
    assert job_row(over.pk).elapsed == 5
    running = job_row(job(state=JobState.RUNNING, started_at=begun).pk)
    assert running.elapsed is not None
    assert running.elapsed >= 3600


def test_a_case_is_read_of_a_payload_and_the_newest_rollout_of_a_job() -> None:
    hostile = '<script>"x"</script>'
    made = job(payload={"recipe": {"case": {"name": hostile}}})
    rows = [store_recording(recording(trial=trial), None) for trial in range(2)]
    Rollout.objects.update(job=made)
    row = job_row(made.pk)
    assert (row.case, row.rollout) == (hostile, rows[1].pk)
    assert job_row(job(payload={"case": "b"}, result={"rollout": 8}).pk).rollout == 8
    assert job_row(job(result={"rollout": "x"}).pk).rollout is None


def test_jobs_of_groups_are_by_attempt_the_last_of_each() -> None:
    job(group="rerun 1", payload={"attempt": 0})
    last = job(group="rerun 1", payload={"attempt": 0})
    other = job(group="rerun 2", payload={"attempt": 1})
    found = jobs_of_groups(["rerun 1", "rerun 2", "rerun 3"])
    assert {group: {n: row.id for n, row in rows.items()} for group, rows in found.items()} == {
        "rerun 1": {0: last.pk},
        "rerun 2": {1: other.pk},
    }


def test_the_queue_takes_as_many_queries_for_many_as_for_few(django_assert_max_num_queries: Any) -> None:
    for state in JobState.values:
        job(state=state, group="propose 1", started_at=timezone.now())
    with django_assert_max_num_queries(7):
        queue_page()
    for number in range(30):
        job(state=JobState.values[number % 5], group=f"propose {number}", started_at=timezone.now())
    with django_assert_max_num_queries(7):
        queue_page()
    with pytest.raises(NotFound, match="there is no job 999"):
        job_row(999)
