"""Where two traces part, and why: one statement for each cause and boundary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from harnesslab.core.canonical import JSON
from harnesslab.core.comparing.comparison import compare_traces
from harnesslab.core.comparing.diagnosis import Divergence
from harnesslab.core.comparing.evidence import Cause
from harnesslab.core.contracts.contract import RAW, Contract, Level, Scope
from harnesslab.core.trace.events import (
    AnyEvent,
    ClockRead,
    Fidelity,
    HarnessAction,
    MemoryAccess,
    NetworkExchange,
    Retrieval,
    SubagentCall,
    ToolCall,
    UserTurn,
    Verification,
)
from harnesslab.core.trace.trace import Trace
from tests.core.traces import bash, episode, model, reader, request

Conditions = Mapping[str, JSON]
ASKED = UserTurn(content="fix it")
UNDECLARED = (
    "nothing else declared: numerics, batch or something undeclared (engine, hardware and load aren't recorded)"
)
BEHAVIOUR = Contract(Level.BEHAVIOUR)
TOOL_CALLS = Contract(Level.JSON, (), Scope.TOOL_CALLS)


def parted(
    a: Trace, b: Trace, contract: Contract = RAW, conditions: tuple[Conditions, Conditions] = ({}, {})
) -> Divergence:
    found = compare_traces(reader(a, conditions[0]), reader(b, conditions[1]), contract).contractual
    assert found is not None
    return found


def answers(one: Any, two: Any, conditions: tuple[Conditions, Conditions] = ({}, {}), **fields: Any) -> Divergence:
    """Compare two answers to the same input; a mapping gives fields of the call, a text its text."""
    calls = [
        model(**{"text": "same", **fields, **answer}) if isinstance(answer, dict) else model(answer, **fields)
        for answer in (one, two)
    ]
    return parted(episode([ASKED, calls[0]]), episode([ASKED, calls[1]]), RAW, conditions)


def events(one: AnyEvent, two: AnyEvent, conditions: tuple[Conditions, Conditions] = ({}, {})) -> Divergence:
    """Compare two traces that differ in one event."""
    return parted(episode([ASKED], [one]), episode([ASKED], [two]), RAW, conditions)


def said(found: Divergence) -> tuple[str, Cause, str]:
    return found.boundary, found.cause, found.why


def test_the_user_said_something_different() -> None:
    found = parted(episode([UserTurn(content="one")]), episode([UserTurn(content="two", simulated=True)]))
    assert said(found) == ("user", Cause.USER, "the simulated user said something different")
    assert found.excerpt == ("one", "two")
    assert (found.a, found.b, found.step) == (1, 1, 0)


def test_the_user_spoke_in_one_alone() -> None:
    found = parted(episode([UserTurn(content="one"), model("a")]), episode([model("a")]))
    assert said(found) == ("user", Cause.USER, "the user spoke in A and not in B")


@pytest.mark.parametrize(
    ("name", "values", "title"),
    [
        ("sampling.temperature", (0, 1), "temperature"),
        ("engine.kernels", ("a", "b"), "kernels"),
        ("hardware.accelerators", ("a", "b"), "accelerators"),
        ("model.revision", ("a", "b"), "weights revision"),
    ],
)
def test_another_answer_under_declared_conditions_is_declared(name: str, values: tuple[Any, Any], title: str) -> None:
    found = answers("one", "two", ({name: values[0]}, {name: values[1]}), settings={"temperature": 0, "seed": 1})
    why = f"the same input was answered differently; the manifests declare a difference: {title}"
    assert said(found) == ("model", Cause.DECLARED, why)
    assert [row.label for row in found.evidence] == ["text", name]


def test_another_seed_in_the_request_is_declared() -> None:
    found = answers({"text": "one", "settings": {"seed": 1}}, {"text": "two", "settings": {"seed": 2}})
    assert said(found) == (
        "model",
        Cause.DECLARED,
        "the same input was answered differently; the requests differ in seed",
    )


@pytest.mark.parametrize(
    ("settings", "cause", "why"),
    [
        ({"temperature": 0.7}, Cause.SAMPLING, "temperature 0.7, no seed recorded"),
        ({}, Cause.SAMPLING, "neither temperature nor seed recorded"),
        (
            {"temperature": 0.7, "seed": 5},
            Cause.NUMERICS,
            "temperature 0.7, seed 5, nothing else declared: undeclared numerics or a seed that was not honoured",
        ),
        (
            {"temperature": 0},
            Cause.NUMERICS,
            f"temperature 0, no seed recorded; {UNDECLARED}",
        ),
    ],
)
def test_another_answer_with_nothing_declared(settings: dict[str, Any], cause: Cause, why: str) -> None:
    found = answers("one", "two", settings=settings)
    assert said(found) == ("model", cause, f"the same input was answered differently; {why}")


def test_observed_load_and_caches_are_batch() -> None:
    found = answers("one", "two", ({"serving.load": 1}, {"serving.load": 9}), settings={"seed": 1})
    assert found.cause is Cause.BATCH
    assert found.why.endswith("the manifests declare a difference: observed load")
    cached = answers({"text": "one", "served_from_cache": True}, {"text": "two", "served_from_cache": False})
    assert cached.cause is Cause.BATCH
    assert cached.why.endswith("one answer came from a cache")


def test_a_rebuilt_input_leaves_open_who_it_was() -> None:
    found = answers("one", "two", fidelity=Fidelity.REBUILT)
    why = "the same input was answered differently, as far as recorded; the input is an importer's reconstruction"
    assert said(found) == ("model", Cause.MODEL_OR_HARNESS, why)
    a, b = (episode([model("x", fidelity=Fidelity.REBUILT)], system=text) for text in ("A.", "B."))
    why = "the harness sent other instructions; the input is an importer's reconstruction"
    assert said(parted(a, b)) == ("harness", Cause.MODEL_OR_HARNESS, why)


def test_equal_messages_with_other_prompt_tokens_are_the_template() -> None:
    found = answers({"text": "one", "prompt_token_ids": (1, 2)}, {"text": "two", "prompt_token_ids": (1, 3)})
    why = "equal messages became other prompt tokens: the chat template or tokenizer differs"
    assert said(found) == ("model", Cause.TEMPLATE, why)


def test_the_first_differing_token_is_named_with_its_odds() -> None:
    found = answers(
        {"text": "a b", "token_ids": (1, 2), "logprobs": (-0.1, -0.7), "alternatives": ({}, {"b": -0.7})},
        {"text": "a c", "token_ids": (1, 3), "logprobs": (-0.1, -0.7), "alternatives": ({}, {"c": -0.7})},
    )
    assert found.token_index == 1
    assert [(row.label, row.a, row.b) for row in found.evidence] == [
        ("text", "a b", "a c"),
        ("first differing token", "2", "3"),
        ("log-probability", "-0.7", "-0.7"),
        ("alternatives", '{"b":-0.7}', '{"c":-0.7}'),
    ]
    assert answers({"text": "a", "token_ids": (1,)}, {"text": "ab", "token_ids": (1, 2)}).token_index == 1


@pytest.mark.parametrize(
    ("one", "two", "label"),
    [
        ({"refusal": "No."}, {}, "refusal"),
        ({"reasoning": "hm"}, {"reasoning": "ha"}, "reasoning"),
        ({"tool_calls": (request("ls", {}),)}, {"tool_calls": (request("ls", {"a": 1}),)}, "tool calls"),
        ({"tool_calls": (request("ls", {}),)}, {}, "tool calls"),
        ({"finish_reason": "stop"}, {"finish_reason": "length"}, "finish reason"),
        ({"rejected": "no"}, {}, "rejected"),
    ],
)
def test_the_part_of_an_answer_that_differs_is_shown(one: Any, two: Any, label: str) -> None:
    assert answers(one, two).evidence[0].label == label


def test_a_failed_or_retried_request_is_infrastructure() -> None:
    failed = "the request failed in A (“overloaded”) and not in the other; a retry is no other answer"
    later = "the answer came at attempt 2 in A, and earlier in the other"
    for one, why in (({"error": "overloaded"}, failed), ({"attempt": 1}, later)):
        found = answers(one, {})
        assert said(found) == ("model", Cause.INFRA, why)
        assert found.excerpt is None


def test_another_result_of_the_same_call_is_the_environment() -> None:
    found = events(bash("ls", "a.py"), bash("ls", "b.py"))
    assert said(found) == ("tool:bash", Cause.ENVIRONMENT, "the same call returned something else")
    assert found.excerpt == ("a.py", "b.py")


def test_a_result_that_differs_by_volatile_text_alone_says_so_and_whether_it_was_read() -> None:
    why = "the same call returned something else; only volatile text differs (rule durations@1 removes it), and "
    found = events(bash("t", "3 passed in 0.12s"), bash("t", "3 passed in 0.31s"))
    assert found.why == why + "the model read it as it was"
    found = events(bash("t", "3 passed in 0.12s", seen="3 passed"), bash("t", "3 passed in 0.31s", seen="3 passed"))
    assert found.why == why + "the model did not see it"


def test_another_exit_code_is_never_called_volatile() -> None:
    found = events(bash("t", "in 0.12s", exit_code=0), bash("t", "in 0.31s", exit_code=1))
    assert found.why == "the same call returned something else"
    assert [row.label for row in found.evidence] == ["result", "exit code"]
    found = events(bash("t", "same", exit_code=0), bash("t", "same", exit_code=1))
    assert found.why == "the same call returned something else"


def test_another_image_is_a_declared_difference_of_the_environment() -> None:
    found = events(bash("ls", "a"), bash("ls", "b"), ({"environment.image": "x"}, {"environment.image": "y"}))
    why = "the same call returned something else; the manifests declare a difference: image"
    assert said(found) == ("tool:bash", Cause.DECLARED, why)


def test_time_outs_and_retries_of_a_tool_are_timing() -> None:
    found = events(bash("make", "", timed_out=True), bash("make", "ok"))
    assert said(found) == ("tool:bash", Cause.TIMING, "the same command timed out in A")
    found = events(bash("make", "a", retries=1), bash("make", "b"))
    assert said(found) == (
        "tool:bash",
        Cause.TIMING,
        "the same command was retried a different number of times (1 against 0)",
    )


def test_a_result_recorded_in_one_alone_is_unknown() -> None:
    found = events(ToolCall(name="ls", has_result=False), ToolCall(name="ls", result="a"))
    assert found.cause is Cause.UNKNOWN


def test_the_same_result_shown_in_another_form_is_the_harness() -> None:
    found = events(bash("ls", "a b c", seen="a b"), bash("ls", "a b c", seen="a"))
    assert said(found) == (
        "tool:bash",
        Cause.HARNESS,
        "the harness showed the model the same result in another form",
    )


def test_parallel_calls_handled_in_another_order_are_timing() -> None:
    asked = model(None, request("bash", {"command": "x"}), request("bash", {"command": "y"}))
    x, y = bash("x", emitted=0, completed=0), bash("y", emitted=1, completed=1)
    x2, y2 = bash("x", emitted=0, completed=1), bash("y", emitted=1, completed=0)
    found = parted(episode([asked, x, y]), episode([asked, y2, x2]))
    assert said(found) == ("tool:bash", Cause.TIMING, "parallel calls were handled in another order")


def test_a_call_that_was_left_out_is_no_matter_of_timing() -> None:
    asked = model(None, request("bash", {"command": "x"}), request("bash", {"command": "y"}))
    found = parted(episode([asked, bash("x", emitted=0), bash("y", emitted=1)]), episode([asked, bash("y", emitted=1)]))
    assert found.cause is Cause.HARNESS
    assert found.why == "the model asked for the same, and another call was made"


def message(text: str) -> HarnessAction:
    """Make a message that the harness puts into the transcript."""
    return HarnessAction(name="message", detail=text)


def test_a_message_of_the_harness_in_one_alone() -> None:
    found = parted(episode([ASKED, model("a")]), episode([ASKED, message("hurry"), model("a")]))
    assert said(found) == ("harness", Cause.HARNESS, "the harness did “message” in B and not in the other")
    found = parted(
        episode([ASKED, model("a")]), episode([ASKED, message("hurry"), model("b", request("x", {}))]), BEHAVIOUR
    )
    assert said(found) == ("harness", Cause.HARNESS, "the harness sent one more user message in B")


def test_a_message_of_the_harness_that_changed() -> None:
    found = parted(episode([message("two left")]), episode([message("one left")]))
    assert said(found) == ("harness", Cause.HARNESS, "the harness did “message” differently")
    found = parted(episode([message("at 10:00:00")]), episode([message("at 10:00:01")]))
    assert found.why == "the harness did “message” in both, at another time"
    found = parted(episode([HarnessAction(name="trim")]), episode([HarnessAction(name="clip")]))
    assert found.why == "the harness did “trim” in A and “clip” in B"


def test_a_changed_harness_is_a_declared_difference() -> None:
    conditions: tuple[Conditions, Conditions] = ({"harness.revision": "a"}, {"harness.revision": "b"})
    found = parted(episode([message("two")]), episode([message("one")]), RAW, conditions)
    why = "the harness did “message” differently; a declared harness change: revision"
    assert said(found) == ("harness", Cause.DECLARED, why)


def test_other_instructions_are_the_harness() -> None:
    found = parted(episode([model("a")], system="Be quick."), episode([model("a")], system="Be slow."))
    assert said(found) == ("harness", Cause.HARNESS, "the harness sent other instructions")
    assert found.excerpt == ("quick.", "slow.")


def test_a_clipped_result_is_the_harness() -> None:
    a = episode([bash("ls", "a b c", id="1"), model("x")])
    b = episode([bash("ls", "a b c", id="1", seen="a b"), model("y", request("x", {}))])
    found = parted(a, b, BEHAVIOUR)
    assert said(found) == ("harness", Cause.HARNESS, "the same tool result was given to the model in another form")


def test_other_tools_offered_to_the_model_are_the_harness() -> None:
    a, b = (episode([model("a")], tools=[{"name": name}]) for name in ("ls", "cat"))
    assert said(parted(a, b)) == (
        "harness",
        Cause.HARNESS,
        "the harness offered the model other tools; ls in A alone and cat in B alone",
    )
    c = episode([model("a")])
    assert parted(a, c).cause is Cause.UNKNOWN


@pytest.mark.parametrize(
    ("one", "two", "boundary", "cause", "why"),
    [
        (
            SubagentCall(name="r", input="q", output="a"),
            SubagentCall(name="r", input="q", output="b"),
            "subagent",
            Cause.SUBAGENT,
            "the sub-agent answered differently",
        ),
        (
            Retrieval(query="q", documents=["a"]),
            Retrieval(query="q", documents=["b"]),
            "retrieval",
            Cause.RETRIEVAL,
            "the index returned other documents",
        ),
        (
            Retrieval(query="q", documents=["a"]),
            Retrieval(query="p", documents=["b"]),
            "harness",
            Cause.HARNESS,
            "the index was asked for something else",
        ),
        (
            MemoryAccess(operation="read", key="k", value=1),
            MemoryAccess(operation="read", key="k", value=2),
            "memory",
            Cause.MEMORY,
            "the memory held something else",
        ),
        (
            MemoryAccess(operation="write", key="k", value=1),
            MemoryAccess(operation="write", key="k", value=2),
            "memory",
            Cause.MEMORY,
            "something else was kept in memory",
        ),
        (
            ClockRead(value="10:00:00"),
            ClockRead(value="10:00:01"),
            "clock",
            Cause.CLOCK,
            "the clock read differently; only volatile text differs (rule clock-times@1 removes it)",
        ),
        (
            NetworkExchange(target="t", response="a"),
            NetworkExchange(target="t", response="b"),
            "network",
            Cause.NETWORK,
            "the service answered differently",
        ),
        (
            Verification(passed=True, reward=1.0),
            Verification(passed=False, reward=0.0),
            "harness",
            Cause.EVALUATOR,
            "the evaluator judged the same actions differently",
        ),
        (
            ClockRead(value=1),
            Retrieval(query="q"),
            "harness",
            Cause.HARNESS,
            "A went on with clock and B with retrieval",
        ),
    ],
)
def test_every_other_boundary(one: AnyEvent, two: AnyEvent, boundary: str, cause: Cause, why: str) -> None:
    assert said(events(one, two)) == (boundary, cause, why)


def test_another_outcome_after_the_same_actions() -> None:
    found = parted(episode([model("a")], outcome="solved"), episode([model("a")], outcome="failed_verification"))
    assert said(found) == ("harness", Cause.UNKNOWN, "everything before is equal, yet they ended differently")
    found = parted(episode([model("a")], outcome="solved"), episode([model("a")], outcome="timeout"))
    assert said(found) == ("harness", Cause.INFRA, "B was cut short (timeout)")


def test_one_trace_that_ends_early() -> None:
    more = [model("a")], [model("b")]
    found = parted(episode(*more), episode(*more[:1]))
    assert said(found) == ("harness", Cause.HARNESS, "B ended here while the other went on")
    found = parted(episode(*more), episode(*more[:1], outcome="infra_error"))
    assert said(found) == ("harness", Cause.INFRA, "B was cut short here (infra error)")
    found = parted(episode([bash("ls")], [bash("pwd")]), episode([bash("ls")]), TOOL_CALLS)
    assert said(found) == ("harness", Cause.UNKNOWN, "B makes no further tool call, where the other calls bash")
    assert found.b is None


def calls_of(first: str, second: str, said_: str = "on it", **fields: Any) -> Sequence[AnyEvent]:
    return [ASKED, model(said_, request("bash", {"command": first}), **fields), bash(first, second)]


def test_other_arguments_are_traced_to_the_model_and_its_input() -> None:
    found = parted(episode(calls_of("ls", "a")), episode(calls_of("pwd", "a")), TOOL_CALLS)
    why = "the model called bash with other arguments: the same input was answered differently; "
    assert said(found) == ("model", Cause.SAMPLING, why + "neither temperature nor seed recorded")
    assert found.tool_call_index == 0
    a = episode([bash("cat", "x", id="1"), *calls_of("ls", "a")])
    b = episode([bash("cat", "y", id="1"), *calls_of("pwd", "a")])
    found = parted(a, b, TOOL_CALLS)
    why = "the model called bash with other arguments: the result of bash at step 1, which the model was given, differs"
    assert said(found) == ("model", Cause.ENVIRONMENT, why)
    assert found.tool_call_index == 1


def test_another_tool_is_traced_to_the_model() -> None:
    a = episode([model(None, request("bash", {"command": "ls"})), bash("ls")])
    b = episode([model(None, request("read", {})), ToolCall(name="read", arguments={})])
    assert parted(a, b, TOOL_CALLS).why.startswith("the model called bash in A and read in B: the same input")


def test_a_call_without_its_model_call_is_unknown() -> None:
    found = parted(episode([bash("ls")]), episode([bash("pwd")]), TOOL_CALLS)
    assert said(found) == (
        "tool:bash",
        Cause.UNKNOWN,
        "bash was called with other arguments; the model call that asked is not recorded",
    )


def test_an_earlier_answer_in_other_words_is_traced_to_the_model_that_gave_it() -> None:
    a = episode([*calls_of("ls", "a", "Let me look.")], [model("x", request("bash", {"command": "p"}))])
    b = episode([*calls_of("ls", "a", "I'll look.")], [model("x", request("bash", {"command": "q"}))])
    found = parted(a, b, BEHAVIOUR)
    why = "an earlier answer of the model differs, given at step 1: the same input was answered differently; "
    assert said(found) == ("model", Cause.SAMPLING, why + "neither temperature nor seed recorded")
    assert found.step == 1


def test_a_time_in_the_input_is_traced_to_the_clock() -> None:
    a, b = (
        episode([ClockRead(value=time), model("x", request("y", {"t": time}))], system=f"It is {time}.")
        for time in ("Monday", "Friday")
    )
    assert said(parted(a, b, BEHAVIOUR)) == ("clock", Cause.CLOCK, "the model was told another time")


def test_one_more_turn_of_the_user_is_the_user() -> None:
    a = episode([ASKED, model("x", request("y", {}))])
    b = episode([ASKED, UserTurn(content="and hurry"), model("x", request("z", {}))])
    assert said(parted(a, b, BEHAVIOUR)) == ("user", Cause.USER, "the user said one more thing in B")


def test_spacing_or_ids_in_arguments_do_not_hide_another_result() -> None:
    a = episode([ToolCall(name="ls", arguments={"a": 1}, raw='{"a":1}', result="x")])
    b = episode([ToolCall(name="ls", arguments={"a": 1}, raw='{"a": 1}', result="y")])
    found = parted(a, b, Contract(Level.JSON))
    assert said(found) == ("tool:ls", Cause.ENVIRONMENT, "the same call returned something else")


def test_an_opening_message_may_be_a_person_s_or_a_template_s() -> None:
    found = parted(episode([UserTurn(content="one")]), episode([UserTurn(content="two")]))
    assert said(found) == ("user", Cause.USER, "the opening message differs")
    one, two = (episode([UserTurn(content="go"), model("a")], [UserTurn(content=text)]) for text in ("one", "two"))
    assert said(parted(one, two)) == ("user", Cause.USER, "the user said something different")


def test_a_trace_without_a_conversation_ended_at_nothing() -> None:
    spoken = episode([UserTurn(content="one"), model("a"), Verification(passed=True)])
    silent = episode([Verification(passed=True)])
    assert said(parted(spoken, silent)) == (
        "harness",
        Cause.UNKNOWN,
        "B records no conversation, only how it ended",
    )


def test_a_verdict_that_one_lacks_is_no_early_end() -> None:
    found = parted(episode([model("a")]), episode([model("a"), Verification(passed=True)]))
    assert said(found) == ("harness", Cause.UNKNOWN, "no verdict of A is recorded, and one of the other is")


def test_a_rebuilt_input_of_another_harness_names_it() -> None:
    found = answers("one", "two", ({"harness.name": "x"}, {"harness.name": "y"}), fidelity=Fidelity.REBUILT)
    assert found.cause is Cause.MODEL_OR_HARNESS
    assert found.why.endswith("reconstruction; a declared harness change: harness")


def test_a_trace_that_goes_on_to_its_verdict_says_so() -> None:
    asked = UserTurn(content="x")
    found = parted(episode([asked, Verification(passed=False)]), episode([asked, model("a")]))
    assert found.why == "A ended here and was judged, while the other went on with model"
