"""Imports of one lineage are one project, and of two are two: a story never mixes what has nothing to do with it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harnesslab.actions.imports.importing import import_unit, import_units
from harnesslab.formats.discovery import discover
from harnesslab.formats.reading.inputs import InputFile, Unit
from harnesslab.store.models import Project, Rollout

pytestmark = pytest.mark.django_db


def transcript(folder: Path, name: str, text: str = "hello") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    messages = [{"role": "user", "content": f"{text} {name}"}, {"role": "assistant", "content": "hi"}]
    path = folder / name
    path.write_text(json.dumps({"messages": messages}) + "\n")
    return path


def projects(*paths: Path) -> list[str]:
    results = list(import_units(discover(paths)))
    assert {result.status for result in results} <= {"imported", "partial"}, results
    return [Rollout.objects.get(pk=result.rollouts[0]).project.name for result in results]


def test_a_file_belongs_to_its_folder_and_a_folder_that_says_nothing_to_the_one_above(tmp_path: Path) -> None:
    one = transcript(tmp_path / "airline", "a.jsonl")
    two = transcript(tmp_path / "airline" / "runs", "b.jsonl")
    assert projects(one, two.parent) == ["airline", "airline"]


def test_a_repository_is_one_project_wherever_in_it_files_lie(tmp_path: Path) -> None:
    (tmp_path / "harness" / ".git").mkdir(parents=True)
    one, two = (
        transcript(tmp_path / "harness" / "x", "a.jsonl"),
        transcript(tmp_path / "harness" / "y" / "z", "b.jsonl"),
    )
    assert projects(one, two) == ["harness", "harness"]


def test_equal_names_of_other_places_get_a_suffix_and_keep_it(tmp_path: Path) -> None:
    one, two = transcript(tmp_path / "a" / "demo", "a.jsonl"), transcript(tmp_path / "b" / "demo", "b.jsonl")
    assert projects(one, two) == ["demo", "demo (2)"]
    assert projects(transcript(tmp_path / "b" / "demo", "c.jsonl")) == ["demo (2)"]


def test_a_project_that_somebody_named_takes_what_bears_its_name(tmp_path: Path) -> None:
    Project.objects.create(name="demo")
    assert projects(transcript(tmp_path / "demo", "a.jsonl")) == ["demo"]


def test_what_is_asked_for_comes_first(tmp_path: Path) -> None:
    (unit,) = discover([transcript(tmp_path / "demo", "a.jsonl")])
    result = import_unit(unit, project="mine")
    assert Rollout.objects.get(pk=result.rollouts[0]).project.name == "mine"


def test_a_dropped_file_that_names_none_is_asked_for_it(tmp_path: Path) -> None:
    path = transcript(tmp_path, "a.jsonl")
    unit = Unit(path.name, {path.name: InputFile.of_path(path)})
    refused = import_unit(unit, project=None)
    assert (refused.status, refused.reason) == ("refused", "a.jsonl: it names no project (name one beside the files)")
    assert not Rollout.objects.exists()
    assert import_unit(unit, project="mine").status == "imported"
