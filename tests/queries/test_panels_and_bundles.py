"""Panels with their revisions, and bundles of rollouts."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from harnesslab.actions.asking import ask_experiment
from harnesslab.actions.projects.panels import store_panel
from harnesslab.actions.rollouts.recorder import Recorder
from harnesslab.actions.rollouts.storing import store_recording
from harnesslab.core.errors import Conflict, NotFound
from harnesslab.core.running.cases import CaseDefinition
from harnesslab.core.running.panels import PanelDefinition
from harnesslab.formats import bundle
from harnesslab.queries.bundles import bundle_of, header_of
from harnesslab.queries.panels import (
    definition_of,
    get_revision,
    panel_archive,
    panel_rows,
    panel_view,
    revision_named,
)
from harnesslab.queries.rollouts.listing import get_rollout
from harnesslab.requests.experiments import ExperimentRequest
from harnesslab.store.models import PanelRevision, Project
from tests import measuring
from tests.recordings import recording

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_wake_up")]
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
SIGNER = bundle.Signer(KEY.public_key().public_bytes_raw().hex(), KEY.sign)


def revision(name: str = measuring.PANEL, cases: int = 1, project: str = measuring.PROJECT) -> PanelRevision:
    made = (CaseDefinition(f"case {number}", f"Do <b>{number}</b> of {cases}.") for number in range(cases))
    return store_panel(project, name, PanelDefinition(tuple(made)))


def test_revisions_come_newest_first_and_one_of_each_panel_is_the_newest(project: Project) -> None:
    second, other = revision(), revision("another", 3)
    rows = panel_rows()
    assert [(row.name, row.cases, row.newest) for row in rows] == [
        ("another", 3, True),
        (measuring.PANEL, 1, True),
        (measuring.PANEL, 2, False),
    ]
    assert [row.id for row in panel_rows(panel_id=other.panel_id)] == [other.pk]
    assert [row.id for row in panel_rows(project="none")] == []
    assert len(panel_rows(project_id=project.pk)) == len(panel_rows(project=project.name)) == 3
    assert rows[1].argument == f"{measuring.PANEL}@{second.digest[:16]}"


def test_a_revision_is_named_by_the_beginning_of_its_digest_or_is_the_newest(project: Project) -> None:
    first = PanelRevision.objects.get()
    second = revision()
    assert revision_named(project.name, measuring.PANEL) == second
    assert revision_named(project.name, measuring.PANEL, first.digest[:10]) == first
    for digest in ("0000", "%", "\x00", "\udc80", "<b>"):
        with pytest.raises(NotFound, match="no revision"):
            revision_named(project.name, measuring.PANEL, digest)
    with pytest.raises(NotFound, match="no runnable panel 'none'"):
        revision_named(project.name, "none")
    with pytest.raises(NotFound, match="there is no panel revision 999"):
        get_revision(999)


def test_a_panel_says_what_used_it(project: Project) -> None:
    row = ask_experiment(ExperimentRequest.model_validate(measuring.asked()))
    later = revision()
    view = panel_view(row.panel_id or 0)
    assert (view.row.experiments, [use.id for use in view.used], view.trainings) == (1, [row.pk], [])
    assert (view.used[0].solved, view.used[0].state) == (None, "running")
    assert [other.id for other in view.others] == [later.pk]
    assert [case.name for case in view.cases] == ["a", "b"]


def test_an_archive_is_the_same_bytes_each_time_and_holds_every_case(project: Project) -> None:
    made = revision(cases=3)
    once, again = panel_archive(made), panel_archive(get_revision(made.pk))
    assert once == again
    names = zipfile.ZipFile(io.BytesIO(once)).namelist()
    assert all(not name.startswith("/") and ".." not in name for name in names)
    assert len(definition_of(made).cases) == 3


def test_panels_take_as_many_queries_for_many_as_for_few(project: Project, django_assert_num_queries: Any) -> None:
    for number in range(5):
        revision(f"panel {number}")
        revision(f"panel {number}", 2)
    with django_assert_num_queries(1):
        assert len(panel_rows()) == 11


def test_a_bundle_holds_a_rollout_with_its_comparisons() -> None:
    rows = [store_recording(recording(trial=trial, facts={"x": "<b>\udc80"}), None) for trial in range(2)]
    data = bundle_of(rows[0].pk, SIGNER, [rows[1].pk])
    names = zipfile.ZipFile(io.BytesIO(data)).namelist()
    assert any(name.endswith(f"comparison-{rows[0].pk}-{rows[1].pk}.json") for name in names)
    header = header_of(get_rollout(rows[0].pk))
    assert (header.case, header.project, header.panel, header.trial) == ("case-1", "tests", "panel-1", 0)
    assert header.facts == {"x": "<b>\udc80"}


def test_a_bundle_of_what_is_not_there_or_still_runs_is_refused() -> None:
    row = store_recording(recording(), None)
    for ids in ((999, ()), (row.pk, (999,))):
        with pytest.raises(NotFound, match="there is no rollout 999"):
            bundle_of(ids[0], SIGNER, ids[1])
    running = Recorder(recording(trial=1)).rollout
    with pytest.raises(Conflict, match="it still runs"):
        bundle_of(running.pk, SIGNER)
