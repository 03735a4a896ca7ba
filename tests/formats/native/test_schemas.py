"""Traces and bundles are read by the schema they state; one of a newer version is refused with a clear sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harnesslab.core.canonical import canonical_bytes
from harnesslab.core.errors import FormatRefused, SealBroken
from harnesslab.core.trace.events import KINDS, ToolCall
from harnesslab.formats import bundle
from harnesslab.formats.native import importer as native
from harnesslab.formats.native.schemas import TRACES, TraceSchema
from harnesslab.formats.reading.inputs import Report
from tests.formats.building import lines_unit, tool_calls
from tests.formats.test_bundle import data, members, rewritten

GOLDEN = Path(__file__).parents[2] / "golden"
__all__ = ["data"]
CALL = {"kind": "tool_call", "name": "run", "colour": "red"}


def opening(number: int, **more: Any) -> dict[str, Any]:
    return {"rollout": {"schema": f"harnesslab.trace/{number}", "case": "c", "outcome": "solved", **more}}


def test_the_events_of_today_have_the_keys_of_the_newest_trace_and_no_others() -> None:
    keys = {kind: {*each.__struct_fields__, "kind"} for kind, each in KINDS.items()}
    assert keys == {kind: set(TRACES.current.keys_of(kind)) for kind in TRACES.current.kinds}
    assert set(native.Header.__struct_fields__) == TRACES.current.opening


def test_a_version_of_the_trace_has_the_keys_that_it_always_had() -> None:
    keys = {
        TRACES.schema(number): {
            "opening": sorted(schema.opening),
            "every": sorted(schema.every),
            **{kind: sorted(keys) for kind, keys in schema.kinds.items()},
        }
        for number, schema in TRACES.rules.items()
    }
    assert keys == json.loads((GOLDEN / "trace-versions.json").read_text())


def test_a_trace_of_a_newer_schema_is_refused_with_what_would_help() -> None:
    with pytest.raises(FormatRefused) as refusal:
        list(native.read(lines_unit([opening(2), CALL]), Report()))
    assert "written as harnesslab.trace/2, which this version doesn't know" in refusal.value.sentence
    assert "it reads up to harnesslab.trace/1" in refusal.value.sentence


def test_a_key_that_a_newer_trace_gave_a_meaning_stays_beside_an_older_one_s_event(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = TRACES.current
    kinds = {**one.kinds, "tool_call": one.kinds["tool_call"] - {"retries"}}
    monkeypatch.setitem(TRACES.rules, 2, one)
    monkeypatch.setitem(TRACES.rules, 1, TraceSchema(one.opening - {"reward"}, one.every, kinds))
    call = {"kind": "tool_call", "name": "run", "retries": 3}
    unit = lines_unit([opening(1, reward=1.0), call, opening(2, reward=1.0), call])
    old, new = native.read(unit, Report())
    assert [(each.reward, _call(each)) for each in (old, new)] == [(None, (None, {"retries": 3})), (1.0, (3, {}))]


def _call(recording: Any) -> tuple[int | None, dict[str, Any]]:
    (call,) = tool_calls(recording)
    assert isinstance(call, ToolCall)
    return call.retries, dict(call.extra)


def test_a_bundle_of_a_newer_schema_is_refused_with_what_would_help(data: bytes) -> None:
    index = json.loads(members(data)["bundle.json"])
    newer = rewritten(data, {"bundle.json": canonical_bytes(index | {"schema": "harnesslab.bundle/3"})})
    with pytest.raises(SealBroken) as refusal:
        bundle.verify(newer)
    assert "bundle.json: written as harnesslab.bundle/3, which this version doesn't know" in refusal.value.sentence
    assert "it reads up to harnesslab.bundle/2" in refusal.value.sentence


def test_a_bundle_is_verified_by_the_rules_of_its_own_schema(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(archive: Any, index: Any) -> Any:
        raise SealBroken("by the rules of 3")

    monkeypatch.setitem(bundle.BUNDLES.rules, 3, refuse)
    assert bundle.verify(data).case
    index = json.loads(members(data)["bundle.json"])
    with pytest.raises(SealBroken, match="by the rules of 3"):
        bundle.verify(rewritten(data, {"bundle.json": canonical_bytes(index | {"schema": "harnesslab.bundle/3"})}))
