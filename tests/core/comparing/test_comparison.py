"""The sentence that says where two traces part and why, and the ladder beside it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, settings

from harnesslab.core.canonical import JSON
from harnesslab.core.comparing.alignment import Relation
from harnesslab.core.comparing.comparison import Comparison, Rung, compare_traces
from harnesslab.core.comparing.sentence import sentence
from harnesslab.core.contracts.contract import RAW, Contract, Level
from harnesslab.core.errors import NotComparable
from harnesslab.core.trace.events import AnyEvent, ToolCall, UserTurn
from harnesslab.core.trace.trace import Trace
from tests.core.traces import bash, episode, model, reader, request, traces

FIRST: list[AnyEvent] = [
    UserTurn(content="fix it"),
    model("on it", request("bash", {"command": "ls"})),
    bash("ls", "a.py", id="1"),
]
SCRUBBED = Contract.parse("text")
TOOL_CALLS = Contract.parse("", "none", "tool-calls")
VOLATILE = (
    "the first raw difference is at step 2, boundary tool:bash: the same call returned something else; "
    "only volatile text differs (rule durations@1 removes it), and the model read it as it was."
)


def compared(a: Trace, b: Trace, contract: Contract = RAW, *conditions: Mapping[str, JSON]) -> Comparison:
    one, two = conditions or ({}, {})
    return compare_traces(reader(a, one), reader(b, two), contract)


def told(a: Trace, b: Trace, contract: Contract = RAW, *conditions: Mapping[str, JSON]) -> str:
    return sentence(compared(a, b, contract, *conditions))


def timed(seconds: str, answer: str = "x") -> Trace:
    return episode(FIRST, [bash("t", f"3 passed in {seconds}s")], [model(answer)])


def test_identical_traces() -> None:
    a, one = episode(FIRST, [model("x")]), episode(FIRST)
    assert told(a, a) == "Identical in all 2 steps at the level text."
    assert told(one, one) == "Identical in the one step at the level text."
    assert told(one, one, TOOL_CALLS) == "The tool calls are identical at the level JSON."


def test_the_first_step_is_said_once() -> None:
    a, b = (episode([UserTurn(content=f"I want {what}", simulated=True)]) for what in ("a refund", "my money back"))
    assert told(a, b) == (
        "They part in the first step, at the boundary user: the simulated user said something different, "
        'from "a refund" against "my money back".'
    )
    assert compared(a, b).contractual == compared(a, b).raw


def test_the_model_parts_them() -> None:
    fields = {"settings": {"temperature": 0, "seed": 3}}
    a, b = (episode(FIRST, [model(f"open {what} now", **fields)]) for what in ("models/fields", "forms"))
    assert told(a, b) == (
        "Identical for 1 step. At step 2 the model parts them: the same input was answered differently, "
        'from "models/fields now" against "forms now"; temperature 0, seed 3; nothing else declared: '
        "numerics, batch or something undeclared (engine, hardware and load aren't recorded)."
    )


def test_the_token_is_named() -> None:
    a = episode(FIRST, [model("a b", token_ids=(1, 2))])
    b = episode(FIRST, [model("a c", token_ids=(1, 3))])
    assert told(a, b) == (
        "Identical for 1 step. At step 2 the model parts them, from token 2: the same input was answered "
        'differently, from "b" against "c"; neither temperature nor seed recorded.'
    )


def test_a_declared_difference() -> None:
    a, b = (episode(FIRST, [model(text)]) for text in "xy")
    assert told(a, b, RAW, {"engine.kernels": "a"}, {"engine.kernels": "b"}) == (
        "Identical for 1 step. At step 2 the model parts them: the same input was answered differently, "
        'from "x" against "y"; the manifests declare a difference: kernels.'
    )


def test_a_tool_result() -> None:
    assert told(timed("0.12"), timed("0.31")) == (
        "Identical for 1 step. At step 2, at the boundary tool:bash: the same call returned something else, "
        'from "0.12s" against "0.31s"; only volatile text differs (rule durations@1 removes it), '
        "and the model read it as it was."
    )


def test_what_the_rules_made_equal_is_said() -> None:
    assert told(timed("0.12"), timed("0.31"), SCRUBBED) == (
        f"Identical in all 2 steps at the level text. 1 scrub rule removed something; {VOLATILE}"
    )
    assert told(timed("0.12"), timed("0.31", "y"), SCRUBBED) == (
        "Identical for 2 steps. At step 3 the model parts them: inputs that are equal only after the rules were "
        'answered differently, from "x" against "y"; neither temperature nor seed recorded. '
        "That is at the level text, where 1 scrub rule removed something; " + VOLATILE
    )


def test_what_a_looser_level_leaves_out_is_said() -> None:
    a, b = episode(FIRST, [model("x")]), episode(FIRST, [model("y")])
    raw = "irst raw difference is at step 2, boundary model: the same input was answered differently; "
    assert told(a, b, Contract(Level.BEHAVIOUR)) == (
        f"Identical in all 2 steps at the level behaviour. The f{raw}neither temperature nor seed recorded."
    )
    c, d = (episode(FIRST, [model(text)], [bash(text)]) for text in "xy")
    assert told(c, d, Contract(Level.BEHAVIOUR)).endswith(
        f" That is at the level behaviour; the f{raw}neither temperature nor seed recorded."
    )


def test_tool_calls_alone() -> None:
    def run(*commands: str) -> Trace:
        steps: list[list[AnyEvent]] = [
            [model(None, request("bash", {"command": line})), bash(line)] for line in commands
        ]
        return episode(*steps)

    why = "the model called bash with other arguments: the same input was answered differently, "
    assert told(run("ls", "cat models.py"), run("ls", "cat forms.py"), TOOL_CALLS) == (
        f'Identical for 1 tool call. At step 2 the model parts them: {why}from "models.py" against "forms.py"; '
        "neither temperature nor seed recorded."
    )
    assert told(run("ls"), run("pwd"), TOOL_CALLS) == (
        f"They part at the first tool call, in step 1, at the boundary model: {why}"
        'from "ls" against "pwd"; neither temperature nor seed recorded.'
    )


def test_other_boundaries() -> None:
    a = episode(FIRST, [model("x")])
    assert told(a, episode(FIRST)) == (
        "Identical for 1 step. At step 2, at the boundary harness: B ended here while the other went on."
    )
    assert told(a, episode(FIRST, [model("x")], outcome="timeout")) == (
        "Identical for 1 step. At step 2, at the boundary harness: B was cut short (timeout)."
    )
    assert told(episode([model("x")], system="A."), episode([model("x")], system="B.")) == (
        "They part in the first step, at the boundary harness: the harness sent other instructions, "
        'from "A." against "B.".'
    )


def test_half_characters_are_written_as_escapes() -> None:
    a, b = (episode(FIRST, [ToolCall(name="\udcb2", result=f"\udcb3 {end}")]) for end in "ab")
    c = episode(FIRST, [ToolCall(name="\udcb2", result="\udcb4")])
    assert told(a, b) == (
        "Identical for 1 step. At step 2, at the boundary tool:\\udcb2: the same call returned something else, "
        'from "a" against "b".'
    )
    assert told(a, c).endswith('from "\\udcb3 a" against "\\udcb4".')


@settings(max_examples=20)
@given(traces(), traces())
def test_any_two_traces_can_be_compared_and_told(a: Trace, b: Trace) -> None:
    for contract in (RAW, Contract.parse("json"), Contract(Level.BEHAVIOUR), TOOL_CALLS):
        found, turned = compared(a, b, contract), compared(b, a, contract)
        told_ = sentence(found)
        assert told_.endswith(".")
        told_.encode()
        assert found.identical == turned.identical == (found.summary.edits == 0)
        if found.contractual is not None and turned.contractual is not None:
            assert (found.contractual.a, found.contractual.b) == (turned.contractual.b, turned.contractual.a)
            excerpt = found.contractual.excerpt
            assert excerpt is None or (all(excerpt) and excerpt[0] != excerpt[1])


def test_the_ladder_says_equal_different_or_not_comparable() -> None:
    a, b = episode(FIRST, [model("x")]), episode(FIRST, [model("y")])
    assert compared(a, b).ladder == {
        Level.LOGPROBS: Rung.NOT_COMPARABLE,
        Level.TOKEN_IDS: Rung.NOT_COMPARABLE,
        Level.TEXT: Rung.DIFFERENT,
        Level.JSON: Rung.DIFFERENT,
        Level.BEHAVIOUR: Rung.EQUAL,
    }
    with pytest.raises(NotComparable, match="does not record token-ids"):
        compared(a, b, Contract(Level.TOKEN_IDS))


def test_rows_that_only_the_rules_make_equal_are_marked() -> None:
    found = compared(timed("0.12"), timed("0.31"), SCRUBBED)
    assert [row.relation for row in found.rows if row.relation is not Relation.EQUAL] == [Relation.SCRUBBED]
    assert (found.summary.scrubbed, found.summary.edits) == (1, 0)
    assert [removed.counts["durations@1"] for removed in found.removed] == [2, 2]  # the result, and as a message


def test_conditions_and_outcomes_stand_beside_it() -> None:
    a = episode(FIRST)
    found = compared(a, a, RAW, {"model.name": "a"}, {"model.name": "b"})
    assert [pair.field.name for pair in found.declared] == ["model.name"]
    assert found.outcomes == ("solved", "solved")
    assert found.steps == (1, 1)
