"""A record serves the n-th answer to the n-th occurrence of a request, and never guesses."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given

from harnesslab.core.canonical import JSON
from harnesslab.core.contracts import scrub
from harnesslab.core.running.record import ASKED, Miss, Record, RequestKeys, flows_on, settings_of
from harnesslab.core.trace.events import ClockRead, ModelCall, ToolCall, UserTurn
from harnesslab.core.trace.trace import Trace, TraceBuilder
from tests.core.traces import traces


def said(role: str, text: str) -> JSON:
    return {"role": role, "content": text}


def ask(builder: TraceBuilder, keys: RequestKeys, messages: Sequence[JSON], **settings: JSON) -> bytes:
    window, schemas = builder.ask(messages)
    key = keys.key("", window, schemas, settings)
    builder.answer(ModelCall(input=window))
    return key


def recorded(*answers: str, question: str = "q") -> Trace:
    builder = TraceBuilder()
    for step, answer in enumerate(answers):
        builder.model_call([said("user", question)], text=answer, step=step)
    return builder.close("solved")


def served(record: Record, messages: Sequence[JSON], times: int = 1, rules: Sequence[str] = ()) -> list[str | None]:
    builder = TraceBuilder()
    keys = RequestKeys(builder.payloads, rules)
    found = [record.model(ask(builder, keys, messages)) for _ in range(times)]
    return [attempts[-1].text if attempts else None for attempts in found]


def test_the_same_request_gets_its_answers_in_order_and_then_none() -> None:
    assert served(Record(recorded("one", "two")), [said("user", "q")], 3) == ["one", "two", None]


def test_another_request_is_a_miss() -> None:
    assert served(Record(recorded("one")), [said("user", "other")]) == [None]


@given(traces())
def test_any_trace_serves_its_own_requests(trace: Trace) -> None:
    record, keys = Record(trace), RequestKeys(trace.payloads)
    for event in trace.events:
        if isinstance(event, ModelCall):
            key = keys.key(event.agent, event.input, event.tools, settings_of(event))
            if event.error is None:
                attempts = record.model(key)
                assert attempts is not None
                assert attempts[-1].text == event.text


def test_seeds_and_the_workers_own_settings_are_no_part_of_a_request() -> None:
    builder = TraceBuilder()
    builder.model_call(
        [said("user", "q")],
        text="a",
        settings={"seed": "7", "temperature": 0.2, "top_k": 3},
        extra={ASKED: {"top_k": 3}},
    )
    record = Record(builder.close("solved"))
    mine = TraceBuilder()
    keys = RequestKeys(mine.payloads)
    assert record.model(ask(mine, keys, [said("user", "q")], top_k=3, seed=9)) is not None


def test_a_setting_that_the_harness_changed_is_a_miss() -> None:
    builder = TraceBuilder()
    builder.model_call([said("user", "q")], text="a", extra={ASKED: {"temperature": 0}})
    mine = TraceBuilder()
    missed = Record(builder.close("solved")).model(
        ask(mine, RequestKeys(mine.payloads), [said("user", "q")], temperature=1)
    )
    assert missed is None


def test_a_call_that_failed_before_it_was_answered_is_served_with_its_failure() -> None:
    builder = TraceBuilder()
    builder.model_call([said("user", "q")], error="overloaded")
    builder.model_call([said("user", "q")], text="a", attempt=1)
    mine = TraceBuilder()
    attempts = Record(builder.close("solved")).model(ask(mine, RequestKeys(mine.payloads), [said("user", "q")]))
    assert attempts is not None
    assert [event.error for event in attempts] == ["overloaded", None]


def test_a_failure_that_the_harness_was_told_of_is_an_answer_of_its_own() -> None:
    builder = TraceBuilder()
    builder.model_call([said("user", "q")], error="the context is exceeded")
    builder.model_call([said("user", "q")], text="a", step=1)
    builder.model_call([said("user", "longer")], error="the context is exceeded", step=2)
    record, mine = Record(builder.close("solved")), TraceBuilder()
    keys = RequestKeys(mine.payloads)
    first, second = (record.model(ask(mine, keys, [said("user", "q")])) for _ in range(2))
    last = record.model(ask(mine, keys, [said("user", "longer")]))
    assert [[event.error is None for event in found or ()] for found in (first, second, last)] == [
        [False],
        [True],
        [False],
    ]


def test_generated_ids_in_messages_are_renamed() -> None:
    def messages(call: str) -> list[JSON]:
        calls: JSON = [{"id": call, "type": "function", "function": {"name": "run", "arguments": "{}"}}]
        answer: JSON = {"role": "tool", "tool_call_id": call, "content": "x"}
        return [said("user", "q"), {"role": "assistant", "content": "", "tool_calls": calls}, answer]

    builder = TraceBuilder()
    builder.model_call(messages("call_aaaaaaaaaaaaaaa"), text="a")
    assert served(Record(builder.close("solved")), messages("call_bbbbbbbbbbbbbbb")) == ["a"]


def test_live_tools_match_after_the_named_rules_only() -> None:
    trace = recorded("one", question="it took 1.25 s")
    now = [said("user", "it took 9.75 s")]
    rules = tuple(scrub.BY_KEY)
    assert served(Record(trace), now) == [None]
    assert served(Record(trace, rules), now, rules=rules) == ["one"]


def test_answers_can_be_served_in_order_whatever_was_asked() -> None:
    record = Record(recorded("one", "two"))
    found = [record.model_in_order() for _ in range(3)]
    assert [attempts[-1].text if attempts else None for attempts in found] == ["one", "two", None]


def test_tools_are_served_by_name_and_arguments_in_order() -> None:
    builder = TraceBuilder()
    for result in ("first", "second"):
        builder.add(ToolCall(name="run", arguments={"command": "date"}, result=result))
    record = Record(builder.close("solved"))
    results = [record.tool("run", {"command": "date"}) for _ in range(3)]
    assert [call.result if call else None for call in results] == ["first", "second", None]
    assert record.tool("run", {"command": "ls"}) is None


def test_a_call_without_a_recorded_result_serves_nothing() -> None:
    builder = TraceBuilder()
    builder.add(ToolCall(name="run", arguments={}, has_result=False))
    assert Record(builder.close("solved")).tool("run", {}) is None


def test_the_simulated_user_and_the_clock_are_served_in_order_and_the_instruction_is_not() -> None:
    builder = TraceBuilder()
    builder.add(UserTurn(content="the task", simulated=False))
    builder.add(UserTurn(content="yes", simulated=True))
    builder.add(ClockRead(value="noon"))
    record = Record(builder.close("solved"))
    turn, read = record.user(), record.clock()
    assert turn is not None
    assert read is not None
    assert (turn.content, read.value) == ("yes", "noon")
    assert (record.user(), record.clock()) == (None, None)


def test_a_miss_names_the_nearest_request_and_where_it_parts() -> None:
    builder = TraceBuilder()
    builder.model_call([said("system", "s"), said("user", "far away")], text="a")
    builder.model_call([said("system", "s"), said("user", "q"), said("user", "recorded")], text="b", step=1)
    record = Record(builder.close("solved"))
    missed = record.missed_model([said("system", "s"), said("user", "q"), said("user", "asked")], 1)
    assert (missed.nearest, missed.recorded, missed.now) == (1, "recorded", "asked")
    assert "message 2" in missed.why


def test_a_miss_says_which_side_has_more_messages_or_that_settings_differ() -> None:
    record = Record(recorded("one"))
    more = record.missed_model([said("user", "q"), said("user", "more")], 0)
    assert "1 more messages" in more.why
    assert "lacks the last 1" in record.missed_model([], 0).why
    assert "tools or settings" in record.missed_model([said("user", "q")], 0).why


def test_a_miss_after_all_was_served_says_so() -> None:
    record = Record(recorded("one"))
    served(record, [said("user", "q")])
    assert "every recorded answer was served" in record.missed_model([said("user", "q")], 4).why


def test_a_missed_tool_call_shows_both_arguments() -> None:
    builder = TraceBuilder()
    builder.add(ToolCall(name="run", arguments={"command": "ls"}, result="x"))
    record = Record(builder.close("solved"))
    missed = record.missed_tool("run", {"command": "rm"}, 0)
    assert missed == Miss("tool:run", missed.why, 0, '{"command":"ls"}', '{"command":"rm"}')
    assert "no further call" in record.missed_tool("fetch", {}, 2).why


def test_what_flows_on_is_a_result_that_a_later_request_holds() -> None:
    builder = TraceBuilder()
    builder.model_call([said("user", "q")], text="look")
    builder.add(ToolCall(name="run", arguments={}, result="unseen"))
    builder.add(ToolCall(name="run", arguments={}, result="the answer"))
    builder.model_call([said("user", "q"), said("tool", "exit 0\nthe answer")], text="done", step=1)
    assert flows_on(builder.close("solved")) == 2
    assert flows_on(recorded("one")) is None
