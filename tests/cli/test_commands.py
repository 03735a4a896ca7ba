"""The commands, as a person types them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from harnesslab.actions.rollouts.storing import store_recording
from harnesslab.formats.native import importer as native
from harnesslab.store.models import Rollout
from tests.cli.commands import run
from tests.formats.test_tau_bench import trials
from tests.recordings import recording

pytestmark = pytest.mark.django_db


@pytest.fixture
def file(tmp_path: Path) -> Path:
    place = tmp_path / "airline.json"
    place.write_text(json.dumps(trials()))
    return place


def test_import_prints_a_table_and_totals(file: Path) -> None:
    result = run("import", file)
    assert result.exit_code == 0, result.output
    assert "3 rollouts; 1 imported" in result.output


def test_import_as_json_prints_one_object_a_file(file: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("# Notes")
    result = run("import", "--json", tmp_path)
    rows = [json.loads(line) for line in result.output.splitlines()]
    assert [(row["file"], row["status"]) for row in rows] == [("airline.json", "imported"), ("notes.md", "refused")]
    assert set(rows[0]) >= {"file", "status", "format", "rollouts", "reason", "skipped"}


def test_import_of_only_refused_files_fails(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("# Notes")
    assert run("import", tmp_path / "notes.md").exit_code == 1


def test_a_path_that_is_not_there_gets_one_line() -> None:
    result = run("import", "/nowhere/at/all")
    assert result.exit_code == 1
    assert "no such file or folder" in result.output


def test_files_compare_by_position(file: Path) -> None:
    found = json.loads(run("compare", f"{file}#0", f"{file}#1", "--only", "tool-calls", "--json").output)
    assert found["first_divergence"]["tool_call_index"] == 1
    assert not found["identical"]
    same = json.loads(run("compare", f"{file}#0", f"{file}#2", "--only", "tool-calls", "--json").output)
    assert same["identical"]
    assert same["first_divergence"] is None


def test_whole_traces_part_at_the_simulated_user(file: Path) -> None:
    found = json.loads(run("compare", f"{file}#0", f"{file}#2", "--json").output)
    assert found["first_divergence"]["boundary"] == "user"
    assert found["first_divergence"]["cause"] == "user"
    assert "user" in found["sentence"]


def test_stored_rollouts_compare_by_id() -> None:
    a, b = store_recording(recording(), None), store_recording(recording(["ls"], trial=1), None)
    result = run("compare", a.pk, b.pk)
    assert result.exit_code == 0, result.output
    assert result.output.startswith("Identical for 1 step")


@pytest.mark.parametrize("argument", ["999", "missing.json", "missing.json#2"])
def test_a_rollout_that_is_not_there_is_named(argument: str) -> None:
    result = run("compare", argument, argument)
    assert result.exit_code == 1
    assert result.output.startswith("error: ")


def test_a_position_beyond_the_file_is_named(file: Path) -> None:
    assert "no rollout #7" in run("compare", f"{file}#7", f"{file}#0").output


def test_an_exported_manifest_has_the_digest_of_the_page(tmp_path: Path) -> None:
    row = store_recording(recording(), None)
    result = run("export", row.pk, "--manifest", tmp_path / "m.json")
    assert result.exit_code == 0, result.output
    assert hashlib.sha256((tmp_path / "m.json").read_bytes()).hexdigest() == row.manifest_id


def test_a_bundle_is_exported_verified_and_imported_elsewhere(tmp_path: Path) -> None:
    a, b = store_recording(recording(), None), store_recording(recording(["ls"], trial=1), None)
    place = tmp_path / "b.zip"
    assert run("export", a.pk, "--bundle", place, "--with", b.pk).exit_code == 0
    verified = run("verify", place)
    assert verified.exit_code == 0, verified.output
    assert bytes(a.head or b"").hex() in verified.output
    assert "already here" in run("import", "--json", place).output


def test_a_changed_bundle_fails_to_verify_with_the_place(tmp_path: Path) -> None:
    row = store_recording(recording(), None)
    place = tmp_path / "b.zip"
    run("export", row.pk, "--bundle", place)
    data = bytearray(place.read_bytes())
    at = data.index(b"chunks/0000.zst") + 60
    data[at] ^= 1
    place.write_bytes(bytes(data))
    result = run("verify", place)
    assert result.exit_code == 1
    assert "chunks/0000.zst" in result.output


def test_the_demonstration_runs_once_and_shows_what_it_promises() -> None:
    assert "64 demonstration rollouts" in run("demo").output
    assert "already" in run("demo").output
    greedy = Rollout.objects.filter(case__name="near-tie", experiment__name="greedy").order_by("trial")
    found = json.loads(run("compare", greedy[0].pk, greedy[1].pk, "--json").output)
    assert found["declared_differences"] == ["engine.kernels"]
    assert found["first_divergence"]["token_index"] == 0
    assert found["ladder"]["logprobs"] == "different"


def test_native_lines_survive_a_round_trip(tmp_path: Path) -> None:
    made = recording()
    header = native.Header(schema=native.SCHEMA, case="c", outcome=made.outcome)
    place = tmp_path / "own.jsonl"
    place.write_text("\n".join(json.dumps(line) for line in native.lines(header, made.trace)))
    found = json.loads(run("compare", place, place, "--json").output)
    assert found["identical"]
