"""What counts at each level, and where two traces first differ."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesslab.core.canonical import canonical_bytes
from harnesslab.core.contracts.comparators import ContentReader, Path, first_difference, path
from harnesslab.core.contracts.contract import LADDER, Contract, Level, Scope
from harnesslab.core.errors import NotComparable
from harnesslab.core.trace.events import (
    AnyEvent,
    HarnessAction,
    ModelCall,
    SubagentCall,
    TestResult,
    ToolCall,
    UserTurn,
    Verification,
)
from harnesslab.core.trace.trace import Trace, rebuild
from tests.core.traces import bash, episode, model, request, traces

COMPARABLE = [Level.TEXT, Level.JSON, Level.BEHAVIOUR]
ONE, TWO = "550e8400-e29b-41d4-a716-446655440000", "6ba7b810-9dad-11d1-80b4-00c04fd430c8"


def same(a: Trace, b: Trace, level: Level, *rules: str, scope: Scope = Scope.ALL) -> bool:
    contract = Contract(level, rules, scope)
    return first_difference(path(a, contract), path(b, contract)) is None


def levels(a: Trace, b: Trace) -> dict[str, bool]:
    """Say at which levels two traces are the same."""
    return {level.value: same(a, b, level) for level in COMPARABLE}


@given(traces(), traces(), st.sampled_from(COMPARABLE), st.sampled_from(Scope))
def test_the_first_difference_is_the_one_a_scan_finds(a: Trace, b: Trace, level: Level, scope: Scope) -> None:
    contract = Contract(level, (), scope)
    one, two = path(a, contract), path(b, contract)
    found = first_difference(one, two)
    assert found == first_difference(two, one)
    left, right = contents(a, contract), contents(b, contract)
    shorter = min(len(left), len(right))
    scan = next((index for index in range(shorter) if left[index] != right[index]), None)
    assert found == (scan if scan is not None else None if len(left) == len(right) else shorter)
    assert (one.head == two.head) == (found is None)


def contents(trace: Trace, contract: Contract) -> list[bytes]:
    """Return what of each event counts, with the messages and tools of model calls, as bytes."""
    reader = ContentReader(contract, trace.payloads)
    found: list[bytes] = []
    lists: dict[str, list[bytes]] = {}
    for event in trace.events:
        content = reader.content(event)
        if content is None:
            continue
        given_: list[bytes] = []
        if isinstance(event, ModelCall) and contract.level is not Level.BEHAVIOUR:
            sent = lists.setdefault(event.agent, [])
            del sent[event.input.keep :]
            sent += [reader.payload_digest(position) for position in event.input.add]
            given_ = [*sent, b"|", b"" if event.tools is None else reader.payload_digest(event.tools)]
        found.append(canonical_bytes(content) + b"".join(given_))
    return found


@given(traces(), st.sampled_from(COMPARABLE))
def test_a_trace_equals_itself_also_after_it_was_stored(trace: Trace, level: Level) -> None:
    again = rebuild(trace.events, [reversed_keys(item) for item in trace.payloads])
    assert same(trace, again, level)


def reversed_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: reversed_keys(value[name]) for name in reversed(value)}
    return [reversed_keys(item) for item in value] if isinstance(value, list) else value


@given(traces(), st.sampled_from(COMPARABLE))
def test_equal_own_digests_mean_equal_content(trace: Trace, level: Level) -> None:
    contract = Contract(level)
    found, reader = path(trace, contract), ContentReader(contract, trace.payloads)
    all_contents = [reader.content(event) for event in trace.events]
    by_digest: dict[bytes, bytes] = {}
    for position, index in enumerate(found.indices):
        body = canonical_bytes(all_contents[index])
        assert by_digest.setdefault(found.own_at(position), body) == body


def test_one_trace_ending_early_is_a_difference() -> None:
    contract = Contract()
    whole = path(episode([model("a")], [model("b")]), contract)
    short = Path(contract, whole.indices[:1], whole.own[:16], whole.path[:16])
    assert first_difference(whole, short) == 1
    assert first_difference(short, short) is None
    assert first_difference(Path(contract, [], b"", b""), whole) == 0


def test_spacing_in_arguments_differs_as_text_and_not_as_json() -> None:
    a = episode([model(None, request("ls", {"a": 1, "b": 2}, '{"a":1,"b":2}'))])
    b = episode([model(None, request("ls", {"a": 1, "b": 2}, '{ "b": 2, "a": 1 }'))])
    assert levels(a, b) == {"text": False, "json": True, "behaviour": True}


def test_spacing_in_json_inside_a_result_differs_as_text_and_not_as_json() -> None:
    a, b = episode([bash("ls", '{"a":1,"b":[1]}')]), episode([bash("ls", '{"b": [1], "a": 1}')])
    assert levels(a, b) == {"text": False, "json": True, "behaviour": True}


def test_the_order_of_keys_differs_at_no_level() -> None:
    a, b = episode([bash("ls", {"a": ONE, "b": TWO})]), episode([bash("ls", {"b": TWO, "a": ONE})])
    assert levels(a, b) == {"text": True, "json": True, "behaviour": True}


def test_other_words_with_the_same_actions_are_the_same_behaviour() -> None:
    a = episode([model("Let me look.", request("bash", {"command": "ls"})), bash("ls", "a.py")], [model("Done.")])
    b = episode([model("I'll look.", request("bash", {"command": "ls"})), bash("ls", "b.py")], [model("Finished.")])
    assert levels(a, b) == {"text": False, "json": False, "behaviour": True}


def test_another_action_is_other_behaviour() -> None:
    a, b = (episode([model(None, request("bash", {"command": command}))]) for command in ("ls", "pwd"))
    assert levels(a, b) == {"text": False, "json": False, "behaviour": False}


def test_another_outcome_or_verdict_is_other_behaviour() -> None:
    assert not same(episode(outcome="solved"), episode(outcome="timeout"), Level.BEHAVIOUR)
    a, b = episode([Verification(passed=True)]), episode([Verification(passed=False)])
    assert not same(a, b, Level.BEHAVIOUR)


def test_tool_call_ids_never_count() -> None:
    a, b = (
        episode([model(None, request("bash", {"command": "ls"}, call=call)), bash("ls", id=call)], [model("done")])
        for call in ("call_a", "x9")
    )
    assert levels(a, b) == {"text": True, "json": True, "behaviour": True}


def test_another_destination_in_the_arguments_is_not_hidden_as_an_id() -> None:
    a, b = (episode([model(None, request("pay", {"id": "acct-1", "to": to}))]) for to in ("acct-2", "acct-3"))
    assert levels(a, b) == {"text": False, "json": False, "behaviour": False}
    one, two = (episode([bash("list", f"{ONE} {TWO}")], [bash(f"pay {to}")]) for to in (ONE, TWO))
    assert levels(one, two) == {"text": False, "json": False, "behaviour": False}
    assert not same(one, two, Level.JSON, scope=Scope.TOOL_CALLS)


def test_ids_relabelled_throughout_do_not_count() -> None:
    a, b = (episode([bash(f"show {x}", f"{x} {y}")], [bash(f"drop {y}")]) for x, y in ((ONE, TWO), (TWO, ONE)))
    assert levels(a, b) == {"text": True, "json": True, "behaviour": True}


def test_a_trace_without_tokens_is_not_comparable_by_tokens() -> None:
    bare, full = model("a"), model("a", token_ids=(1, 2), logprobs=(-0.5, -0.1))
    for level in (Level.TOKEN_IDS, Level.LOGPROBS):
        assert len(path(episode([full]), Contract(level)))
        assert len(path(episode([full, model(None, error="overloaded")]), Contract(level)))
        for without in (episode([bare]), episode([full, bare]), episode([])):
            with pytest.raises(NotComparable, match=f"does not record {level.value}"):
                path(without, Contract(level))
    assert all(len(path(episode([bare]), Contract(level))) for level in COMPARABLE)


def test_log_probabilities_differ_where_token_ids_are_equal() -> None:
    a, b = (episode([model("a", token_ids=(1,), logprobs=(odds,))]) for odds in (-0.5, -0.25))
    assert same(a, b, Level.TOKEN_IDS)
    assert not same(a, b, Level.LOGPROBS)


def test_a_refusal_is_never_scrubbed() -> None:
    a, b = (episode([model(None, refusal=f"I can't do this before {time}.")]) for time in ("10:00:00", "11:00:00"))
    assert not same(a, b, Level.TEXT, "clock-times@1")
    c, d = (episode([model(f"See you at {time}.")]) for time in ("10:00:00", "11:00:00"))
    assert same(c, d, Level.TEXT, "clock-times@1")


def test_a_refusal_is_other_behaviour_than_an_answer() -> None:
    assert not same(episode([model(None, refusal="No.")]), episode([model("Yes.")]), Level.BEHAVIOUR)


def test_rejected_and_failed_attempts_are_no_behaviour() -> None:
    a = episode(
        [model("oops", rejected="no action"), model(None, error="overloaded", attempt=1), model("done", attempt=2)]
    )
    b = episode([model("done")])
    assert levels(a, b) == {"text": False, "json": False, "behaviour": True}


def test_what_was_removed_is_noted_on_the_path() -> None:
    found = path(episode([bash("run", "3 passed in 0.12s")]), Contract(Level.TEXT, ("durations@1", "pids@1")))
    assert found.removed.counts == {"durations@1": 1}
    assert found.removed.examples == {"durations@1": ["0.12"]}


def test_tool_calls_alone_leave_results_and_words_out() -> None:
    a = episode([UserTurn(content="a"), model("x"), bash("ls", "1")])
    b = episode([model("y"), bash("ls", "2")], outcome="timeout")
    assert same(a, b, Level.JSON, scope=Scope.TOOL_CALLS)
    assert not same(a, episode([bash("pwd")]), Level.JSON, scope=Scope.TOOL_CALLS)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (bash("ls", exit_code=0), bash("ls", exit_code=1)),
        (bash("ls", timed_out=True), bash("ls")),
        (bash("ls", seen="clipped"), bash("ls")),
        (ToolCall(name="ls", has_result=False), ToolCall(name="ls")),
        (SubagentCall(name="a", error="lost"), SubagentCall(name="a")),
        (Verification(tests=(TestResult("t", passed=True),)), Verification(tests=(TestResult("t", passed=False),))),
        (Verification(error="crashed"), Verification()),
        (HarnessAction(name="clip"), HarnessAction(name="trim")),
    ],
)
def test_anything_recorded_counts_as_text(one: AnyEvent, two: AnyEvent) -> None:
    assert not same(episode([one]), episode([two]), Level.TEXT)


def test_other_tool_schemas_are_another_input() -> None:
    a, b = (episode([model("a")], tools=[{"name": name}]) for name in ("ls", "cat"))
    assert levels(a, b) == {"text": False, "json": False, "behaviour": True}


def test_deeply_nested_json_inside_text_is_compared_as_text() -> None:
    deep = "[" * 250 + "]" * 250
    assert levels(episode([bash("a", deep)]), episode([bash("a", deep)])) == {
        "text": True,
        "json": True,
        "behaviour": True,
    }
    assert not same(episode([bash("a", deep)]), episode([bash("a", deep[:-1])]), Level.JSON)


def test_every_level_is_looser_than_the_one_above_it() -> None:
    full = model("a", token_ids=(1, 2), logprobs=(-0.5, -0.1))
    a, b = episode([full]), episode([replace_logprobs(full)])
    assert [same(a, b, level) for level in LADDER] == [False, True, True, True, True]


def replace_logprobs(call: ModelCall) -> ModelCall:
    return msgspec.structs.replace(call, logprobs=(-0.5, -0.2))


def test_a_path_is_equal_whatever_it_removed() -> None:
    found = path(episode([model("a")]), Contract())
    assert replace(found) == found
