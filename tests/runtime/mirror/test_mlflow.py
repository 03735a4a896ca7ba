"""A project's copy on a real MLflow server: whole, made once, taken up after a failure, and read back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harnesslab.actions.jobs import lifecycle as jobs
from harnesslab.actions.projects import mirrors
from harnesslab.actions.trainings import lifecycle as trainings
from harnesslab.core.errors import Conflict, InvalidValue
from harnesslab.core.trace.events import ModelCall, ToolCall
from harnesslab.queries.mirrors import get_mirror, mirror_row
from harnesslab.queries.projects.bindings import get_project
from harnesslab.queries.rollouts.listing import get_rollout
from harnesslab.queries.rollouts.trace_readers import StoredTraceReader
from harnesslab.runtime.mirror import server as mirror_server
from harnesslab.store.models import Experiment, Job, Mirrored, Project, Rollout
from tests.runtime.training import rules
from tests.runtime.training.rules import drain, plan, project, queue
from workers.tasks import mirrors as task
from workers.tasks.job_runs import JobRun

pytestmark = [
    pytest.mark.serial,
    pytest.mark.django_db,
    pytest.mark.timeout(700),
    pytest.mark.usefixtures("no_wake_up"),
]


@pytest.fixture
def trained(tmp_path: Path) -> Project:
    """A project with a finished training of two experiments and four rollouts."""
    row, panel = project(tmp_path, rules.case("a"), rules.case("b"))
    with rules.engine():
        trainings.train(row, panel, plan(queue(tmp_path, {"b": "touch b"}), 1, certify=False))
        drain()
    return row


def attempt(job: Job, stop_after: int | None = None) -> JobRun:
    """Return an attempt at a job that is stopped after so many copies."""
    told: list[str] = []

    def progress(_: int, sentence: str) -> bool:
        told.append(sentence)
        return True

    return JobRun(job.pk, job.payload, progress, lambda: stop_after is not None and len(told) >= stop_after)


def client(address: str) -> Any:
    mirror_server.TrackingServer(address)
    import mlflow

    return mlflow.MlflowClient(address)


def copies(address: str, name: str) -> tuple[list[Any], list[Any]]:
    """Return the runs and traces of an experiment, as MLflow itself tells them."""
    found = client(address)
    where = found.get_experiment_by_name(name).experiment_id
    return list(found.search_runs([where])), list(found.search_traces(locations=[where], max_results=100))


def test_experiments_become_runs_and_rollouts_traces_of_them(mlflow_server: str, trained: Project) -> None:
    mirror = mirrors.mirror_to(trained, mlflow_server, experiment="whole")
    drain()
    assert mirror_row(mirror).waiting == 0
    runs, traces = copies(mlflow_server, "whole")
    assert (len(runs), len(traces)) == (2, 4)
    candidate = next(run for run in runs if run.data.tags.get("harnesslab.verdict"))
    row = Experiment.objects.get(verdict="promoted")
    assert candidate.info.run_name == row.name
    assert candidate.data.tags["harnesslab.reason"] == "strict_improvement_without_regression"
    assert candidate.data.metrics["solved"] == 2.0
    assert candidate.data.params["harness.revision"] == row.revision
    paths = [item.path for item in client(mlflow_server).list_artifacts(candidate.info.run_id)]
    assert paths == ["decision.json", "manifest.json"]
    trace = next(trace for trace in traces if trace.info.tags["harnesslab.case"] == "b")
    rollout = get_rollout(Rollout.objects.get(experiment__isnull=False, case__name="b", experiment=row).pk)
    same = next(each for each in traces if each.info.tags["harnesslab.seal"] == bytes(rollout.head or b"").hex())
    assert same.info.trace_metadata["mlflow.sourceRun"] == candidate.info.run_id
    assert same.info.token_usage == {"input_tokens": 10, "output_tokens": 3, "total_tokens": 13}
    kinds = [span.span_type for span in same.data.spans]
    assert kinds.count("CHAT_MODEL") == 1
    assert kinds.count("TOOL") == 2
    assert kinds.count("EVALUATOR") == 1
    assert trace.info.state.value == "OK"


def test_a_second_pass_copies_nothing_and_a_stopped_one_is_taken_up(mlflow_server: str, trained: Project) -> None:
    mirror = mirrors.mirror_to(trained, mlflow_server, experiment="again")
    job = Job.objects.get(kind=mirrors.KIND)
    assert task.run_mirror(attempt(job, stop_after=3)) == {"cancelled": True}
    assert Mirrored.objects.count() == 3
    # a kill between the server's answer and our note of it
    Mirrored.objects.filter(rollout__isnull=False).delete()
    assert task.run_mirror(attempt(job))["copied"] == 4
    assert task.run_mirror(attempt(job))["copied"] == 0
    runs, traces = copies(mlflow_server, "again")
    assert (len(runs), len(traces)) == (2, 4)
    assert mirror_row(mirror).rollouts == 4


def test_a_mirror_is_off_unless_someone_turns_it_on(mlflow_server: str, trained: Project) -> None:
    assert not Job.objects.filter(kind=mirrors.KIND).exists()
    mirrors.mirror_to(trained, mlflow_server, experiment="off")
    drain()
    mirrors.turn_off(trained)
    Mirrored.objects.all().delete()
    mirrors.keep_up()
    assert not Job.objects.filter(kind=mirrors.KIND, state="queued").exists()
    Mirrored.objects.create(mirror=get_mirror(trained), experiment=Experiment.objects.first(), remote="x")
    with pytest.raises(Conflict, match="is mirrored at"):
        mirrors.mirror_to(trained, "http://127.0.0.1:1")


def test_a_server_that_is_away_is_one_sentence_and_is_tried_again_later(trained: Project) -> None:
    mirror = mirrors.mirror_to(trained, "http://127.0.0.1:9")
    drain()
    job = Job.objects.get(kind=mirrors.KIND)
    assert job.state == "failed"
    assert "127.0.0.1:9" in job.message
    assert get_mirror(trained).sentence == job.message
    mirrors.keep_up()  # not at once
    assert Job.objects.filter(kind=mirrors.KIND).count() == 1
    assert mirror_row(mirror).waiting == 6


def test_runs_and_traces_are_imported_by_their_servers_address(mlflow_server: str, trained: Project) -> None:
    mirrors.mirror_to(trained, mlflow_server, experiment="source")
    drain()
    mirrors.order_import(mlflow_server, experiment="source", project="copy")
    drain()
    copy = get_project("copy")
    assert Experiment.objects.filter(project=copy).count() == 2
    there = {(row.case.name, row.outcome) for row in Rollout.objects.filter(project=trained)}
    assert {(row.case.name, row.outcome) for row in Rollout.objects.filter(project=copy)} == there
    promoted = Experiment.objects.get(project=copy, verdict="promoted")
    assert (promoted.kind, promoted.solved, promoted.total) == ("candidate", 2, 2)
    assert promoted.baseline is not None
    assert promoted.baseline.kind == "baseline"
    rollout = promoted.rollouts.get(case__name="b")
    events = StoredTraceReader(get_rollout(rollout.pk)).trace().events
    (call,) = [event for event in events if isinstance(event, ModelCall)]
    assert call.text == "touch b"
    assert call.usage is not None
    assert (call.usage.input, call.usage.output) == (10, 3)
    assert [event.name for event in events if isinstance(event, ToolCall)] == ["run", "run"]
    mirrors.order_import(mlflow_server, experiment="source", project="copy")
    drain()
    assert Rollout.objects.filter(project=copy).count() == 4
    assert Job.objects.filter(kind=mirrors.IMPORT).latest("pk").result["known"] == 4


def test_hostile_text_reaches_the_server_and_comes_back(mlflow_server: str, tmp_path: Path) -> None:
    row, panel = project(tmp_path, rules={"a": "printf 'x\\0y \\303\\050 <b>'; touch a"})
    with rules.engine():
        trainings.train(row, panel, plan(queue(tmp_path, {"b": "touch b"}), 1))
        drain()
    mirrors.mirror_to(row, mlflow_server, experiment="hostile \u2028 <i>")
    drain()
    assert Job.objects.get(kind=mirrors.KIND).state == "done"
    _, traces = copies(mlflow_server, "hostile \u2028 <i>")
    told = json.dumps([span.outputs for trace in traces for span in trace.data.spans])
    assert "<b>" in told


def test_an_address_that_is_none_is_refused(trained: Project) -> None:
    with pytest.raises(InvalidValue, match="no address"):
        mirrors.mirror_to(trained, "file:///etc")
    with pytest.raises(InvalidValue, match="no address"):
        mirrors.order_import("sqlite:///x.db")
    assert jobs.cancel_group("mirror 1") == 0
