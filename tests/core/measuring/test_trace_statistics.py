"""What a trace adds up to: every format and live, each number once."""

from __future__ import annotations

from pathlib import Path

import pytest

from harnesslab.core.measuring.askings import Repair
from harnesslab.core.measuring.trace_statistics import TraceStatistics, trace_statistics
from harnesslab.core.running.rollout import Outcome
from harnesslab.core.trace.events import (
    HarnessAction,
    ModelCall,
    TestResult,
    ToolCall,
    ToolRequest,
    Usage,
    Verification,
)
from harnesslab.core.trace.tool_uses import LONGEST_NAME, NAMES, OTHERS
from harnesslab.core.trace.trace import TraceBuilder
from harnesslab.formats.discovery import discover, expand
from harnesslab.formats.reading.inputs import Report
from harnesslab.formats.reading.values import mapping
from harnesslab.formats.registry import recognise
from harnesslab.store.text import frozen, thawed

TREE = Path(__file__).parents[3].parent / "shared" / "traces" / "harness-training" / "experiments"


def counted(
    *events: ModelCall | ToolCall | HarnessAction | Verification, outcome: Outcome = Outcome.SOLVED
) -> TraceStatistics:
    builder = TraceBuilder()
    for event in events:
        builder.add(event)
    return trace_statistics(builder.close(outcome), outcome)


def asked(*names: str, **fields: object) -> ModelCall:
    return ModelCall(tool_calls=tuple(ToolRequest(name) for name in names), **fields)  # type: ignore[arg-type]


def test_a_rejected_answer_is_a_repair_and_the_next_attempt_recovers_it() -> None:
    found = counted(
        asked(rejected="MissingToolCall: no call", usage=Usage(10, 5)),
        asked(rejected="MissingToolCall: no call again", attempt=1, usage=Usage(12, 5)),
        asked("run", attempt=2, usage=Usage(14, 5)),
        asked("run", step=1, usage=Usage(16, 5)),
    )
    assert (found.steps, found.calls, found.input, found.output) == (2, 4, 52, 20)
    assert (found.first_attempts, found.first_valid, found.fatal) == (2, 1, 0)
    assert found.repairs == {"MissingToolCall": Repair(2, 2)}


def test_a_step_without_a_valid_answer_is_fatal_and_kinds_of_fault_leave_numbers_out() -> None:
    found = counted(
        asked(rejected="2 commands where one is wanted"),
        asked(rejected="3 commands where one is wanted", attempt=1),
        asked("run", step=1),
    )
    assert (found.fatal, found.first_attempts) == (1, 2)
    assert found.repairs == {"# commands where one is wanted": Repair(2, 0)}


def test_a_request_that_infrastructure_failed_is_no_answer_and_spoils_no_first_attempt() -> None:
    found = counted(asked(error="overloaded", latency=1.0), asked("run", attempt=1, latency=2.0))
    assert (found.calls, found.first_attempts, found.first_valid, found.model) == (1, 1, 1, 3.0)


def test_served_answers_are_counted_apart_and_never_billed() -> None:
    found = counted(
        asked("run", served_from_cache=True, usage=Usage(100, 10, 90, None, 5), latency=9.0),
        asked("run", step=1, extra={"served": "from the record"}, usage=Usage(100, 10)),
        asked("run", step=2, extra={"served": "live after a miss", "waited": 0.5}, usage=Usage(7, 3), latency=1.0),
    )
    assert (found.calls, found.served, found.input, found.output, found.cached, found.reasoning) == (
        1,
        2,
        7,
        3,
        None,
        None,
    )
    assert (found.served_input, found.served_output) == (200, 20)
    assert (found.model, found.waited, found.first_attempts) == (1.0, 0.5, 3)


def test_calls_of_a_subagent_in_one_step_are_askings_of_their_own() -> None:
    found = counted(asked("hand"), asked("look", agent="reader"), asked("look", agent="reader"))
    assert (found.calls, found.first_attempts, found.first_valid) == (3, 3, 3)


def test_tokens_of_an_answer_are_shared_among_the_calls_it_asked_for_and_none_is_lost() -> None:
    found = counted(
        asked("read", "read", "write", usage=Usage(1, 11)),
        ToolCall(name="read", latency=0.5, exit_code=1),
        ToolCall(name="read", latency=0.5),
        ToolCall(name="write", timed_out=True),
    )
    read, write = found.tools["read"], found.tools["write"]
    assert read.output_tokens + write.output_tokens == 11
    assert (read.output_tokens, read.asked, read.calls, read.failed, read.timed, read.seconds) == (8, 2, 2, 1, 2, 1.0)
    assert (write.failed, write.timed) == (1, 0)


def test_an_answer_that_names_no_tool_pays_for_what_runs_after_it() -> None:
    found = counted(
        asked(text="ls", usage=Usage(1, 10)),
        ToolCall(name="run"),
        asked(text="done", step=1, usage=Usage(1, 4)),
    )
    assert (found.tools["run"].output_tokens, found.tools["run"].asked) == (10, 1)


@pytest.mark.parametrize(
    ("outcome", "judged", "said"),
    [
        (Outcome.SOLVED, False, True),
        (Outcome.FAILED_VERIFICATION, False, True),
        (Outcome.STEP_CAP, True, False),
        (Outcome.UNKNOWN, True, True),
        (Outcome.UNKNOWN, False, None),
        (Outcome.CRASH, False, None),
    ],
)
def test_whether_it_was_handed_in(outcome: Outcome, judged: bool, said: bool | None) -> None:
    assert counted(*[Verification(passed=False)] * judged, outcome=outcome).submitted is said


def test_tests_times_and_firings() -> None:
    tests = (TestResult("a", passed=True), TestResult("b", passed=False), TestResult("c"))
    found = counted(
        HarnessAction(name="x", mechanism="guard"),
        HarnessAction(name="x", mechanism="guard"),
        HarnessAction(name="x", mechanism="guard", step=3),
        HarnessAction(name="not a mechanism"),
        Verification(passed=False, tests=tests, latency=2.5),
    )
    assert found.firings == {"guard": (0, 3)}
    assert (found.tests_passed, found.tests, found.verify, found.steps) == (1, 3, 2.5, 0)


def test_hostile_values_are_kept_bounded_and_come_back_from_the_store() -> None:
    events = [
        ToolCall(name=f"tool \udc80\x00 {number}" + "x" * 500, latency=float("nan")) for number in range(NAMES + 50)
    ]
    found = counted(*events, asked(usage=Usage(10**30, -5)), asked(usage=Usage(3, 4), step=1))
    assert len(found.tools) == NAMES + 1
    assert found.tools[OTHERS].calls == 50
    assert max(map(len, found.tools)) == LONGEST_NAME
    assert (found.tool, found.input, found.output) == (None, None, 4)
    assert TraceStatistics.from_json(thawed(frozen(found.to_json()))) == found


@pytest.mark.skipif(not TREE.exists(), reason="the real traces are not beside this checkout")
def test_a_real_tree_gives_the_numbers_that_its_source_states() -> None:
    compared = live = 0
    for unit in (unit for given in discover([TREE]) for unit in expand(given)):
        for recording in recognise(unit).importer.read(unit, Report()):
            stated = mapping(mapping(recording.facts.get("rollout")).get("metrics"))
            if not stated:
                continue
            found = trace_statistics(recording.trace, recording.outcome)
            compared += 1
            live += found.calls
            assert found.first_attempts == stated["first_attempt_total"]
            assert found.first_valid == stated["first_attempt_valid"]
            assert found.actions == stated["steps_used"]
            assert found.calls == stated.get("live_llm_calls", 0)
            assert found.model == pytest.approx(stated.get("sum_live_llm_latency_sec", 0.0), abs=1e-4)
    assert compared == 198
    assert live > 200
