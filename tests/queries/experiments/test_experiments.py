"""Experiments as they are read: beside their baseline on the cases that both have, newest first."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from harnesslab.actions.experiments.sources import refresh, store_record
from harnesslab.actions.rollouts.storing import store_recording
from harnesslab.core.errors import InvalidValue, NotFound
from harnesslab.core.measuring.experiments import ExperimentKind, ExperimentRecord, Verdict
from harnesslab.core.running.rollout import Outcome
from harnesslab.queries.experiments import listing as queries
from harnesslab.queries.experiments.filters import ExperimentFilter
from harnesslab.store.models import Experiment
from tests.recordings import recording

pytestmark = pytest.mark.django_db
SOLVED, FAILED = Outcome.SOLVED, Outcome.FAILED_VERIFICATION
START = datetime(2026, 1, 1, tzinfo=UTC)


def measured(name: str, outcomes: dict[str, Outcome], **record: Any) -> Experiment:
    row = store_record(ExperimentRecord(name, project="tests", **record))
    for case, outcome in outcomes.items():
        store_recording(recording(case=case, outcome=outcome, experiment=name), None)
    refresh([row.pk])
    row.refresh_from_db()
    return row


def pair() -> tuple[Experiment, Experiment]:
    base = measured(
        "base",
        {"a": SOLVED, "b": SOLVED, "c": FAILED, "only-base": SOLVED},
        kind=ExperimentKind.BASELINE,
        certification={"a": {"verdict": "deterministic"}, "only-base": {"verdict": "forked"}},
    )
    outcomes = {"a": SOLVED, "b": FAILED, "c": SOLVED, "new": SOLVED}
    return base, measured("next", outcomes, baseline="base", kind=ExperimentKind.CANDIDATE, verdict=Verdict.REJECTED)


def row(experiment: Experiment) -> queries.ExperimentRow:
    return queries.experiment_view(experiment.pk).row


def test_the_difference_is_of_the_cases_that_both_have() -> None:
    _, candidate = pair()
    found = row(candidate)
    assert (found.solved, found.total) == (3, 4)
    assert (found.delta, found.gained, found.lost, found.common) == (0, 1, 1, 3)


def test_lost_cases_come_first_and_each_names_its_certificate() -> None:
    _, candidate = pair()
    cases = queries.experiment_view(candidate.pk).cases
    assert [(case.case, case.change, case.certificate) for case in cases] == [
        ("b", "lost", ""),
        ("c", "gained", ""),
        ("a", "kept", "deterministic"),
        ("new", "", ""),
        ("only-base", "", "forked"),
    ]


def test_without_rollouts_the_difference_is_of_what_was_stated() -> None:
    store_record(ExperimentRecord("base", solved=3, total=9))
    found = row(store_record(ExperimentRecord("next", baseline="base", solved=5, total=9)))
    assert (found.delta, found.common) == (2, None)


def test_a_case_that_ran_again_counts_once() -> None:
    base = measured("base", {"a": FAILED})
    again = store_recording(recording(case="a", outcome=SOLVED, experiment="base"), None)
    (case,) = queries.experiment_view(base.pk).cases
    assert [cell.rollout for cell in case.cells] == [again.pk]
    assert len(case.cells[0].superseded) == 1


def test_pages_follow_each_other_without_a_gap_or_a_repeat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "PAGE", 2)
    for number in range(5):
        started = START + timedelta(hours=number // 2)  # some at the same time
        store_record(ExperimentRecord(f"e{number}", started_at=started))
    names, after = [], ""
    for _ in range(3):
        page = queries.experiment_page(ExperimentFilter(), after)
        names += [item.external_id for item in page.rows]
        after = page.next
    assert (names, after, page.count) == (["e4", "e3", "e2", "e1", "e0"], "", 5)


def test_filters_take_what_was_not_decided_too() -> None:
    pair()
    for query, names in (
        ({"decision": "rejected"}, ["next"]),
        ({"decision": "none"}, ["base"]),
        ({"kind": "candidate", "project": "tests"}, ["next"]),
        ({"project": "another"}, []),
    ):
        found = queries.all_experiments(ExperimentFilter.of(query))
        assert [item.external_id for item in found] == names
    counts = queries.experiment_counts(ExperimentFilter(decision="rejected"))
    assert (counts.all, counts.rejected) == (1, 1)
    assert counts.by["decision"] == {"none": 1, "rejected": 1}


def test_what_is_not_there_or_no_filter_is_said() -> None:
    with pytest.raises(NotFound, match="no experiment 99"):
        queries.get_experiment(99)
    with pytest.raises(InvalidValue, match="no such kind"):
        ExperimentFilter.of({"kind": "odd"})
    with pytest.raises(InvalidValue, match="no position"):
        queries.experiment_page(ExperimentFilter(), "yesterday~1")


def test_a_list_takes_as_many_queries_for_many_as_for_few(django_assert_max_num_queries: Any) -> None:
    pair()
    for number in range(20):
        store_record(ExperimentRecord(f"e{number}", project="tests", baseline="base"))
    with django_assert_max_num_queries(3):
        queries.experiment_page(ExperimentFilter())
