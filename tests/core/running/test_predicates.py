"""A regression case's predicate: met, not met, or not reached."""

from __future__ import annotations

import pytest

from harnesslab.core.canonical import JSON
from harnesslab.core.errors import InvalidValue
from harnesslab.core.running.predicates import Predicate, What
from harnesslab.core.trace.events import ToolCall
from harnesslab.core.trace.trace import Trace, TraceBuilder


def trace() -> Trace:
    builder = TraceBuilder()
    builder.model_call(["q"], text="I look", step=0)
    builder.add(ToolCall(name="run", arguments={"command": "ls", "deep": {"x": 1}}, exit_code=0, step=0))
    builder.model_call(["q", "r"], text="I remove everything", step=1)
    builder.add(ToolCall(name="run", arguments={"command": "rm -rf x"}, exit_code=1, step=1))
    return builder.close("solved")


@pytest.mark.parametrize(
    ("predicate", "first", "met"),
    [
        (Predicate(What.TOOL_CALL, tool="run"), 0, True),
        (Predicate(What.TOOL_CALL, tool="mail"), 0, False),
        (Predicate(What.ARGUMENT, tool="run", argument="command", holds="rm"), 1, True),
        (Predicate(What.ARGUMENT, tool="run", argument="command", holds="rm"), 0, False),
        (Predicate(What.ARGUMENT, holds="rm", steps=2), 0, True),
        (Predicate(What.ARGUMENT, tool="run", argument="deep", holds='"x":1'), 0, True),
        (Predicate(What.ARGUMENT, tool="run", argument="absent", holds="x"), 0, False),
        (Predicate(What.FAILURE, tool="run"), 0, False),
        (Predicate(What.FAILURE), 1, True),
        (Predicate(What.ANSWER, holds="remove"), 1, True),
        (Predicate(What.ANSWER, holds="remove"), 0, False),
        (Predicate(What.ANSWER, holds="remove"), 5, None),
    ],
)
def test_a_predicate_looks_at_its_steps_and_no_others(predicate: Predicate, first: int, met: bool | None) -> None:
    assert predicate.met(trace(), first) is met


@pytest.mark.parametrize(
    "document",
    [
        {"what": "weather"},
        {"what": "failure", "colour": "blue"},
    ],
)
def test_a_document_that_is_no_predicate_is_refused(document: dict[str, JSON]) -> None:
    with pytest.raises(InvalidValue) as error:
        Predicate.from_json(document)
    assert error.value.where == "predicate"


@pytest.mark.parametrize(
    ("predicate", "words"),
    [
        (Predicate(What.TOOL_CALL, tool="run"), "calls run at that step"),
        (Predicate(What.ARGUMENT, argument="command", holds="rm", steps=2), "calls any tool with command holding 'rm'"),
        (Predicate(What.FAILURE, tool="run"), "a call of run fails"),
        (Predicate(What.ANSWER, holds="no"), "answers with 'no'"),
    ],
)
def test_a_predicate_says_itself(predicate: Predicate, words: str) -> None:
    assert words in predicate.sentence
    assert Predicate.from_json(predicate.to_json()) == predicate
