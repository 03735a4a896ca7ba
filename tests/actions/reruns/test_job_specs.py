"""Orders of rollouts: what a worker is to run survives every database as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from harnesslab.actions.experiments import measurements
from harnesslab.core.errors import InvalidValue
from harnesslab.core.measuring.experiments import MeasuringPlan
from harnesslab.core.running.cases import CaseDefinition
from harnesslab.queries.reruns.job_specs import load
from harnesslab.store.models import Job
from tests import live, measuring

pytestmark = pytest.mark.django_db


@pytest.fixture
def woken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The jobs that workers were woken for."""
    woken_ids: list[int] = []
    monkeypatch.setattr("harnesslab.queue.wake", lambda job_id, _: woken_ids.append(job_id))
    return woken_ids


@pytest.mark.parametrize(
    "case",
    [
        CaseDefinition("a", "x\0y"),
        CaseDefinition("a", "half \ud800", {"f": "\0\udcff"}),
        CaseDefinition("a", "a backslash: \\u0000 \\ud800"),
    ],
)
def test_hostile_text_reaches_the_worker_as_it_was_written(
    tmp_path: Path, woken: list[int], case: CaseDefinition
) -> None:
    row = measuring.project(tmp_path)
    measurements.measure(row, "main", measuring.panel(case), MeasuringPlan(live.ENGINE))
    (job,) = Job.objects.filter(payload__recipe__case__name="a")
    assert load(job.payload).recipe.case == case


@pytest.mark.parametrize("name", ["", "a\0b", "half \ud800", "two\nlines", "x" * 256])
def test_a_case_has_a_name_that_every_table_and_page_takes(name: str) -> None:
    with pytest.raises(InvalidValue, match="no name of a case"):
        measuring.panel(CaseDefinition(name, "x"))


def test_many_are_queued_in_few_statements_and_rung_for_a_few(
    tmp_path: Path,
    woken: list[int],
    django_assert_max_num_queries: object,
    django_capture_on_commit_callbacks: object,
) -> None:
    row = measuring.project(tmp_path)
    panel = measuring.panel(*(CaseDefinition(f"case {number}", "x") for number in range(50)))
    with django_capture_on_commit_callbacks(execute=True), django_assert_max_num_queries(30):  # type: ignore[operator]
        measurements.measure(row, "main", panel, MeasuringPlan(live.ENGINE, trials=10))
    assert Job.objects.count() == 500
    assert woken == list(Job.objects.order_by("pk").values_list("pk", flat=True)[:16])
