"""Events as JSON."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given

from harnesslab.core.canonical import canonical_bytes, parse
from harnesslab.core.errors import NotCanonical
from harnesslab.core.trace.events import KINDS, ModelCall, ToolCall, Usage, Verification, boundary, from_json, to_json
from harnesslab.core.trace.trace import Trace
from tests.core.traces import traces


@given(traces())
def test_an_event_read_back_is_the_event_that_was_written(trace: Trace) -> None:
    for event in trace.events:
        written = canonical_bytes(to_json(event))
        assert canonical_bytes(to_json(from_json(parse(written)))) == written


def test_numbers_that_json_has_no_form_for_reach_their_fields_again() -> None:
    call = ModelCall(logprobs=(-math.inf, -0.5), usage=Usage(input=2**60 + 1))
    read = from_json(parse(canonical_bytes(to_json(call))))
    assert read == call
    read = from_json(parse(canonical_bytes(to_json(Verification(reward=math.nan)))))
    assert isinstance(read, Verification)
    assert read.reward is not None
    assert math.isnan(read.reward)


def test_fields_that_are_not_stated_are_not_written() -> None:
    assert to_json(ToolCall(name="ls")) == {"kind": "tool_call", "name": "ls"}


@pytest.mark.parametrize(
    "value", [{}, {"kind": "tool_call"}, {"kind": "nonsense"}, [], {"kind": "model_call", "step": "x"}]
)
def test_what_is_no_event_is_refused(value: Any) -> None:
    with pytest.raises(msgspec.ValidationError):
        from_json(value)


def test_an_event_nested_without_end_is_refused_with_a_sentence() -> None:
    value: Any = []
    for _ in range(5_000):
        value = [value]
    with pytest.raises(NotCanonical, match="an event nested deeper than 200 levels"):
        to_json(ToolCall(name="ls", result=value))


def test_every_kind_has_a_boundary() -> None:
    needs: dict[str, dict[str, Any]] = {
        "tool_call": {"name": "ls"},
        "subagent_call": {"name": "a"},
        "memory_access": {"operation": "read"},
    }
    needs |= {"network_exchange": {"target": "a"}, "harness_action": {"name": "a"}, "rollout_ended": {"outcome": "a"}}
    named = {kind: boundary(cls(**needs.get(kind, {}))) for kind, cls in KINDS.items()}
    assert named == {
        "rollout_started": "harness",
        "model_call": "model",
        "tool_call": "tool:ls",
        "user_turn": "user",
        "subagent_call": "subagent",
        "retrieval": "retrieval",
        "memory_access": "memory",
        "clock_read": "clock",
        "network_exchange": "network",
        "harness_action": "harness",
        "verification": "harness",
        "rollout_ended": "harness",
    }


def test_an_event_nested_deeper_than_json_may_be_has_no_seal() -> None:
    value: Any = []
    for _ in range(250):
        value = [value]
    with pytest.raises(NotCanonical, match="JSON nested deeper than 200 levels"):
        canonical_bytes(to_json(ToolCall(name="ls", result=value)))
