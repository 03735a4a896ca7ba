"""Reruns with their attempts: what came of each, the rate with what is left out, and what a worker gets."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from harnesslab.actions.reruns.job_specs import conclude
from harnesslab.actions.rollouts.storing import store_recording
from harnesslab.core.errors import Conflict, InvalidValue, NotFound
from harnesslab.core.running.rerun import Mode, RerunPlan
from harnesslab.core.running.rollout import Origin, Outcome
from harnesslab.queries.reruns.job_specs import load, payload_of
from harnesslab.queries.reruns.listing import (
    changed,
    get_rerun,
    plan_from,
    recent_reruns,
    recipe_of,
    rerun_view,
    reruns_of,
)
from harnesslab.store.models import Job, JobState, Rerun, Rollout
from tests import live
from tests.recordings import COMMANDS, recording

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_wake_up")]


def asked(attempts: int = 3, **plan: Any) -> Rerun:
    return live.asked(live.rerunnable(), RerunPlan(**{"mode": Mode.LIVE, "attempts": attempts, **plan}))


def test_a_rate_is_of_the_attempts_that_can_be_said_with_the_others_beside_it() -> None:
    rerun = asked(5)
    live.attempted(rerun, 0, same=True)
    live.attempted(rerun, 1, same=False)
    live.attempted(rerun, 2, same=None)
    live.attempted(rerun, 3, same=None, outcome=Outcome.INFRA_ERROR)
    view = rerun_view(rerun.pk)
    assert view.same is not None
    assert (view.same.k, view.same.n, dict(view.same.excluded)) == (1, 2, {"can't be said": 1, "infra_error": 1})
    assert (view.solved.k, view.solved.n, dict(view.solved.excluded)) == (3, 3, {"infra_error": 1})
    assert view.sentence.startswith("Intermittent, 1/2 (95 % CI ")
    assert view.sentence.endswith("1 of 5 attempts is still to come.")
    assert (view.ended, [row.rollout is None for row in view.attempts]) == (False, [False] * 4 + [True])


@pytest.mark.parametrize(
    ("same", "word"),
    [
        ([True], "Went as the parent, 1/1"),
        ([True, True], "Went as the parent every time, 2/2"),
        ([False, False], "Never went as the parent, 0/2"),
        ([True, False], "Intermittent, 1/2"),
        ([None, None], "No attempt has ended that counts"),
    ],
)
def test_a_finding_says_how_many_of_how_many(same: list[bool | None], word: str) -> None:
    rerun = asked(len(same))
    for attempt, each in enumerate(same):
        live.attempted(rerun, attempt, same=each)
    view = rerun_view(rerun.pk)
    assert view.sentence.startswith(word)
    assert "fixed seed" in view.sentence
    assert view.ended


def test_before_the_first_has_ended_nothing_is_said_of_the_parent() -> None:
    view = rerun_view(asked().pk)
    assert view.sentence.startswith("No attempt has ended yet; live")
    assert (view.same is not None and view.same.n, view.solved.n, view.solved.value) == (0, 0, None)
    assert [row.same for row in view.attempts] == [None] * 3


def test_of_an_attempt_that_was_made_again_the_last_one_counts() -> None:
    rerun = asked(1)
    live.attempted(rerun, 0, same=None, outcome=Outcome.INTERRUPTED)
    last = live.attempted(rerun, 0, same=True)
    (row,) = rerun_view(rerun.pk).attempts
    assert row.rollout is not None
    assert (row.rollout.id, row.same, row.status) == (last.pk, True, "as the parent")


def test_a_running_attempt_says_since_when_and_how_long_it_may_take() -> None:
    rerun = asked(2)
    Rollout.objects.filter(pk=rerun.parent_id).update(seconds=100.0)
    live.running(rerun, 0)
    first, second = rerun_view(rerun.pk).attempts
    assert first.elapsed is not None
    assert first.left is not None
    assert 0 <= first.elapsed < 60 < first.left <= 100
    assert (second.elapsed, second.left) == (None, None)
    Rollout.objects.filter(pk=rerun.parent_id).update(seconds=None)
    assert rerun_view(rerun.pk).attempts[0].left is None


def test_a_served_verdict_is_no_sample() -> None:
    rerun = asked(1, mode=Mode.RECORDED)
    live.attempted(rerun, 0, same=True)
    view = rerun_view(rerun.pk)
    assert (view.solved.n, view.same is not None and view.same.n) == (0, 1)
    assert view.sentence.startswith("The record is complete")


def test_lists_come_newest_first_each_parents_own_in_a_fixed_number_of_queries(
    django_assert_num_queries: Any,
) -> None:
    parent = live.rerunnable()
    rows = [live.asked(parent, RerunPlan(mode=Mode.LIVE, attempts=n)) for n in (1, 2, 3)]
    other = live.asked(live.rerunnable(trial=1))
    live.attempted(rows[0], 0, same=True)
    with django_assert_num_queries(4):
        assert [view.id for view in reruns_of(parent.pk)] == [row.pk for row in rows[::-1]]
    with django_assert_num_queries(4):
        assert [view.id for view in recent_reruns()] == [other.pk, *(row.pk for row in rows[::-1])]
    assert [view.id for view in recent_reruns([rows[0].pk, 999])] == [rows[0].pk]
    assert [view.id for view in recent_reruns(limit=1)] == [other.pk]


def test_what_is_not_there_or_no_plan_is_one_sentence() -> None:
    with pytest.raises(NotFound, match="there is no rerun 99"):
        get_rerun(99)
    for document in ({}, {"mode": "dreamt"}, {"mode": "live", "more": 1}, {"mode": "live", "attempts": "x"}, 5):
        with pytest.raises(InvalidValue, match="plan"):
            plan_from(document)
    row = live.rerunnable()
    Rollout.objects.filter(pk=row.pk).update(recipe=b"", missing="no engine is left")
    with pytest.raises(Conflict, match="it can't be executed again: no engine is left"):
        recipe_of(Rollout.objects.get(pk=row.pk))


def test_a_fork_rebuilds_its_environment_under_the_recorded_seed() -> None:
    recipe = recipe_of(live.rerunnable())
    drawn = changed(recipe, RerunPlan(mode=Mode.LIVE), "77")
    assert (drawn.root_seed, drawn.environment_root) == ("77", "")
    fork = changed(recipe, RerunPlan(mode=Mode.LIVE, from_step=1, revision="abc", engine="other"), "77")
    assert (fork.root_seed, fork.environment_root) == ("77", recipe.root_seed)
    assert (fork.harness.revision, fork.engine) == ("abc", "other")


@pytest.mark.parametrize(
    ("plan", "origin", "record"),
    [
        ({"mode": Mode.LIVE}, Origin.LIVE, False),
        ({"mode": Mode.LIVE, "from_step": 1}, Origin.HYBRID, True),
        ({"mode": Mode.RECORDED}, Origin.RECORDED, True),
        ({"mode": Mode.HYBRID}, Origin.HYBRID, True),
    ],
)
def test_a_worker_gets_the_record_where_something_is_served_from_it(
    plan: dict[str, Any], origin: Origin, record: bool
) -> None:
    rerun = asked(1 if plan["mode"] is Mode.RECORDED else 2, **plan)
    job = Job.objects.filter(group=f"rerun {rerun.pk}").order_by("-pk")[0]
    spec = load(job.payload)
    assert (spec.rerun, spec.origin, spec.record is not None) == (rerun.pk, origin, record)
    assert spec.attempt == rerun.plan.get("attempts", 1) - 1
    assert (spec.belonging.project, spec.belonging.panel, list(spec.belonging.tags)) == ("tests", "panel-1", ["small"])


@pytest.mark.parametrize("payload", [{}, {"rerun": "1"}, {"recipe": {}}, {"rerun": 1, "attempt": 0}])
def test_what_is_no_order_is_one_sentence(payload: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        load(payload)


@pytest.mark.parametrize("text", ["plain ü", "nul \x00", "half \ud800"])
def test_an_order_survives_what_no_json_column_takes(text: str) -> None:
    recipe = recipe_of(live.rerunnable())
    odd = msgspec.structs.replace(recipe, case=msgspec.structs.replace(recipe.case, instruction=text))
    job = Job.objects.create(kind="rollout", payload={"recipe": payload_of(odd), "project": "p", "trial": 4})
    spec = load(Job.objects.get(pk=job.pk).payload)
    assert spec.recipe.case.instruction == text
    assert (spec.belonging.trial, spec.origin) == (4, Origin.LIVE)


def test_an_attempt_that_is_not_queued_any_more_says_so() -> None:
    rerun = asked(1)
    Job.objects.filter(group=f"rerun {rerun.pk}").update(state=JobState.CANCELLED, message="")
    assert rerun_view(rerun.pk).attempts[0].status == "cancelled"
    Job.objects.filter(group=f"rerun {rerun.pk}").delete()
    view = rerun_view(rerun.pk)
    assert (view.attempts[0].status, view.ended) == ("not queued", True)


def test_attempts_that_agree_with_each_other_stand_beside_those_that_went_as_the_parent() -> None:
    rerun = asked(4)
    ways = [COMMANDS, ("ls", "pwd"), ("ls", "pwd"), ("ls", "pwd")]
    for number, commands in enumerate(ways):
        made = store_recording(recording(commands, trial=number, tags=(str(number),)), None)
        Rollout.objects.filter(pk=made.pk).update(rerun=rerun, attempt=number, mode="live")
        conclude(made.pk, diverged=False)
    Job.objects.update(state=JobState.DONE)
    view = rerun_view(rerun.pk)
    assert (view.groups, view.same.k if view.same else None) == ([3, 1], 1)
    assert view.sentence.endswith("3 of the 4 agree with each other.")
