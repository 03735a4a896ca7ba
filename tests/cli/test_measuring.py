"""Panels, bindings, experiments and trainings, as a person types them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from harnesslab.actions.progress import after
from harnesslab.core.measuring.certification import Certificate, CertificateVerdict
from harnesslab.core.running.rollout import Outcome
from harnesslab.store.models import Experiment, Job, JobState, PanelRevision, Project, Training
from tests import live, measuring
from tests.cli.commands import run
from tests.formats.panels.test_panels import harbor, small

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_wake_up")]
RUN = ("experiment", "run", "--project", measuring.PROJECT, "--revision", "main", "--panel", measuring.PANEL)


def meanwhile(monkeypatch: pytest.MonkeyPatch, *happens: object) -> None:
    """Let things happen, one each time the command waits."""
    left = list(happens)
    monkeypatch.setattr("harnesslab.cli.following.sleep", lambda _: left.pop(0)())  # type: ignore[operator]


def measured(outcome: Outcome = Outcome.SOLVED) -> None:
    for case in ("a", "b"):
        measuring.ended(Experiment.objects.get(), case, outcome)


def test_a_folder_is_added_once_exported_and_added_again_as_the_same_revision(tmp_path: Path) -> None:
    folder = small(tmp_path / "panel", panel__toml="name = 'p'\ncases = ['a']")
    added = run("panel-add", folder, "--project", "P")
    assert added.exit_code == 0, added.output
    assert "p: 1 case, revision" in added.output
    assert "b is left out" in added.output
    assert "a has no test" in added.output
    assert run("panel-export", "p", tmp_path / "out", "--project", "P").exit_code == 0
    assert run("panel-add", tmp_path / "out", "--project", "P").exit_code == 0
    revision = PanelRevision.objects.get()
    assert f"P: p@{revision.digest[:12]}: 1 cases" in run("panels").output
    assert json.loads(run("panels", "--project", "P", "--json").output)[0]["digest"] == revision.digest
    again = run("panel-export", f"p@{revision.digest[:8]}", tmp_path / "out", "--project", "P")
    assert (again.exit_code, "something already" in again.output) == (1, True)


def test_a_harbor_task_that_can_not_run_is_left_out_only_when_asked(tmp_path: Path) -> None:
    folder = harbor(small(tmp_path / "set"), task="version = '1.0'\n")
    refused = run("panel-add", folder, "--project", "P")
    assert refused.exit_code == 1
    assert "only a Dockerfile" in refused.output
    assert not PanelRevision.objects.exists()
    assert run("panel-add", folder, "--project", "P", "--leave-out").exit_code == 0
    assert PanelRevision.objects.get().cases == 2


def test_a_project_is_bound_to_a_folder_by_its_whole_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measuring.project(tmp_path)
    monkeypatch.chdir(tmp_path)
    bound = run("project-bind", "other", "--repository", "harness", "--surface", "*.py", "--surface", "x/*")
    assert bound.output == f"other measures {tmp_path / 'harness'}, branch main\n"
    assert "no revision 'gone'" in run("project-bind", "o", "--repository", "harness", "--branch", "gone").output
    assert "a command" in run("project-bind", "o", "--repository", "harness", "--kind", "command").output
    torn = run("project-bind", "o", "--repository", "harness", "--kind", "command", "--command", "'x")
    assert "No closing quotation" in torn.output


def test_waiting_prints_a_line_for_each_change_and_says_where_no_server_answers(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    meanwhile(monkeypatch, lambda: measuring.ended(Experiment.objects.get(), "b"), measured)
    result = run(*RUN, "--engine", live.ENGINE, "--wait")
    assert result.exit_code == 0, result.output
    lines = [line for line in result.output.splitlines() if not line.startswith("no server answers")]
    assert lines[:-1] == ["a: queued", "b: queued", "b: solved", "a: solved"]
    assert lines[-1].endswith("Measured: all 2 rollouts have ended, 2 of them solved.")
    assert "no server answers" in result.output


def test_an_experiment_that_could_not_run_ends_with_1(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def failed() -> None:
        Job.objects.update(state=JobState.FAILED, message="no sandbox can be made here")
        after(f"experiment {Experiment.objects.get().pk}")

    meanwhile(monkeypatch, failed)
    result = run(*RUN, "--engine", live.ENGINE, "--case", "a", "--wait")
    assert result.exit_code == 1
    assert "no sandbox can be made here" in result.output


def test_a_run_is_asked_for_once_by_its_key_and_cancelled_by_its_name(project: Project) -> None:
    first, again = (run(*RUN, "--engine", live.ENGINE, "--key", "k", "--json") for _ in range(2))
    name = json.loads(first.output)["external_id"]
    assert json.loads(again.output)["external_id"] == name
    assert "2 rollouts were asked to stop" in run("experiment", "cancel", name).output
    assert "not running" in run("experiment", "cancel", name).output
    assert "it was cancelled" in run(*RUN, "--engine", live.ENGINE, "--baseline", name).output
    assert "no experiment 'gone'" in run("experiment", "cancel", "gone").output


def test_a_candidate_that_was_judged_says_its_decision_with_its_reasons(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def judged(outcome: Outcome) -> None:
        made = Experiment.objects.order_by("-pk")[0]
        for case in ("a", "b"):
            measuring.ended(made, case, outcome)
        after(f"experiment {made.pk}")

    meanwhile(monkeypatch, lambda: judged(Outcome.SOLVED), lambda: judged(Outcome.FAILED_VERIFICATION))
    first = run(*RUN, "--engine", live.ENGINE, "--wait")
    assert "Rejected" not in first.output
    base = Experiment.objects.get().name
    second = run(*RUN, "--engine", live.ENGINE, "--baseline", base, "--wait").output
    assert "Rejected: loses cases that the baseline solves; 0 of 2 cases solved." in second
    assert "Regressions: a, b." in second


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--engine", "gone"), "no engine is registered"),
        (("--engine", "E", "--case", "c"), "no case 'c'"),
        (("--engine", "E", "--trials", "0"), "0 trials"),
        (("--engine", "E", "--seed", "-1"), "no seed"),
        (("--engine", "E", "--temperature", "nan"), "no temperature"),
        (("--engine", "E", "--kind", "candidate"), "needs a baseline"),
        (("--engine", "E", "--baseline", "gone"), "no experiment 'gone'"),
        (("--engine", "E", "--revision", "gone"), "no revision 'gone'"),
        (("--engine", "E", "--panel", "two cases@ffff"), "no revision ffff"),
    ],
)
def test_what_can_not_be_measured_is_refused(project: Project, options: tuple[str, ...], said: str) -> None:
    result = run(*RUN, *options)
    assert result.exit_code == 1
    assert said in result.output
    assert not Experiment.objects.exists()


def test_certifying_waits_for_the_audits_and_prints_their_verdicts(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(*RUN, "--engine", live.ENGINE)
    name = Experiment.objects.get().name
    assert "still being measured" in run("experiment", "certify", name).output
    measured()
    found = Certificate(CertificateVerdict.NO_CHAIN, "0" * 64, why="it called other")  # type: ignore[arg-type]

    def audited() -> None:
        Job.objects.filter(kind="certify").update(state=JobState.DONE, result={"certificate": found.to_json()})

    meanwhile(monkeypatch, audited)
    result = run("experiment", "certify", name, "--wait")
    assert result.exit_code == 0, result.output
    assert "a: no_chain; it called other" in result.output.splitlines()
    assert run("experiment", "certify", name).output.count("no_chain") == 2


def test_audits_that_nobody_waited_for_are_gathered_when_the_last_ends(project: Project) -> None:
    run(*RUN, "--engine", live.ENGINE)
    measured()
    row = Experiment.objects.get()
    assert "2 audits are queued" in run("experiment", "certify", row.name).output
    Job.objects.filter(kind="certify").update(state=JobState.FAILED, message="no sandbox")
    after(f"certify {row.pk}")
    again = run("experiment", "certify", row.name)
    assert "2 audits are queued" in again.output
    found = Certificate(CertificateVerdict.DETERMINISTIC, "0" * 64).to_json()  # type: ignore[arg-type]
    Job.objects.filter(kind="certify").update(state=JobState.DONE, result={"certificate": found})
    after(f"certify {row.pk}")
    row.refresh_from_db()
    assert row.certification


def test_a_training_is_begun_stopped_and_taken_up_again(project: Project, tmp_path: Path) -> None:
    (tmp_path / "patches").mkdir()
    options = ("--project", measuring.PROJECT, "--panel", measuring.PANEL, "--engine", live.ENGINE, "--epochs", 2)
    begun = run("train", *options, "--patches", tmp_path / "patches", "--no-certify")
    assert begun.exit_code == 0, begun.output
    made = Training.objects.get()
    assert begun.output == f"training {made.pk} runs\n"
    assert f"{made.pk}: measured, two cases: Iteration 1 of 2 runs." in run("trainings").output
    assert run("train-stop", made.pk).exit_code == 0
    assert "not running" in run("train-stop", made.pk).output
    assert "stopped on request" in run("trainings").output
    assert run("train-resume", made.pk).exit_code == 0
    listed = json.loads(run("trainings", "--json").output)[0]
    assert (listed["row"]["state"], listed["epochs"][0]["waits"]) == ("running", "measures its baseline, 0 of 2")
    assert "either a folder of patches or a command" in run("train", *options).output


def test_following_a_training_prints_its_iterations_and_ends_with_1_where_it_stopped(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "patches").mkdir()

    def cancelled() -> None:
        run("experiment", "cancel", Experiment.objects.get().name)
        after(f"experiment {Experiment.objects.get().pk}")

    meanwhile(monkeypatch, cancelled)
    options = ("--project", measuring.PROJECT, "--panel", measuring.PANEL, "--engine", live.ENGINE, "--epochs", 2)
    result = run("train", *options, "--patches", tmp_path / "patches", "--wait")
    assert result.exit_code == 1
    assert "iteration 1: measures its baseline\n" in result.output
    assert re.search(r"error: training \d+: iteration 1: its baseline \S+ was cancelled", result.output)


def test_a_price_is_kept_by_model_and_a_wrong_one_is_refused() -> None:
    made = Project.objects.create(name="priced")
    said = run("project-price", "priced", "m", "--input", 1, "--cached", 0.1, "--output", 4)
    assert "1 in, 4 out" in said.output
    made.refresh_from_db()
    assert made.prices == {"m": {"input": 1.0, "output": 4.0, "cached": 0.1}}
    assert "no price: -1" in run("project-price", "priced", "m", "--input", -1, "--output", 4).output
    assert "no project" in run("project-price", "nowhere", "m", "--input", 1, "--output", 4).output
