"""The counter adds as it goes: it can be asked at any event, and comes to what the whole trace adds up to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from harnesslab.core.canonical import JSON
from harnesslab.core.measuring.trace_statistics import VERSION, Tally, TraceStatistics, trace_statistics
from harnesslab.core.running.rollout import Outcome
from harnesslab.core.trace.events import AnyEvent, ModelCall, ToolCall, Usage
from harnesslab.core.trace.trace import Trace
from harnesslab.formats.mlflow.spans import USAGE, spans, walk
from tests.traces import EVENTS

OUTCOMES = st.sampled_from([Outcome.SOLVED, Outcome.STEP_CAP, Outcome.UNKNOWN])
SERVED: dict[str, JSON] = {"served": "from the record"}


@given(EVENTS, st.sets(st.integers(0, 24)), OUTCOMES)
def test_asking_on_the_way_changes_nothing(events: list[AnyEvent], stops: set[int], outcome: Outcome) -> None:
    tally = Tally()
    for place, event in enumerate(events):
        tally.add(event)
        if place in stops:
            assert tally.numbers().input == Tally.of(events[: place + 1]).whole(outcome).input
            assert tally.whole(outcome) == Tally.of(events[: place + 1]).whole(outcome)
    assert tally.whole(outcome) == trace_statistics(Trace(events, (), ()), outcome)


@given(EVENTS)
def test_spans_on_mlflow_add_up_to_the_same_tokens(events: list[AnyEvent]) -> None:
    counted = trace_statistics(Trace(events, (), ()), Outcome.UNKNOWN)
    finite = [structs.replace(event, at=None, latency=None) for event in events]
    usages = [span.attributes.get(USAGE) for span in walk(spans(Trace(finite, (), ())))]
    names = {"input": "input_tokens", "output": "output_tokens", "cached": "cache_read_input_tokens"}
    for name, theirs in names.items():
        stated = [usage[theirs] for usage in usages if isinstance(usage, dict) and theirs in usage]
        total = sum(stated)
        ours = getattr(counted, name)
        if stated:
            assert ours == (total if total <= 2**53 - 1 else None)
        else:
            assert not ours


def test_where_every_answer_was_served_nothing_was_spent_and_where_none_states_tokens_it_is_unknown() -> None:
    every = Tally.of([ModelCall(extra=SERVED, usage=Usage(100, 10))]).numbers()
    assert (every.input, every.output, every.cached, every.model, every.waited) == (0, 0, 0, 0.0, 0.0)
    none = Tally.of([ModelCall(), ToolCall(name="run")]).whole(Outcome.UNKNOWN)
    assert (none.calls, none.unstated, none.input, none.output, none.model, none.tool, none.elapsed) == (
        1,
        1,
        *[None] * 5,
    )
    assert Tally().numbers() == TraceStatistics(version=VERSION)
    failed = Tally.of([ModelCall(extra=SERVED, usage=Usage(1, 1)), ModelCall(error="reset", step=1)]).numbers()
    assert (failed.input, failed.output) == (None, None)


def test_a_failed_request_costs_what_its_engine_says_and_is_no_call() -> None:
    found = Tally.of([ModelCall(error="cut off", usage=Usage(7, 3)), ModelCall(attempt=1, usage=Usage(7, 4))]).numbers()
    assert (found.calls, found.input, found.output, found.unstated) == (1, 14, 7, 0)


def test_reasoning_is_part_of_output_and_cached_of_input() -> None:
    found = Tally.of([ModelCall(usage=Usage(10, 8, 6, 2, 5)), ModelCall(step=1, usage=Usage(1, 1, 1))]).numbers()
    assert (found.input, found.cached, found.output, found.reasoning) == (11, 7, 9, 5)


def test_time_by_events_is_from_the_first_that_states_it_to_the_last() -> None:
    events = [ModelCall(at=at) for at in (None, 5.0, float("nan"), 2.0, None)]
    assert Tally.of(events).numbers().elapsed == 3.0
    assert Tally.of(events[:2]).numbers().elapsed is None
    assert Tally.of([ModelCall(at=-1e308), ModelCall(at=1.7e308)]).numbers().elapsed is None


@pytest.mark.parametrize("document", [{}, {"steps": 3, "calls": 2, "model": 1.5, "tool": 0.0}])
def test_a_document_that_states_no_version_is_of_the_first(document: JSON) -> None:
    old = TraceStatistics.from_json(document)
    assert (old.version, old.tool) == (1, None)
    new = Tally().whole(Outcome.UNKNOWN)
    assert TraceStatistics.from_json(new.to_json()) == new
    assert new.to_json() == {"version": VERSION}
