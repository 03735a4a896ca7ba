"""A step is named by what it did."""

from __future__ import annotations

import pytest
from hypothesis import given

from harnesslab.core.trace.events import (
    AnyEvent,
    ClockRead,
    HarnessAction,
    MemoryAccess,
    NetworkExchange,
    Retrieval,
    RolloutEnded,
    RolloutStarted,
    SubagentCall,
    TestResult,
    ToolCall,
    UserTurn,
    Verification,
)
from harnesslab.core.trace.labels import Label, clip, label, result_line
from harnesslab.core.trace.trace import Trace
from tests.core.traces import bash, model, request, traces


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (model("On it.", request("bash", {"command": "ls  -la"})), Label("model → bash", "On it. · ls -la")),
        (model(None, request("a", {"x": 1}), request("b", {})), Label("model → a, b", "x=1")),
        (model("All done."), Label("model", "All done.")),
        (model(None), Label("model", "no text")),
        (model(None, refusal="I can't."), Label("model refused", "I can't.")),
        (model("hm", rejected="no action"), Label("model, rejected", "hm")),
        (model(None, error="overloaded"), Label("model failed", "overloaded")),
        (bash("make test"), Label("bash", "make test")),
        (ToolCall(name="edit", raw='{"a":'), Label("edit", '{"a":')),
        (UserTurn(content=[{"type": "text", "text": "Hello\nthere"}]), Label("user", "Hello there")),
        (SubagentCall(name="research", input="find it"), Label("sub-agent research", "find it")),
        (Retrieval(query="foxes"), Label("retrieval", "foxes")),
        (MemoryAccess(operation="read", key="plan"), Label("memory read", "plan")),
        (ClockRead(value="10:00"), Label("clock", "10:00")),
        (NetworkExchange(target="example.org"), Label("network", "example.org")),
        (HarnessAction(name="insert", mechanism="reminder", detail="2 left"), Label("reminder", "2 left")),
        (
            Verification(passed=False, reward=0.5, tests=(TestResult("a", passed=True), TestResult("b", None))),
            Label("verifier", "failed · reward 0.5 · 1/2 tests"),
        ),
        (Verification(), Label("verifier", "no verdict")),
        (Verification(error="crashed"), Label("verifier", "crashed")),
        (RolloutStarted(), Label("start", "")),
        (RolloutEnded(outcome="step_cap"), Label("end", "step cap")),
    ],
)
def test_an_event_is_named_by_its_action(event: AnyEvent, expected: Label) -> None:
    assert label(event) == expected


@given(traces())
def test_every_event_has_a_label_on_one_line(trace: Trace) -> None:
    for event in trace.events:
        found = label(event)
        assert found.what
        assert "\n" not in found.detail
        assert len(found.detail) <= 160


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (bash("ls", "a.py\n"), "2 lines · a.py"),
        (bash("ls", "a.py"), "a.py"),
        (bash("ls", ""), "no output"),
        (bash("ls", "x", exit_code=1, timed_out=True, error="killed"), "timed out · exit 1 · killed · x"),
        (ToolCall(name="ls", has_result=False), "no result recorded"),
    ],
)
def test_a_result_is_told_in_a_line(call: ToolCall, line: str) -> None:
    assert result_line(call) == line


def test_clipping_ends_in_an_ellipsis() -> None:
    assert clip("a b  c") == "a b c"
    assert clip("x" * 200, 10) == "x" * 9 + "…"
