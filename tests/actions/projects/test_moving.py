"""Rollouts move with what belongs to them, audited, or not at all; no seal changes."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.test import Client

from harnesslab.actions.imports.importing import import_unit
from harnesslab.actions.projects.moving import move
from harnesslab.actions.rollouts.storing import store_recording
from harnesslab.core.errors import Conflict, HarnessLabError, InvalidValue, NotFound
from harnesslab.core.trace import seals
from harnesslab.formats.discovery import discover
from harnesslab.queries.rollouts.listing import get_rollout
from harnesslab.queries.rollouts.trace_readers import StoredTraceReader
from harnesslab.store.models import AuditEntry, Experiment, Project, Rollout
from tests import live
from tests.recordings import recording
from tests.rig import native_lines

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_wake_up")]


def project_of(pk: int) -> str:
    return Rollout.objects.get(pk=pk).project.name


def test_a_rollout_moves_with_its_case_and_its_reruns_and_keeps_its_seal() -> None:
    parent = live.rerunnable()
    rerun = live.asked(parent)
    attempt = live.attempted(rerun, 0, same=True)
    before = StoredTraceReader(get_rollout(parent.pk)).seals()
    assert move([parent.pk], "elsewhere") == [parent.pk, attempt.pk]
    row = get_rollout(parent.pk)
    assert (row.project.name, row.case.panel.project.name, project_of(attempt.pk)) == ("elsewhere",) * 3
    assert StoredTraceReader(row).seals() == before
    seals.verify(StoredTraceReader(row).trace(), before)
    assert AuditEntry.objects.get(action="move rollouts").detail["count"] == 2
    assert Rollout.objects.get(pk=row.pk).search.startswith("elsewhere ")


def test_an_experiment_moves_whole_or_not_at_all() -> None:
    made = [store_recording(recording(trial=trial, experiment="e", project="p"), None).pk for trial in range(2)]
    with pytest.raises(Conflict, match="1 more rollouts belong to it"):
        move(made[:1], "q")
    assert not Project.objects.filter(name="q").exists()
    move(made, "q")
    assert Experiment.objects.get().project.name == "q"


def test_nothing_is_merged_by_a_move() -> None:
    first = store_recording(recording(experiment="e", project="p"), None)
    store_recording(recording(experiment="e", project="q"), None)
    with pytest.raises(Conflict, match="q has an experiment of that name"):
        move([first.pk], "q")
    assert project_of(first.pk) == "p"


@pytest.mark.parametrize(("ids", "name", "error"), [([9999], "q", NotFound), ([], "q", InvalidValue)])
def test_what_can_not_be_moved_is_said(ids: list[int], name: str, error: type[HarnessLabError]) -> None:
    with pytest.raises(error):
        move(ids, name)


def test_known_bytes_under_another_project_offer_the_move(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(native_lines(2))
    (unit,) = discover([path])
    first = import_unit(unit, project="p")
    again = import_unit(unit, project="an other")
    assert again.status == "duplicate"
    assert again.reason == (
        f"already imported into p; to move it: harnesslab move --file --project 'an other' {first.rollouts[0]}"
    )
    assert import_unit(unit, project="p").reason == "already imported"


def test_the_page_moves_all_of_a_file(client: Client, operator: object, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(native_lines(2))
    (unit,) = discover([path])
    ids = import_unit(unit, project="p").rollouts
    client.force_login(operator)  # type: ignore[arg-type]
    assert "Move it to another project" in client.get(f"/rollouts/{ids[0]}/").content.decode()
    answer = client.post(f"/rollouts/{ids[0]}/move/", {"project": "q", "file": "1"})
    assert answer.status_code == 302
    assert [project_of(pk) for pk in ids] == ["q", "q"]
