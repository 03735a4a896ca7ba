"""The rollout job: what it stores, what a rerun of it shows, and what becomes of failures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from harnesslab.actions.reruns import job_specs as orders
from harnesslab.actions.reruns import lifecycle as reruns
from harnesslab.actions.rollouts.recorder import Recorder
from harnesslab.core.conditions.manifest import Known
from harnesslab.core.errors import Conflict, InvalidValue
from harnesslab.core.running.predicates import Predicate, What
from harnesslab.core.running.recipe import DRAWN
from harnesslab.core.running.rerun import Mode, RerunPlan, Switch
from harnesslab.core.trace import seals
from harnesslab.core.trace.events import RolloutEnded
from harnesslab.queries.reruns.listing import recipe_of, rerun_view
from harnesslab.queries.reruns.previews import preview
from harnesslab.queries.rollouts.listing import facts_of, get_rollout
from harnesslab.queries.rollouts.manifests import load_manifest
from harnesslab.queries.rollouts.trace_readers import StoredTraceReader
from harnesslab.requests.reruns import RegressionMeasurementRequest
from harnesslab.store.models import Engine, Job, LooseEvent, Rerun, Rollout
from tests.recordings import recording
from tests.runtime.driver.rig import case, model
from tests.runtime.engines.loopback import response
from tests.workers.ordering import order, recipe, register
from workers.tasks import rollouts as task
from workers.tasks.job_runs import JobRun

pytestmark = pytest.mark.django_db

LIVE = RerunPlan(mode=Mode.LIVE)


@pytest.fixture(autouse=True)
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """No wake-up reaches a worker; tests run jobs themselves."""
    monkeypatch.setattr("harnesslab.queue.wake", lambda *_: None)
    monkeypatch.setattr(task, "PAUSE_S", 0.0)


def run(job: Job, stopped: Callable[[], bool] = lambda: False) -> Mapping[str, Any]:
    return task.run_rollout(JobRun(job.pk, job.payload, lambda *_: True, stopped))


def run_all(rerun: Rerun) -> None:
    for job in Job.objects.filter(group=f"rerun {rerun.pk}"):
        run(job)


def made(folder: Path, *answers: str, **fields: Any) -> Rollout:
    """Run a fresh rollout and return it."""
    with model(*answers) as served:
        register(served.address)
        result = run(order(recipe(folder, fields.pop("case", case()), **fields)))
    return get_rollout(result["rollout"])


def rerun(rollout: Rollout, plan: RerunPlan, *answers: str) -> Rerun:
    """Ask for a rerun and run all its attempts against a served model."""
    with model(*answers) as served:
        Engine.objects.update(address=served.address)
        asked = reruns.request(rollout.pk, plan, user=None)
        run_all(asked)
    return asked


def test_a_rollout_is_stored_sealed_and_packed_with_its_recipe_and_manifest(tmp_path: Path) -> None:
    rollout = made(tmp_path, "echo hi > a", "submit", case=case(tests={"there": "[ -f a ]"}))
    assert (rollout.outcome, rollout.origin, rollout.grade) == ("solved", "live", "live-rerunnable")
    assert (rollout.steps, rollout.output_tokens, rollout.reward) == (2, 4, 1.0)
    assert not LooseEvent.objects.exists()
    reader = StoredTraceReader(rollout)
    seals.verify(reader.trace(), reader.seals())
    assert recipe_of(rollout).harness.revision == rollout.revision
    manifest = load_manifest(rollout.manifest_id)
    assert manifest["harness.revision"] == Known(rollout.revision, manifest["harness.revision"].provenance)  # type: ignore[union-attr]
    assert manifest.value("seeds.policy") == "one per call"
    assert manifest.value("environment.network") is not None


def test_a_failure_of_infrastructure_is_tried_again_and_every_try_is_kept(tmp_path: Path) -> None:
    with model(response(b"{}", "503 Service Unavailable", Retry_After="0")) as served:
        register(served.address)
        job = order(recipe(tmp_path, case(), repeats=0))
        with pytest.raises(task.RolloutFailed, match="3 times"):
            run(job)
    assert list(Rollout.objects.values_list("outcome", flat=True)) == ["infra_error"] * 3


def test_an_engine_that_is_away_leaves_no_open_rollout(tmp_path: Path) -> None:
    register("http://127.0.0.1:9")
    with pytest.raises(task.RolloutFailed):
        run(order(recipe(tmp_path, case())))
    assert not Rollout.objects.filter(head=None).exists()


def test_something_unforeseen_closes_the_rollout_and_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("unforeseen")

    monkeypatch.setattr("harnesslab.runtime.driver.loop.call_model", broken)
    with model("submit") as served:
        register(served.address)
        with pytest.raises(ZeroDivisionError):
            run(order(recipe(tmp_path, case())))
    rollout = get_rollout(Rollout.objects.get().pk)
    assert rollout.outcome == "infra_error"
    ended = StoredTraceReader(rollout).trace().events[-1]
    assert isinstance(ended, RolloutEnded)
    assert ended.error == "ZeroDivisionError: unforeseen"


def test_a_job_that_is_tried_again_closes_what_the_lost_worker_left_open(tmp_path: Path) -> None:
    with model("submit") as served:
        register(served.address)
        job = order(recipe(tmp_path, case()))
        left = Recorder(recording(), orders_placement(job)).rollout
        result = run(job)
    assert get_rollout(left.pk).outcome == "interrupted"
    assert result["rollout"] != left.pk


def orders_placement(job: Job) -> Any:
    from harnesslab.actions.rollouts.recorder import Placement

    return Placement(job=job.pk)


def test_the_sweeper_closes_the_rollouts_of_jobs_that_have_ended(tmp_path: Path) -> None:
    register("http://127.0.0.1:9")
    job = order(recipe(tmp_path, case()))
    left = Recorder(recording(), orders_placement(job)).rollout
    assert orders.interrupt_abandoned() == 0
    Job.objects.filter(pk=job.pk).update(state="failed")
    assert orders.interrupt_abandoned() == 1
    assert get_rollout(left.pk).outcome == "interrupted"


def test_a_stopped_job_leaves_an_interrupted_rollout(tmp_path: Path) -> None:
    asked: list[int] = []

    def stopped() -> bool:
        asked.append(1)
        return len(asked) > 6

    with model("sleep 30") as served:
        register(served.address)
        result = run(order(recipe(tmp_path, case())), stopped)
    assert result["cancelled"] is True
    assert get_rollout(result["rollout"]).outcome == "interrupted"


def test_live_attempts_with_the_same_seed_go_as_the_parent_did(tmp_path: Path) -> None:
    parent = made(tmp_path, "echo hi", "submit")
    view = rerun_view(rerun(parent, RerunPlan(mode=Mode.LIVE, attempts=2), "echo hi", "submit", "echo hi", "submit").pk)
    assert view.same is not None
    assert (view.same.k, view.same.n, view.ended) == (2, 2, False)  # this test runs the jobs, so that none has ended
    assert [row.status for row in view.attempts] == ["as the parent"] * 2
    assert view.sentence.startswith("Went as the parent every time, 2/2")
    assert "live, level text, fixed seed" in view.sentence
    assert {row.rollout.mode for row in view.attempts if row.rollout} == {"live"}


def test_an_attempt_that_answers_otherwise_parts(tmp_path: Path) -> None:
    parent = made(tmp_path, "echo hi", "submit")
    view = rerun_view(rerun(parent, RerunPlan(mode=Mode.LIVE, seed=DRAWN), "echo ho", "submit").pk)
    assert view.attempts[0].status == "parts from the parent"
    assert "0/1" in view.sentence
    assert "drawn seeds" in view.sentence
    seeds = {recipe_of(get_rollout(pk)).root_seed for pk in Rollout.objects.values_list("pk", flat=True)}
    assert len(seeds) == 2


def test_a_recorded_rerun_and_its_self_test_say_what_they_show(tmp_path: Path) -> None:
    parent = made(tmp_path, "echo flows on", "submit")
    view = rerun_view(rerun(parent, RerunPlan(mode=Mode.RECORDED), "unused").pk)
    assert view.sentence.startswith("The record is complete")
    test = rerun_view(rerun(parent, RerunPlan(mode=Mode.RECORDED, self_test=True), "unused").pk)
    assert test.sentence.startswith("Self-test passed")


def test_a_miss_is_a_divergence_and_no_infra_error(tmp_path: Path) -> None:
    parent = made(tmp_path, "echo hi", "submit")
    plan = RerunPlan(mode=Mode.HYBRID, switches={"tool": Switch.FAIL})
    view = rerun_view(rerun(parent, plan, "unused").pk)
    assert view.attempts[0].same is False
    assert "left its record" in view.attempts[0].status
    assert facts_of(get_rollout(view.attempts[0].rollout.id))["diverged"] is True  # type: ignore[index,call-overload,union-attr]


def test_the_same_key_makes_one_rerun(tmp_path: Path) -> None:
    parent = made(tmp_path, "submit")
    first = reruns.request(parent.pk, RerunPlan(mode=Mode.LIVE, attempts=2), user=None, key="k")
    assert reruns.request(parent.pk, RerunPlan(mode=Mode.LIVE, attempts=2), user=None, key="k").pk == first.pk
    assert Job.objects.filter(group=f"rerun {first.pk}").count() == 2


def test_what_cannot_be_rerun_is_refused_with_the_reason(tmp_path: Path) -> None:
    imported = Recorder(recording()).rollout
    with pytest.raises(Conflict, match="can't be executed again"):
        reruns.request(imported.pk, LIVE, user=None)
    parent = made(tmp_path, "sleep 9", "echo hi", "submit", case=case(command=0.3))
    with pytest.raises(Conflict, match="nearest safe one is step 1"):
        reruns.request(parent.pk, RerunPlan(mode=Mode.LIVE, from_step=2), user=None)
    with pytest.raises(Conflict, match="tool:mail"):
        reruns.request(parent.pk, RerunPlan(mode=Mode.HYBRID, switches={"tool:mail": Switch.LIVE}), user=None)
    seen = preview(parent.pk, RerunPlan(mode=Mode.LIVE, from_step=2))
    assert seen.nearest == 0
    assert "nearest safe" in seen.refused
    assert seen.calls is not None


def test_a_regression_case_fails_before_a_change_and_passes_after_it(tmp_path: Path) -> None:
    parent = made(tmp_path, "echo look", "rm -f a", "submit")
    bad = Predicate(What.ARGUMENT, tool="run", argument="command", holds="rm")
    found = reruns.make_regression(parent.pk, "never remove", 1, bad, None)
    with pytest.raises(Conflict, match="never remove"):
        reruns.make_regression(parent.pk, "never remove", 1, bad, None)
    with pytest.raises(InvalidValue, match="does not meet it"):
        reruns.make_regression(parent.pk, "other", 0, bad, None)
    before = rerun(parent, LIVE, "unused")  # only to serve the engine anew below
    assert before.pk
    views = []
    for answers in (("rm -f a", "submit"), ("mv a b", "submit")):
        with model(*answers) as served:
            Engine.objects.update(address=served.address)
            measured = reruns.measure_regression(
                found, RegressionMeasurementRequest(revision="r1", attempts=1, seed="same"), user=None
            )
            run_all(measured)
        views.append(rerun_view(measured.pk))
    assert [(view.bad.k, view.bad.n) for view in views if view.bad is not None] == [(1, 1), (0, 1)]
    assert "calls run with command holding 'rm'" in views[0].sentence


def test_harness_revisions_are_kept_in_the_home(tmp_path: Path) -> None:
    made(tmp_path, "submit")
    assert list((settings.CONFIG.home / "harnesses" / "commits").iterdir())
