"""A rollout ends once: not again after a kill or a late stop, and what was cut short counts for nothing."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from django.db import IntegrityError

from harnesslab.actions.reruns import job_specs as orders
from harnesslab.actions.reruns import lifecycle as reruns
from harnesslab.actions.rollouts.recorder import Recorder, RolloutEnding, interrupt
from harnesslab.core.errors import Conflict, InvalidValue
from harnesslab.core.running.predicates import Predicate, What
from harnesslab.core.running.recipe import SideEffects
from harnesslab.core.running.rerun import Mode, RerunPlan
from harnesslab.core.running.rollout import Outcome
from harnesslab.queries.reruns.listing import rerun_view
from harnesslab.queries.rollouts.listing import get_rollout
from harnesslab.requests.reruns import RegressionMeasurementRequest
from harnesslab.store.models import Engine, Job, Rerun, Rollout
from tests.recordings import recording
from tests.runtime.driver.rig import HEAD, case, model
from tests.workers.ordering import order, recipe, register
from tests.workers.test_rollouts import made, orders_placement, run, run_all
from workers.tasks import rollouts as task

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """No wake-up reaches a worker; tests run jobs themselves."""
    monkeypatch.setattr("harnesslab.queue.wake", lambda *_: None)
    monkeypatch.setattr(task, "PAUSE_S", 0.0)


def test_a_job_brought_back_after_its_rollout_ended_makes_no_second_one(tmp_path: Path) -> None:
    with model("submit") as served:
        register(served.address)
        job = order(recipe(tmp_path, case(tests={"t": "true"})))
        first, second = run(job), run(job)
    assert first == second
    assert Rollout.objects.count() == 1


def test_a_stop_that_comes_behind_the_end_leaves_the_rollout_its_end(tmp_path: Path) -> None:
    def stopped() -> bool:
        return Rollout.objects.exclude(head=None).exists()

    with model("submit") as served:
        register(served.address)
        result = run(order(recipe(tmp_path, case(tests={"t": "true"}))), stopped)
    assert result["outcome"] == "solved"


def test_a_rerun_that_was_not_concluded_is_concluded_when_its_job_comes_back(tmp_path: Path) -> None:
    parent = made(tmp_path, "submit", case=case(tests={"t": "true"}))
    with model("submit") as served:
        Engine.objects.update(address=served.address)
        asked = reruns.request(parent.pk, RerunPlan(mode=Mode.LIVE), user=None)
        run_all(asked)
    mine = Rollout.objects.get(rerun=asked)
    Rollout.objects.filter(pk=mine.pk).update(facts=b"")
    run_all(asked)
    assert Rollout.objects.filter(rerun=asked).count() == 1
    assert rerun_view(asked.pk).attempts[0].same is True


@pytest.mark.parametrize(
    "error", [Conflict("the rollout has already ended"), IntegrityError("its recorder still writes")]
)
def test_one_that_cannot_be_closed_keeps_no_other_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    register("http://127.0.0.1:9")
    job = order(recipe(tmp_path, case()))
    stuck, left = (Recorder(recording(), orders_placement(job)).rollout for _ in range(2))
    Job.objects.filter(pk=job.pk).update(state="failed")

    def closed(rollout_id: int) -> Rollout:
        if rollout_id == stuck.pk:
            raise error
        return interrupt(rollout_id)

    monkeypatch.setattr(orders, "interrupt", closed)
    assert orders.interrupt_abandoned() == 1
    assert get_rollout(left.pk).outcome == "interrupted"


def test_a_recorder_whose_rollout_was_closed_writes_nothing_more(tmp_path: Path) -> None:
    register("http://127.0.0.1:9")
    slow = Recorder(recording(), orders_placement(order(recipe(tmp_path, case()))))
    interrupt(slow.rollout.pk)
    with pytest.raises(IntegrityError):
        slow.finish(RolloutEnding(Outcome.SOLVED, reward=1.0))
    assert get_rollout(slow.rollout.pk).outcome == "interrupted"


def measured(parent: Rollout, predicate: Predicate, outcome: Outcome | None, *answers: str) -> Rerun:
    """Measure a regression case of a rollout's second step, and let it have ended so."""
    found = reruns.make_regression(parent.pk, f"{predicate.sentence} {outcome}", 1, predicate, None)
    with model(*answers) as served:
        Engine.objects.update(address=served.address)
        asked = reruns.measure_regression(found, RegressionMeasurementRequest(attempts=1, seed="same"), user=None)
        run_all(asked)
    if outcome is not None:
        mine = Rollout.objects.get(rerun=asked)
        Rollout.objects.filter(pk=mine.pk).update(outcome=outcome)
        orders.conclude(mine.pk, diverged=False)
    return asked


def test_an_attempt_cut_short_shows_nothing_of_a_predicate(tmp_path: Path) -> None:
    parent = made(tmp_path, "echo look", "rm -f a", "submit")
    bad = Predicate(What.ARGUMENT, tool="run", argument="command", holds="rm")
    view = rerun_view(measured(parent, bad, Outcome.INTERRUPTED, "submit").pk)
    assert view.bad is not None
    assert (view.bad.n, view.bad.excluded) == (0, {"interrupted": 1})
    met = rerun_view(measured(parent, bad, Outcome.INFRA_ERROR, "rm -f b", "submit").pk)
    assert met.bad is not None
    assert (met.bad.k, met.bad.n, met.bad.excluded) == (1, 1, {})


def test_calling_an_external_tool_meets_its_predicate_though_it_leaves_the_record(tmp_path: Path) -> None:
    code = HEAD + (
        'ask = [{"role": "user", "content": "q"}]\n'
        "while True:\n"
        '    text = episode.model(ask)["text"]\n'
        '    if text == "submit":\n'
        "        break\n"
        '    episode.tool("mail", {"to": text})\n'
        "episode.end()\n"
    )
    with model("a", "b", "submit") as served:
        register(served.address)
        made_by = msgspec.structs.replace(recipe(tmp_path, case(), code), tools={"mail": SideEffects.EXTERNAL})
        parent = get_rollout(run(order(made_by))["rollout"])
    view = rerun_view(measured(parent, Predicate(What.TOOL_CALL, tool="mail"), None, "c", "submit").pk)
    assert view.bad is not None
    assert (view.bad.k, view.bad.n) == (1, 1)
    assert "left its record" in view.attempts[0].status


def test_a_self_test_fails_where_an_altered_answer_changes_nothing(tmp_path: Path) -> None:
    code = HEAD + (
        'ask = [{"role": "user", "content": "q"}]\n'
        'episode.model(ask)\nepisode.run("echo known")\n'
        'episode.model([*ask, {"role": "user", "content": "known\\n"}])\nepisode.end()\n'
    )
    with model("x") as served:
        register(served.address)
        parent = get_rollout(run(order(recipe(tmp_path, case(), code)))["rollout"])
    asked = reruns.request(parent.pk, RerunPlan(mode=Mode.RECORDED, self_test=True), user=None)
    run_all(asked)
    assert rerun_view(asked.pk).sentence.startswith("Self-test failed")


def test_no_regression_case_begins_before_the_first_step(tmp_path: Path) -> None:
    parent = made(tmp_path, "submit")
    with pytest.raises(InvalidValue, match="no step: -1"):
        reruns.make_regression(parent.pk, "n", -1, Predicate(What.ANSWER, holds="submit", steps=3), None)


def test_a_recorded_rerun_of_work_that_was_judged_goes_the_same_way_and_is_no_sample_of_solving(tmp_path: Path) -> None:
    parent = made(tmp_path, "echo hi > a", "submit", case=case(tests={"there": "[ -f a ]"}))
    asked = reruns.request(parent.pk, RerunPlan(mode=Mode.RECORDED), user=None)
    run_all(asked)
    view = rerun_view(asked.pk)
    assert view.sentence.startswith("The record is complete")
    assert view.attempts[0].rollout is not None
    assert (view.attempts[0].rollout.outcome, view.solved.n) == ("solved", 0)


def test_a_fork_under_a_drawn_seed_rebuilds_what_chance_gave_the_recording(tmp_path: Path) -> None:
    parent = made(tmp_path, "python3 -c 'import os; print(os.urandom(8).hex())'", "submit")
    with model("submit") as served:
        Engine.objects.update(address=served.address)
        asked = reruns.request(parent.pk, RerunPlan(mode=Mode.LIVE, from_step=1, seed="drawn"), user=None)
        run_all(asked)
    view = rerun_view(asked.pk)
    assert view.attempts[0].same is True, view.attempts[0].status
    assert "live from step 2" in view.sentence
