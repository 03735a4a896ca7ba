"""One call counts the same in every dialect."""

from __future__ import annotations

import math

import pytest

from harnesslab.core.trace import usage
from harnesslab.core.trace.events import Usage

CALL = Usage(input=17_903, output=412, cache_read=17_817)


@pytest.mark.parametrize(
    "read",
    [
        usage.openai(
            {"prompt_tokens": 17_903, "completion_tokens": 412, "prompt_tokens_details": {"cached_tokens": 17_817}}
        ),
        usage.openai({"input_tokens": 17_903, "output_tokens": 412, "input_tokens_details": {"cached_tokens": 17_817}}),
        usage.anthropic({"input_tokens": 86, "output_tokens": 412, "cache_read_input_tokens": 17_817}),
        usage.inspect(
            {"input_tokens": 86, "output_tokens": 412, "total_tokens": 18_315, "input_tokens_cache_read": 17_817}
        ),
        usage.inspect(
            {"input_tokens": 17_903, "output_tokens": 412, "total_tokens": 18_315, "input_tokens_cache_read": 17_817}
        ),
        usage.otel(
            {
                "gen_ai.usage.input_tokens": "17903",
                "gen_ai.usage.output_tokens": 412,
                "gen_ai.usage.cache_read.input_tokens": 17_817,
            }
        ),
        usage.openinference(
            {
                "llm.token_count.prompt": 17_903,
                "llm.token_count.completion": 412.0,
                "llm.token_count.prompt_details.cache_read": 17_817,
            }
        ),
        usage.atif({"prompt_tokens": 17_903, "completion_tokens": 412, "cached_tokens": 17_817}),
        usage.harbor({"n_input_tokens": 17_903, "n_output_tokens": 412, "n_cache_tokens": 17_817}),
        usage.harness_training({"prompt_tokens": 17_903, "completion_tokens": 412, "cached_input_tokens": 17_817}),
        usage.mlflow({"input_tokens": 86, "output_tokens": 412, "cache_read_input_tokens": 17_817}),
    ],
)
def test_the_same_call_counts_the_same_in_every_dialect(read: Usage | None) -> None:
    assert read == CALL


def test_what_was_written_to_the_cache_is_part_of_the_input() -> None:
    stated = {"input_tokens": 6, "output_tokens": 3, "cache_read_input_tokens": 10, "cache_creation_input_tokens": 4}
    assert usage.anthropic(stated) == Usage(input=20, output=3, cache_read=10, cache_write=4)


def test_output_includes_reasoning_also_where_the_dialect_counts_it_apart() -> None:
    assert usage.gemini({"promptTokenCount": 9, "candidatesTokenCount": 2, "thoughtsTokenCount": 5}) == Usage(
        input=9, output=7, reasoning=5
    )


@pytest.mark.parametrize("nothing", [None, {}, [], "12", {"prompt_tokens": None}, {"prompt_tokens": -1}])
def test_nothing_stated_is_none_and_not_zero(nothing: object) -> None:
    assert usage.openai(nothing) is None  # type: ignore[arg-type]


def test_a_count_that_is_no_number_is_not_stated() -> None:
    assert usage.atif({"prompt_tokens": math.nan, "completion_tokens": True, "cached_tokens": 3}) == Usage(cache_read=3)


def test_totals_leave_open_what_nobody_states() -> None:
    assert usage.total([Usage(1, 2), Usage(3, None, 1)]) == Usage(4, 2, 1)
    assert usage.total([]) == Usage()


def test_litellm_states_the_cache_beside_the_counts() -> None:
    stated = {
        "prompt_tokens": 20,
        "completion_tokens": 3,
        "cache_creation_input_tokens": 4,
        "cache_read_input_tokens": 10,
    }
    assert usage.openai(stated) == Usage(input=20, output=3, cache_read=10, cache_write=4)
    assert usage.openai({**stated, "prompt_tokens_details": {"cached_tokens": 11}}) == Usage(20, 3, 11, 4)
