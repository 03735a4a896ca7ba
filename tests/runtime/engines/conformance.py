"""What every engine must do: one suite, run against the embedded engine, recordings of real SGLang servers, and, by
script/test-sglang, those servers themselves."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from harnesslab.core.canonical import JSON
from harnesslab.core.conditions.fields import BY_NAME
from harnesslab.core.conditions.manifest import Known, Unknown
from harnesslab.core.running.ports import Answer, EnginePort, FailureKind, ModelRequest

ANIMALS: list[JSON] = [{"role": "user", "content": "Name three animals."}]
WEATHER: JSON = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "description": "Tell the weather of a city.",
            "strict": True,
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string", "enum": ["Oslo", "Lima"]}},
                "required": ["city"],
                "additionalProperties": False,
            },
        },
    }
]
TIMEOUT = 60.0


@dataclass(frozen=True, slots=True)
class Subject:
    """An engine and what is expected of it."""

    engine: EnginePort
    name: str
    seeds: bool
    """Whether it honours seeds."""
    tools: bool
    """Whether it holds the model to a tool call."""
    context: int
    facts: Mapping[str, JSON] = field(default_factory=dict)
    """Conditions it must state."""

    def answer(self, settings: Mapping[str, JSON], *, tools: JSON = None, stream: bool = False) -> Answer:
        """Ask about animals and expect an answer."""
        got = self.engine.ask(ModelRequest(ANIMALS, settings, tools, stream), timeout=TIMEOUT)
        assert got.failure is None, got.failure
        assert got.answer is not None
        assert got.raw_request
        assert got.raw_response
        assert got.latency > 0
        return got.answer


def it_is_healthy(subject: Subject) -> None:
    health = subject.engine.health()
    assert health.up, health.sentence


def it_states_its_conditions(subject: Subject) -> None:
    conditions = subject.engine.conditions()
    assert set(conditions) <= set(BY_NAME)
    for name, condition in conditions.items():
        if isinstance(condition, Unknown):
            assert condition.reason, name
    known = {name: item.value for name, item in conditions.items() if isinstance(item, Known)}
    assert {name: known.get(name) for name in subject.facts} == dict(subject.facts)
    assert {"engine.name", "engine.version", "model.name", "engine.max_running_requests"} <= set(known)


def it_gives_tokens_and_their_probabilities(subject: Subject) -> None:
    answer = subject.answer({"temperature": 0, "max_tokens": 8})
    assert answer.text
    assert answer.finish_reason == "length"
    assert answer.usage is not None
    assert answer.usage.output == 8
    assert answer.token_ids is not None
    assert len(answer.token_ids) == 8
    assert answer.prompt_token_ids is not None
    assert len(answer.prompt_token_ids) == answer.usage.input
    assert answer.logprobs is not None
    assert len(answer.logprobs) == 8
    assert all(-math.inf < value <= 0 for value in answer.logprobs)
    assert answer.alternatives is not None
    assert len(answer.alternatives) == 8


def a_streamed_answer_equals_the_whole_one(subject: Subject) -> None:
    settings: dict[str, JSON] = {"temperature": 0, "max_tokens": 8}
    whole, pieces = subject.answer(settings), subject.answer(settings, stream=True)
    assert pieces.text == whole.text
    assert pieces.token_ids == whole.token_ids
    assert pieces.logprobs == whole.logprobs
    assert pieces.prompt_token_ids == whole.prompt_token_ids
    assert pieces.finish_reason == whole.finish_reason
    assert pieces.usage is not None
    assert pieces.usage.output == 8


def seeds_do_what_is_known_of_them(subject: Subject) -> None:
    def sample(seed: int) -> tuple[int, ...] | None:
        return subject.answer({"temperature": 1, "max_tokens": 16, "seed": seed}).token_ids

    one, again, other = sample(2**62 + 3), sample(2**62 + 3), sample(2**62 + 4)
    assert (one == again) is subject.seeds
    assert one != other


def a_full_context_is_told_with_its_counts(subject: Subject) -> None:
    long: list[JSON] = [{"role": "user", "content": "word " * (subject.context + 1000)}]
    got = subject.engine.ask(ModelRequest(long, {"max_tokens": 4}), timeout=TIMEOUT)
    assert got.failure is not None
    assert got.failure.kind is FailureKind.CONTEXT_EXCEEDED
    assert got.failure.facts["context_limit"] == subject.context
    tokens = got.failure.facts["prompt_tokens"]
    assert isinstance(tokens, int)
    assert tokens > subject.context
    assert got.raw_response


def output_follows_a_schema(subject: Subject) -> None:
    schema: JSON = {"type": "object", "properties": {"n": {"enum": [1, 2, 3]}}, "required": ["n"]}
    wanted: JSON = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    answer = subject.answer({"temperature": 0, "max_tokens": 40, "response_format": wanted})
    assert json.loads(answer.text or "")["n"] in (1, 2, 3)


def output_follows_a_grammar(subject: Subject) -> None:
    answer = subject.answer({"temperature": 0, "max_tokens": 20, "grammar": 'root ::= "ls " ("-l" | "-a")'})
    assert answer.text in ("ls -l", "ls -a")


def a_grammar_that_is_none_is_refused(subject: Subject) -> None:
    request = ModelRequest([{"role": "user", "content": "x"}], {"max_tokens": 4, "grammar": 'root ::= "ls'})
    got = subject.engine.ask(request, timeout=TIMEOUT)
    assert got.failure is not None
    assert got.failure.kind is FailureKind.REFUSED
    assert "grammar" in got.failure.sentence


def a_tool_call_keeps_its_form(subject: Subject) -> None:
    settings: dict[str, JSON] = {"temperature": 0, "max_tokens": 80, "tool_choice": "required"}
    for stream in (False, True):
        answer = subject.answer(settings, tools=WEATHER, stream=stream)
        if not subject.tools:
            assert answer.text or answer.tool_calls
            continue
        (call,) = answer.tool_calls
        assert call.name == "weather"
        assert isinstance(call.raw, str)
        assert isinstance(call.arguments, dict)
        assert call.arguments["city"] in ("Oslo", "Lima")
        assert answer.finish_reason == "tool_calls"


def strange_text_is_survived(subject: Subject) -> None:
    for text in ("a\x00b", "a \ud800 b", "\U0001f600\u202e"):
        got = subject.engine.ask(ModelRequest([{"role": "user", "content": text}], {"max_tokens": 2}), timeout=TIMEOUT)
        assert (got.answer is None) != (got.failure is None)


CHECKS: tuple[Callable[[Subject], None], ...] = (
    it_is_healthy,
    it_states_its_conditions,
    it_gives_tokens_and_their_probabilities,
    a_streamed_answer_equals_the_whole_one,
    seeds_do_what_is_known_of_them,
    a_full_context_is_told_with_its_counts,
    output_follows_a_schema,
    output_follows_a_grammar,
    a_grammar_that_is_none_is_refused,
    a_tool_call_keeps_its_form,
    strange_text_is_survived,
)
"""Checks whose requests are always the same, so that they can be replayed."""


def a_stopped_answer_frees_the_server(subject: Subject) -> None:
    seen: list[str] = []

    def until_the_fifth(text: str) -> bool:
        seen.append(text)
        return len(seen) < 5

    request = ModelRequest(
        [{"role": "user", "content": "Tell a long story."}], {"max_tokens": 1500, "ignore_eos": True}, stream=True
    )
    got = subject.engine.ask(request, timeout=TIMEOUT, on_text=until_the_fifth)
    assert got.failure is not None
    assert got.failure.kind is FailureKind.STOPPED
    assert len(seen) == 5
    assert got.raw_response
    assert subject.answer({"max_tokens": 2}).text


def a_late_answer_is_a_timeout(subject: Subject) -> None:
    request = ModelRequest(
        [{"role": "user", "content": "Tell a long story."}], {"max_tokens": 1500, "ignore_eos": True}
    )
    got = subject.engine.ask(request, timeout=0.5)
    assert got.failure is not None
    assert got.failure.kind is FailureKind.TIMEOUT


LIVE_CHECKS: tuple[Callable[[Subject], None], ...] = (a_stopped_answer_frees_the_server, a_late_answer_is_a_timeout)
"""Checks that depend on time, which no recording has."""
