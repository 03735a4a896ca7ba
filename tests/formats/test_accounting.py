"""Damaged bytes are kept and marked, times say their zone, names that look alike are told apart."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from harnesslab.core.running.rollout import Recording
from harnesslab.core.trace import seals
from harnesslab.core.trace.events import ModelCall, RolloutStarted
from harnesslab.formats import registry
from harnesslab.formats.reading.inputs import Report, Unit
from tests.formats.making import events_of, file_unit, folder_unit, lines, zipped

CASES = Path(__file__).parents[3] / "shared" / "cases"


def found(unit: Unit) -> tuple[list[Recording], Report]:
    report = Report()
    recordings = list(registry.recordings(registry.recognise(unit), report))
    for recording in recordings:
        seals.verify(recording.trace, seals.seals(recording.trace))
    return recordings, report


def native(*events: Any, **opening: Any) -> bytes:
    return lines([{"rollout": {"schema": "harnesslab.trace/1", "case": "c", "outcome": "solved", **opening}}, *events])


CALL = {
    "kind": "model_call",
    "messages": [{"role": "user", "content": "look at MARK"}],
    "text": "fine",
    "tool_calls": [{"name": "run", "arguments": {"command": "wc MARK"}, "id": "1"}],
}


@pytest.mark.parametrize(
    ("mark", "place"),
    [
        ("wc ", {"at": "tool_calls[0].arguments.command", "offset": 3, "bytes": "ff"}),
        ("look at ", {"at": "messages[0].content", "offset": 8, "bytes": "ff"}),
    ],
)
def test_a_byte_that_is_no_utf_8_is_kept_and_marked_where_it_stands(mark: str, place: dict[str, Any]) -> None:
    data = native(CALL).replace(f"{mark}MARK".encode(), mark.encode() + b"\xff")
    (recording,), report = found(file_unit("run.jsonl", data))
    (call,) = events_of(recording, ModelCall)
    assert call.extra["damaged"] == [place]
    (remark,) = report.remarks
    assert remark.where == "rollout 0, event 1"
    assert remark.why.endswith(f"damaged: ff in {place['at']}, character {place['offset']}")
    assert not report.skipped


def test_bytes_in_a_key_in_a_name_and_in_a_run_are_marked() -> None:
    data = native({"kind": "user_turn", "content": {"KEY": "a"}}, model="m-NAME")
    data = data.replace(b"KEY", b"k\xc3\x28").replace(b"NAME", b"\xe9\xe8")
    (recording,), _ = found(file_unit("run.jsonl", data))
    assert recording.trace.events[0].extra["damaged"] == [{"at": "model", "offset": 2, "bytes": "e9e8"}]
    assert recording.trace.events[1].extra["damaged"] == [{"at": "content (key)", "offset": 1, "bytes": "c3"}]


def test_a_half_character_that_was_escaped_is_no_damage() -> None:
    (recording,), report = found(file_unit("run.jsonl", native({"kind": "user_turn", "content": "\udcff"})))
    assert "damaged" not in recording.trace.events[1].extra
    assert not report.remarks


def test_damage_in_a_member_of_a_folder_or_an_archive_is_found() -> None:
    result: dict[str, Any] = {
        "task_name": "t",
        "trial_name": "t__a",
        "task_checksum": "f",
        "config": {},
        "verifier_result": None,
    }
    folder = folder_unit("t__a", {"result.json": result, "verifier/test-stdout.txt": b"caf\xe9", "config.json": {}})
    (recording,), report = found(folder)
    assert "damaged" in recording.trace.events[1].extra
    assert report.remarks
    log = {"version": 2, "status": "success", "eval": {"task": "t", "model": "m", "created": "2026-01-01T00:00:00Z"}}
    sample = b'{"id": 1, "epoch": 1, "input": "caf\xe9", "messages": [{"role": "user", "content": "caf\xe9"}]}'
    archive = zipped({"header.json": log, "samples/1_epoch_1.json": sample})
    (recording,), report = found(file_unit("log.eval", archive))
    assert any("damaged" in event.extra for event in recording.trace.events)


def test_a_time_without_a_zone_is_kept_so_and_said_so() -> None:
    times = {"started_at": "2026-07-01T10:00:00", "ended_at": "2026-07-01T10:00:05"}
    (recording,), report = found(file_unit("run.jsonl", native({"kind": "user_turn", "content": "x"}, **times)))
    assert recording.trace.events[0].extra["times"] == times
    assert recording.started_at == datetime(2026, 7, 1, 10, tzinfo=UTC)
    assert "state no zone" in report.remarks[0].why


def test_an_offset_is_kept_and_a_time_in_utc_needs_no_word() -> None:
    times = {"started_at": "2026-07-01T10:00:00+02:00", "ended_at": "2026-07-01T08:00:05Z"}
    (recording,), report = found(file_unit("run.jsonl", native({"kind": "user_turn", "content": "x"}, **times)))
    assert isinstance(recording.trace.events[0], RolloutStarted)
    assert recording.trace.events[0].extra["times"] == {"started_at": "2026-07-01T10:00:00+02:00"}
    assert recording.started_at == datetime(2026, 7, 1, 8, tzinfo=UTC)
    assert not report.remarks


def test_two_spellings_of_one_name_are_told_apart_and_it_says_so() -> None:
    first, second = (native({"kind": "user_turn", "content": "x"}, tags=[], case=name) for name in ("é", "e\u0301"))
    recordings, report = found(file_unit("run.jsonl", first + second))
    assert [recording.case for recording in recordings] == ["é", "e\u0301"]
    (remark,) = report.remarks
    assert "told apart" in remark.why


@pytest.mark.skipif(not CASES.is_dir(), reason="the real traces are not beside this checkout")
def test_the_case_of_one_damaged_byte() -> None:
    data = (CASES / "plant_byte_b.jsonl").read_bytes()
    (recording,), report = found(file_unit("plant_byte_b.jsonl", data))
    marked = [event.extra["damaged"] for event in recording.trace.events if "damaged" in event.extra]
    assert marked == [[{"at": "tool_calls[1].arguments.command", "offset": 7, "bytes": "ff"}]]
    assert report.remarks
