"""Our own lines: one that can't be read costs itself, or its rollout, and never the file."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harnesslab.core.errors import FormatRefused
from harnesslab.core.running.rollout import Recording
from harnesslab.core.trace.events import ModelCall
from harnesslab.formats.native import importer as native
from harnesslab.formats.reading.inputs import InputFile, Report, Unit


def opening(case: str = "c", **more: Any) -> dict[str, Any]:
    return {"rollout": {"schema": native.SCHEMA, "case": case, "outcome": "solved", **more}}


def call(text: str, content: Any = "go") -> dict[str, Any]:
    return {"kind": "model_call", "messages": [{"role": "user", "content": content}], "text": text}


def deep(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = [value]
    return value


def read(*lines: dict[str, Any] | str) -> tuple[list[Recording], list[tuple[str, str]]]:
    data = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines).encode()
    report = Report()
    found = list(native.read(Unit("own.jsonl", {"own.jsonl": InputFile.of_bytes("own.jsonl", data)}), report))
    return found, [(item.where, item.why) for item in report.skipped]


def texts(recording: Recording) -> list[str | None]:
    return [event.text for event in recording.trace.events if isinstance(event, ModelCall)]


@pytest.mark.parametrize("levels", [250, 900])
def test_a_line_that_is_nested_too_deeply_costs_itself_alone(levels: int) -> None:
    (one, two), skipped = read(opening(), call("a"), call("b", deep(levels)), call("c"), opening("d"), call("e"))
    assert (texts(one), texts(two)) == (["a", "c"], ["e"])
    ((where, why),) = skipped
    assert where == "line 3"
    assert "nested" in why


def test_a_line_that_no_parser_reads_costs_itself_alone() -> None:
    line = '{"kind": "tool_call", "name": "x", "arguments": ' + "[" * 50_000 + "]" * 50_000 + "}"
    (one,), skipped = read(opening(), call("a"), line, call("c"))
    assert texts(one) == ["a", "c"]
    assert skipped[0][0] == "line 3"


@pytest.mark.parametrize("broken", [{"outcome": "vibes"}, {"schema": "harnesslab.trace/9"}, {"trial": "one"}])
def test_an_opening_that_can_not_be_read_costs_its_rollout_alone(broken: dict[str, Any]) -> None:
    found, skipped = read(opening("a"), call("a"), opening("b", **broken), call("b"), opening("c"), call("c"))
    assert [(item.case, item.source.position) for item in found] == [("a", 0), ("c", 2)]
    assert [where for where, _ in skipped] == ["line 3"]


def test_a_manifest_that_can_not_be_made_costs_its_rollout_alone() -> None:
    found, skipped = read(opening("a", conditions={"sampling.other": deep(300)}), opening("b"))
    assert [item.case for item in found] == ["b"]
    assert skipped[0][0] == "rollout 0"


def test_a_file_without_a_readable_rollout_is_refused_with_the_first_reason() -> None:
    with pytest.raises(FormatRefused, match="line 1"):
        read(opening(outcome="vibes"), call("a"))


def test_the_revision_and_the_panel_that_an_opening_states_are_conditions() -> None:
    (found,), _ = read(opening(revision="aaa111", panel="shell", harness="loop"), call("a"))
    known = {name: found.manifest.value(name) for name in ("harness.revision", "harness.name", "panel.name")}
    assert known == {"harness.revision": "aaa111", "harness.name": "loop", "panel.name": "shell"}
    (found,), _ = read(opening(revision="a", conditions={"harness.revision": "stated"}), call("a"))
    assert found.manifest.value("harness.revision") == "stated"


def test_a_key_that_no_field_has_is_kept_beside_the_event() -> None:
    call = {"kind": "tool_call", "name": "run", "colour": "red", "extra": {"n": 1}}
    (found,), skipped = read(opening(), call, {"kind": "user_turn", "mood": 3})
    assert not skipped
    assert [event.extra for event in found.trace.events[1:3]] == [{"n": 1, "colour": "red"}, {"mood": 3}]
