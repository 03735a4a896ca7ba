"""The order in which two differing model calls are explained: input, tools, template, failure, answer."""

from __future__ import annotations

from typing import Any

import pytest

from harnesslab.core.canonical import JSON
from harnesslab.core.comparing.evidence import Cause
from harnesslab.core.comparing.hypotheses import Hypothesis
from harnesslab.core.comparing.model_divergence import model_hypotheses
from harnesslab.core.trace.events import Fidelity, ModelCall
from tests.core.traces import episode, model, reader

ANSWER: dict[str, Any] = {"text": "a", "settings": {"seed": 1, "temperature": 0}}


def explained(
    one: dict[str, Any],
    two: dict[str, Any],
    system: tuple[str, str] = ("S", "S"),
    tools: tuple[JSON, JSON] = (None, None),
) -> Hypothesis:
    a = episode([model(**{**ANSWER, **one})], system=system[0], tools=tools[0])
    b = episode([model(**{**ANSWER, **two})], system=system[1], tools=tools[1])
    left, right = a.events[1], b.events[1]
    assert isinstance(left, ModelCall)
    assert isinstance(right, ModelCall)
    return model_hypotheses(reader(a), reader(b), 1, 1, left, right, ())[0]


def test_each_reason_comes_before_those_that_may_follow_from_it() -> None:
    answer: dict[str, Any] = {"text": "b"}
    failed = {**answer, "error": "overloaded"}
    template = {**failed, "prompt_token_ids": (2,)}
    tools: tuple[JSON, JSON] = ([{"name": "x"}], [{"name": "y"}])
    one = {"prompt_token_ids": (1,)}
    assert explained(one, answer).cause is Cause.NUMERICS
    assert explained(one, failed).cause is Cause.INFRA
    assert explained(one, template).cause is Cause.TEMPLATE
    assert explained(one, template, tools=tools).why.startswith("the harness offered the model other tools; x in A")
    assert explained(one, template, ("S", "T"), tools).why == "the harness sent other instructions"


@pytest.mark.parametrize("side", [0, 1])
def test_one_rebuilt_input_is_enough_to_leave_it_open(side: int) -> None:
    fields: list[dict[str, Any]] = [{"text": "a"}, {"text": "b"}]
    fields[side]["fidelity"] = Fidelity.REBUILT
    assert explained(fields[0], fields[1]).cause is Cause.MODEL_OR_HARNESS
    assert explained(fields[0], fields[1], tools=([{"name": "x"}], [{"name": "y"}])).cause is Cause.MODEL_OR_HARNESS


def test_a_declared_setting_is_named_also_where_the_input_was_rebuilt() -> None:
    settings = {"settings": {"temperature": 1}, "text": "b", "fidelity": Fidelity.REBUILT}
    found = explained({}, settings)
    assert found.why == "the same input was answered differently; the requests differ in seed, temperature"


def test_the_shown_odds_are_those_at_the_first_differing_token() -> None:
    found = explained({"token_ids": (1, 2)}, {"text": "b", "token_ids": (1,), "logprobs": (-0.5,)})
    assert found.token_index == 1
    assert [(row.label, row.a, row.b) for row in found.evidence] == [
        ("text", "a", "b"),
        ("first differing token", "2", "–"),
    ]
