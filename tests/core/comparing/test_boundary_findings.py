"""Findings at the boundaries other than model and tool."""

from __future__ import annotations

import pytest
from hypothesis import given

from harnesslab.core.comparing.boundary_findings import boundary_hypothesis
from harnesslab.core.comparing.endings import CUT_SHORT
from harnesslab.core.comparing.evidence import Cause
from harnesslab.core.trace.events import (
    ModelCall,
    NetworkExchange,
    RolloutEnded,
    RolloutStarted,
    SubagentCall,
    TestResult,
    ToolCall,
    UserTurn,
    Verification,
)
from harnesslab.core.trace.trace import Trace
from tests.core.traces import traces

SPOKEN = (ModelCall, ToolCall, UserTurn, RolloutStarted)


@given(traces(), traces())
def test_any_two_events_can_be_explained(a: Trace, b: Trace) -> None:
    for left in a.events:
        for right in b.events:
            if type(left) is not type(right) or not isinstance(left, SPOKEN):
                assert boundary_hypothesis(left, right, ()).why


@pytest.mark.parametrize("outcome", sorted(CUT_SHORT))
def test_an_end_from_outside_is_infrastructure(outcome: str) -> None:
    ended, solved = RolloutEnded(outcome=outcome), RolloutEnded(outcome="solved")
    assert boundary_hypothesis(ended, solved, ()).cause is (Cause.UNKNOWN if outcome == "crash" else Cause.INFRA)
    assert boundary_hypothesis(ModelCall(), ended, ()).why == f"B was cut short here ({outcome.replace('_', ' ')})"


def test_other_workspaces_after_the_same_outcome() -> None:
    a, b = (RolloutEnded(outcome="solved", diff=diff) for diff in ("+a", "+b"))
    assert boundary_hypothesis(a, b, ()).why == "everything before is equal, yet the workspaces differ at the end"


def test_the_evidence_of_a_verdict_is_what_differs_of_it() -> None:
    a = Verification(passed=True, reward=0.5, tests=(TestResult("t", passed=True),))
    b = Verification(passed=True, reward=0.5, tests=(TestResult("t", passed=False),))
    assert [row.label for row in boundary_hypothesis(a, b, ()).evidence] == ["tests"]


def test_an_error_is_evidence_and_never_called_volatile() -> None:
    a = NetworkExchange(target="t", response="in 0.1s", error="reset")
    b = NetworkExchange(target="t", response="in 0.2s")
    found = boundary_hypothesis(a, b, ())
    assert found.why == "the service answered differently"
    assert [row.label for row in found.evidence] == ["service", "error"]


def test_another_task_for_a_sub_agent_is_the_harness() -> None:
    found = boundary_hypothesis(SubagentCall(name="a", input="x"), SubagentCall(name="a", input="y"), ())
    assert (found.cause, found.boundary) == (Cause.HARNESS, "harness")
    assert found.why == "the sub-agent was asked for something else"
