"""Asking for experiments and trainings on their forms, and the pages that follow them; panels and bindings."""

from __future__ import annotations

import html
import io
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from msgspec.structs import replace

from harnesslab.actions.asking import ask_experiment, ask_training
from harnesslab.core.running.cases import CaseDefinition
from harnesslab.core.running.rollout import Outcome
from harnesslab.formats.panels.reading import read_panel
from harnesslab.queries.projects.bindings import binding_of
from harnesslab.requests.experiments import ExperimentRequest
from harnesslab.requests.trainings import TrainingRequest
from harnesslab.store.models import AuditEntry, Experiment, Job, JobState, Project, Training
from harnesslab.store.text import frozen
from tests import measuring

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_wake_up")]
PART = {"HX-Request": "true"}
NEW, TRAIN = "/experiments/new/?project=measured", "/trainings/new/?project=measured"


@pytest.fixture
def patches(tmp_path: Path) -> Path:
    (tmp_path / "patches").mkdir()
    return tmp_path / "patches"


def experiment() -> Experiment:
    return ask_experiment(ExperimentRequest.model_validate(measuring.asked()))


def training(patches: Path) -> Training:
    asked = {**measuring.asked(), "epochs": 2, "patches": str(patches)}
    del asked["revision"]
    return ask_training(TrainingRequest.model_validate(asked))


def text(client: Client, address: str, *, part: bool = False, status: int = 200) -> str:
    answer = client.get(address, headers=PART if part else {})
    assert answer.status_code == status, answer.content[:400]
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", answer.content.decode())))


def form(client: Client, address: str) -> dict[str, str]:
    """Return what a browser would send of a form that nobody touched."""
    page = client.get(address).content.decode()
    hidden = re.findall(r'type="hidden" name="([a-z_]+)" value="([^"]*)"', page)
    chosen = re.findall(r'<select name="(\w+)">(?:(?!</select>).)*?<option value="([^"]+)"', page, re.DOTALL)
    typed = re.findall(r'<input name="(\w+)"[^>]* value="([^"]*)"', page)
    ticked = re.findall(r'type="(?:checkbox|radio)" name="(\w+)" value="(\w+)" checked', page)
    return {name: html.unescape(value) for name, value in [*chosen, *hidden, *typed, *ticked]}


def queries(client: Client, address: str) -> int:
    with CaptureQueriesContext(connection) as captured:
        assert client.get(address).status_code == 200
    return len(captured)


def test_a_project_is_chosen_first_and_one_that_is_not_bound_says_how(as_operator: Client, project: Project) -> None:
    Project.objects.create(name="loose")
    page = text(as_operator, "/experiments/new/")
    assert "bound to no harness" in page
    assert "project-bind NAME --repository PATH" in page
    answer = as_operator.get("/experiments/new/?project=loose")
    assert (answer.status_code, "is bound to no harness repository" in html.unescape(answer.content.decode())) == (
        409,
        True,
    )


def test_the_form_offers_revisions_and_says_what_it_costs_before_it_is_sent(
    as_operator: Client, project: Project
) -> None:
    page = as_operator.get(NEW).content.decode()
    assert re.search(r'<option value="main">[0-9a-f]{8} one</option>', page)
    assert "2 cases × 1 trial = 2 rollouts; nothing is known" in text(as_operator, NEW)
    before = experiment()
    for case in ("a", "b"):
        measuring.ended(before, case)
    said = text(as_operator, f"{NEW}&panel=two+cases&engine=E&trials=3&case=a", part=True)
    assert "1 case × 3 trials = 3 rollouts: about 6 s one after the other, 909 prompt tokens, 90 output tokens" in said
    assert "going by 1 earlier rollout." in said
    assert "Run 3 rollouts" in said
    assert f"{before.name} · 2/2 solved" in text(as_operator, NEW)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("trials=0", "0 trials"),
        ("trials=x", "no whole number"),
        ("seed=x", "no seed"),
        ("temperature=nan", "no temperature"),
        ("temperature=hot", "no number"),
        ("panel=gone", "runnable panel 'gone'"),
        ("case=gone", "no case 'gone'"),
        ("case=%00", "no case"),
    ],
)
def test_what_is_wrong_is_said_before_it_is_sent(as_operator: Client, project: Project, query: str, said: str) -> None:
    part = text(as_operator, f"{NEW}&{query}", part=True)
    assert said in part
    assert "disabled" in as_operator.get(f"{NEW}&{query}", headers=PART).content.decode()


def test_sending_the_form_twice_makes_one_experiment(as_operator: Client, project: Project) -> None:
    sent = {**form(as_operator, NEW), "revision": "main", "case": ["a"]}
    first, second = as_operator.post(NEW, sent), as_operator.post(NEW, sent)
    made = Experiment.objects.get()
    assert first.headers["Location"] == second.headers["Location"] == f"/experiments/{made.pk}/progress/"
    assert (Job.objects.count(), made.kind, made.total) == (1, "eval", 1)
    assert AuditEntry.objects.get(action="measure").user == made.created_by


def test_a_baseline_makes_it_a_candidate_that_is_judged_when_it_ends(as_operator: Client, project: Project) -> None:
    before = experiment()
    for case in ("a", "b"):
        measuring.ended(before, case)
    as_operator.post(NEW, {**form(as_operator, NEW), "revision": "main", "baseline": before.name})
    made = Experiment.objects.get(kind="candidate")
    assert (made.baseline_id, made.parent_revision) == (before.pk, before.revision)


def test_a_repository_that_is_gone_is_said_and_the_form_stays(as_operator: Client, project: Project) -> None:
    bound = binding_of(project)
    Project.objects.update(
        binding=frozen(replace(bound, harness=replace(bound.harness, repository="/nowhere")).to_json())
    )
    answer = as_operator.post(NEW, {**form(as_operator, NEW), "revision": "main", "trials": "4"})
    page = html.unescape(answer.content.decode())
    assert (answer.status_code, "the harness's repository can't be read" in page, 'value="4"' in page) == (
        400,
        True,
        True,
    )


def test_a_refused_form_keeps_what_was_typed(as_operator: Client, project: Project) -> None:
    sent = {**form(as_operator, NEW), "revision": "gone", "trials": "4", "case": ["b"]}
    answer = as_operator.post(NEW, sent)
    page = html.unescape(answer.content.decode())
    assert answer.status_code == 400
    assert "no revision 'gone'" in page
    assert 'value="4"' in page
    assert re.search(r'value="b" checked', page)
    assert not Experiment.objects.exists()


def test_a_running_experiment_shows_each_case_and_stops_asking_when_it_is_over(
    as_operator: Client, project: Project
) -> None:
    made = experiment()
    place = f"/experiments/{made.pk}/progress/"
    Job.objects.filter(payload__recipe__case__name="b").update(state=JobState.RUNNING, message="step 2: 20 tokens")
    page = as_operator.get(place).content.decode()
    assert 'hx-trigger="every 1s"' in page
    measuring.ended(made, "a", Outcome.STEP_CAP)
    part = text(as_operator, place, part=True)
    assert "1 of 2 rollouts has ended, 0 of them solved; 1 runs, 0 wait." in part
    assert "step 2: 20 tokens" in part
    assert "step cap" in part
    assert re.search(r"about \S+ s left", part)
    assert "Cancel the experiment" in part
    measuring.ended(made, "b")
    over = text(as_operator, place, part=True, status=286)
    assert "Measured: all 2 rollouts have ended, 1 of them solved." in over
    assert "Cancel" not in over
    assert "every 1s" not in as_operator.get(place).content.decode()


def test_cancelling_keeps_what_was_measured(as_operator: Client, project: Project) -> None:
    made = experiment()
    measuring.ended(made, "a")
    page = as_operator.post(f"/experiments/{made.pk}/cancel/", follow=True).content.decode()
    assert "1 rollout was asked to stop" in page
    assert "Cancelled: 1 of 2 rollouts had ended" not in page  # the other one was cancelled before it began
    assert as_operator.get(f"/experiments/{made.pk}/progress/", headers=PART).status_code == 286
    again = as_operator.post(f"/experiments/{made.pk}/cancel/", follow=True).content.decode()
    assert "The experiment is not running." in again


def test_more_cases_take_no_more_queries(as_viewer: Client, project: Project) -> None:
    made = experiment()
    few = queries(as_viewer, f"/experiments/{made.pk}/progress/")
    measuring.panel(*(CaseDefinition(f"c{n}", "Do it.") for n in range(30)))
    many = experiment()
    measuring.ended(many, "c3")
    assert queries(as_viewer, f"/experiments/{many.pk}/progress/") <= few + 1 <= 12


def test_viewers_look_and_only_admins_begin_trainings_and_bind(
    as_viewer: Client, as_operator: Client, project: Project, patches: Path
) -> None:
    made, trained = experiment(), training(patches)
    assert "Cancel" not in text(as_viewer, f"/experiments/{made.pk}/progress/")
    assert "Stop" not in text(as_viewer, f"/trainings/{trained.pk}/")
    assert as_viewer.get(NEW).status_code == 403
    assert as_viewer.post(f"/experiments/{made.pk}/cancel/").status_code == 403
    assert as_viewer.post(f"/trainings/{trained.pk}/stop/").status_code == 403
    for address in (TRAIN, f"/projects/{project.pk}/binding/"):
        assert as_operator.get(address).status_code == 403
        assert as_operator.post(address, {}).status_code == 403
    assert Experiment.objects.count() == 2


def test_a_panel_shows_its_cases_and_downloads_as_the_folder_that_is_added(
    as_viewer: Client, project: Project, tmp_path: Path
) -> None:
    made = experiment()
    revision = measuring.panel()
    older = measuring.panel(*measuring.CASES[:1])
    assert "2 panel revisions" in text(as_viewer, "/panels/")
    page = text(as_viewer, f"/panels/{revision.pk}/")
    assert "Panel two cases of measured: 2 cases, measured 1 time." in page
    for said in ("Do a.", "a.txt 4 characters", "Solved where this test passes", "true", made.name, "1 case, "):
        assert said in page
    data = as_viewer.get(f"/panels/{revision.pk}/panel.zip").content
    zipfile.ZipFile(io.BytesIO(data)).extractall(tmp_path / "out")
    assert read_panel(tmp_path / "out").definition.digest == revision.digest
    assert as_viewer.get(f"/panels/{older.pk + 1}/").status_code == 404


def test_markup_in_a_panel_is_shown_as_text(as_viewer: Client, project: Project) -> None:
    evil = "<script>alert(1)</script>"
    made = measuring.panel(CaseDefinition(evil, evil, {evil: evil}, (evil,), tags=(evil,)))
    assert "<script>alert" not in as_viewer.get(f"/panels/{made.pk}/").content.decode()


def test_a_training_is_begun_once_and_says_where_it_is(as_admin: Client, project: Project, patches: Path) -> None:
    sent = {**form(as_admin, TRAIN), "patches": str(patches), "epochs": "2"}
    first, second = as_admin.post(TRAIN, sent), as_admin.post(TRAIN, sent)
    made = Training.objects.get()
    assert first.headers["Location"] == second.headers["Location"] == f"/trainings/{made.pk}/"
    page = text(as_admin, f"/trainings/{made.pk}/")
    assert page.index("Iteration 1 of 2 runs.") < page.index("measures its baseline, 0 of 2")
    assert "certified before a candidate is judged" in page
    assert as_admin.get(f"/trainings/{made.pk}/", headers=PART).status_code == 200
    assert "Iteration 1 of 2 runs." in text(as_admin, "/trainings/?project=measured")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"patches": "/nowhere/at/all"}, "no such folder"),
        ({"patches": ""}, "either a folder of patches or a command"),
        ({"by": "command", "command": "'x"}, "no closing quotation"),
        ({"epochs": "0"}, "0 iterations"),
        ({"epochs": "many"}, "no whole number"),
        ({"by": "command", "command": "true", "timeout": "inf"}, "seconds"),
        ({"criterion": "best"}, "no criterion 'best'"),
    ],
)
def test_a_training_that_can_not_begin_says_why_and_keeps_the_form(
    as_admin: Client, project: Project, patches: Path, changes: dict[str, str], said: str
) -> None:
    sent = {**form(as_admin, TRAIN), "patches": str(patches), "seed": "77", **changes}
    answer = as_admin.post(TRAIN, sent)
    page = html.unescape(answer.content.decode())
    assert 400 <= answer.status_code < 500
    assert said in page.lower() or said in page
    assert 'value="77"' in page
    assert not Training.objects.exists()


def test_a_training_stops_and_goes_on(as_operator: Client, project: Project, patches: Path) -> None:
    made = training(patches)
    stopped = html.unescape(as_operator.post(f"/trainings/{made.pk}/stop/", follow=True).content.decode())
    assert "Stopped after 0 iterations." in stopped
    assert "Go on" in stopped
    assert Job.objects.filter(state=JobState.CANCELLED).count() == 2
    assert as_operator.get(f"/trainings/{made.pk}/", headers=PART).status_code == 286
    assert "Iteration 1 of 2 runs." in as_operator.post(f"/trainings/{made.pk}/resume/", follow=True).content.decode()
    assert Job.objects.filter(state=JobState.QUEUED).count() == 2


def test_stopping_or_resuming_twice_leads_back_to_the_training_with_a_sentence(
    as_operator: Client, project: Project, patches: Path
) -> None:
    made = training(patches)
    as_operator.post(f"/trainings/{made.pk}/stop/")
    again = html.unescape(as_operator.post(f"/trainings/{made.pk}/stop/", follow=True).content.decode())
    assert "The training is not running." in again
    assert "Go on" in again
    as_operator.post(f"/trainings/{made.pk}/resume/")
    twice = as_operator.post(f"/trainings/{made.pk}/resume/", follow=True).content.decode()
    assert "The training has not stopped." in twice


def test_a_training_names_what_its_jobs_are_for_in_the_queue(as_viewer: Client, project: Project) -> None:
    made = experiment()
    Job.objects.create(kind="certify", group=f"certify {made.pk}", payload={"experiment": made.pk, "case": "b"})
    page = text(as_viewer, "/jobs/")
    assert f"a · experiment {made.pk}" in page
    assert page.count(f"b · experiment {made.pk}") == 2
    job = Job.objects.filter(kind="rollout").first()
    assert job is not None
    assert f"for a · experiment {made.pk}" in text(as_viewer, f"/jobs/{job.pk}/")


def test_more_trainings_take_no_more_queries(as_viewer: Client, project: Project, patches: Path) -> None:
    training(patches)
    few = queries(as_viewer, "/trainings/")
    for _ in range(3):
        Training.objects.update(state="stopped")
        training(patches)
    assert queries(as_viewer, "/trainings/") == few <= 9


@pytest.mark.parametrize("change", ["repository", "kind", "command"])
def test_a_binding_is_kept_or_refused_with_its_reason(as_admin: Client, project: Project, change: str) -> None:
    place = f"/projects/{project.pk}/binding/"
    sent: dict[str, str] = {**form(as_admin, place), "kind": "loop", "surface": "*.py\nexamples/*"}
    assert as_admin.post(place, sent).headers["Location"] == NEW
    project.refresh_from_db()
    assert binding_of(project).surface == ("*.py", "examples/*")
    wrong: dict[str, Callable[[], dict[str, str]]] = {
        "repository": lambda: {"repository": "/nowhere"},
        "kind": lambda: {"kind": "sideways"},
        "command": lambda: {"kind": "command", "command": ""},
    }
    answer = as_admin.post(place, {**sent, **wrong[change]()})
    assert (answer.status_code, 'id="error"' in answer.content.decode()) == (400, True)
