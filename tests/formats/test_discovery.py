"""Paths become units: files alone, and folders that are one thing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harnesslab.core.errors import FormatRefused, NotFound
from harnesslab.formats.companions import INDEX, MEMO
from harnesslab.formats.discovery import discover, expand
from harnesslab.formats.reading.inputs import Report, Unit
from tests.formats.making import file_unit, zipped


def write(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


def names(units: list[Unit]) -> list[str]:
    return [unit.name for unit in units]


def experiments(root: Path) -> Path:
    return write(
        root,
        {
            "run-1/experiment.json": json.dumps({"experiment_id": "run-1", "git_commit_hash": "c0ffee0123456789"}),
            "run-1/tasks/t/agent/steps.jsonl": "{}",
            "run-2/tasks/t/agent/steps.jsonl": "{}",
            "runs.jsonl": '{"experiment_id": "run-1", "verdict": "promoted"}\n{"experiment_id": "run-11"}\n',
            "learning.md": "# Learning memo\n\n- `c0ffee012345` shorter\n  - promoted\n- `aaaa` other\n",
        },
    )


def test_files_come_alone_sorted_and_without_hidden_ones(tmp_path: Path) -> None:
    write(tmp_path, {"b.json": "1", "a/c.json": "2", ".hidden/d.json": "3", "a/.e": "4"})
    assert names(list(discover([tmp_path]))) == ["c.json", "b.json"]


def test_a_run_folder_is_one_unit_with_its_own_part_of_the_index_and_memo(tmp_path: Path) -> None:
    first, second = discover([experiments(tmp_path)])
    assert (first.name, second.name) == ("run-1", "run-2")
    assert first.folder
    assert first.files[INDEX].read() == b'{"experiment_id": "run-1", "verdict": "promoted"}\n'
    assert first.files[MEMO].read() == b"- `c0ffee012345` shorter\n  - promoted\n"
    assert second.files[INDEX].read() == b""


def test_a_runs_digest_does_not_change_when_the_index_grows(tmp_path: Path) -> None:
    before = next(iter(discover([experiments(tmp_path)]))).digest()
    with (tmp_path / "runs.jsonl").open("a") as index:
        index.write('{"experiment_id": "run-3"}\n')
    assert next(iter(discover([tmp_path]))).digest() == before


def test_a_run_folder_given_itself_is_one_unit(tmp_path: Path) -> None:
    (unit,) = discover([experiments(tmp_path) / "run-1"])
    assert unit.name == "run-1"
    assert set(unit.files) == {"experiment.json", "tasks/t/agent/steps.jsonl"}


def test_a_harbor_trial_is_one_unit_and_its_job_is_not(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "job/config.json": "{}",
            "job/result.json": "{}",
            "job/task__abc/result.json": "{}",
            "job/task__abc/config.json": "{}",
            "job/task__abc/agent/trajectory.json": "{}",
            "job/task__xyz/result.json": "{}",
            "job/task__xyz/verifier/reward.txt": "1",
        },
    )
    found = list(discover([tmp_path]))
    assert [(unit.name, unit.folder) for unit in found] == [
        ("config.json", False),
        ("result.json", False),
        ("task__abc", True),
        ("task__xyz", True),
    ]


def test_links_out_of_the_folder_are_left_out_and_noted(tmp_path: Path) -> None:
    write(tmp_path, {"secret.json": "1", "in/a.json": "2"})
    (tmp_path / "in" / "out.json").symlink_to(tmp_path / "secret.json")
    (tmp_path / "in" / "loop").symlink_to(tmp_path / "in")
    (tmp_path / "in" / "same.json").symlink_to(tmp_path / "in" / "a.json")
    report = Report()
    assert names(list(discover([tmp_path / "in"], report))) == ["a.json", "same.json"]
    assert [note.where for note in report.skipped] == ["loop", "out.json"]


def test_patterns_are_expanded_and_missing_paths_are_named(tmp_path: Path) -> None:
    write(tmp_path, {"a.json": "1", "b.txt": "2"})
    assert names(list(discover([f"{tmp_path}/*.json"]))) == ["a.json"]
    with pytest.raises(NotFound, match=r"nothing\.json"):
        list(discover([tmp_path / "nothing.json"]))


def test_a_zip_of_importable_files_yields_the_units_inside() -> None:
    members = {"runs/run-1/experiment.json": "{}", "runs/a.json": "1", "__MACOSX/b": "2", "runs/.c": "3"}
    found = list(expand(file_unit("upload.zip", zipped(members))))
    assert [(unit.name, unit.folder) for unit in found] == [("a.json", False), ("run-1", True)]
    assert found[0].only.read() == b"1"


def test_a_log_archive_and_a_plain_file_stay_whole() -> None:
    for unit in (file_unit("a.eval", zipped({"header.json": "{}"})), file_unit("a.json", {})):
        assert list(expand(unit)) == [unit]


def test_a_zip_with_an_unsafe_name_or_cut_off_is_refused() -> None:
    with pytest.raises(FormatRefused, match="would leave the archive"):
        list(expand(file_unit("upload.zip", zipped({"../a.json": "1"}))))
    data = zipped({"a.json": "1" * 50, "b.json": "2" * 50})
    with pytest.raises(FormatRefused, match="cut off"):
        list(expand(file_unit("upload.zip", data[:-60])))
