"""Token counts in one convention, from every dialect that states them.

Dialects differ in whether the input count includes cached tokens and whether the output count includes
reasoning. `Usage` always includes both. A count that a source does not state stays None, never 0.
"""

from __future__ import annotations

from collections.abc import Mapping

from harnesslab.core.canonical import JSON
from harnesslab.core.trace.events import Usage


def openai(usage: JSON) -> Usage | None:
    """OpenAI chat completions and responses: input includes cached, output includes reasoning."""
    read, wrote = (
        _details(usage, "prompt_tokens_details", "input_tokens_details"),
        _details(usage, "completion_tokens_details", "output_tokens_details"),
    )
    return _usage(
        _count(usage, "prompt_tokens", "input_tokens"),
        _count(usage, "completion_tokens", "output_tokens"),
        _first(
            _count(read, "cached_tokens"),
            _count(usage, "cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens"),
        ),
        _first(
            _count(read, "cache_write_tokens", "cache_creation_tokens"),
            _count(usage, "cache_creation_input_tokens"),  # LiteLLM
        ),
        _first(_count(wrote, "reasoning_tokens"), _count(usage, "reasoning_tokens")),
    )


def anthropic(usage: JSON) -> Usage | None:
    """Anthropic messages: input excludes what was read from and written to the cache."""
    read, wrote = _count(usage, "cache_read_input_tokens"), _count(usage, "cache_creation_input_tokens")
    details = _details(usage, "output_tokens_details")
    return _usage(
        _plus(_count(usage, "input_tokens"), read, wrote),
        _count(usage, "output_tokens"),
        read,
        wrote,
        _count(details, "thinking_tokens", "reasoning_tokens"),
    )


def inspect(usage: JSON) -> Usage | None:
    """Inspect: input excludes the cache; older logs include it for some providers, which their total shows."""
    input_, output = _count(usage, "input_tokens"), _count(usage, "output_tokens")
    read, wrote = _count(usage, "input_tokens_cache_read"), _count(usage, "input_tokens_cache_write")
    total = _count(usage, "total_tokens")
    inclusive = input_ is not None and total == input_ + (output or 0) and (read or 0) + (wrote or 0) <= input_
    return _usage(
        input_ if inclusive else _plus(input_, read, wrote), output, read, wrote, _count(usage, "reasoning_tokens")
    )


def otel(attributes: JSON) -> Usage | None:
    """OpenTelemetry GenAI span attributes, the deprecated names included: input includes cached."""
    prefix = "gen_ai.usage."
    return _usage(
        _count(attributes, f"{prefix}input_tokens", f"{prefix}prompt_tokens"),
        _count(attributes, f"{prefix}output_tokens", f"{prefix}completion_tokens"),
        _count(attributes, f"{prefix}cache_read.input_tokens", f"{prefix}cache_read_input_tokens"),
        _count(
            attributes,
            f"{prefix}cache_write.input_tokens",
            f"{prefix}cache_creation.input_tokens",
            f"{prefix}cache_creation_input_tokens",
        ),
        _count(attributes, f"{prefix}reasoning.output_tokens"),
    )


def openinference(attributes: JSON) -> Usage | None:
    """OpenInference span attributes: the prompt count includes its details."""
    prefix = "llm.token_count."
    return _usage(
        _count(attributes, f"{prefix}prompt"),
        _count(attributes, f"{prefix}completion"),
        _count(attributes, f"{prefix}prompt_details.cache_read"),
        _count(attributes, f"{prefix}prompt_details.cache_write"),
        _count(attributes, f"{prefix}completion_details.reasoning"),
    )


def atif(metrics: JSON) -> Usage | None:
    """Metrics of an ATIF step: the prompt count includes cached tokens."""
    extra = _details(metrics, "extra")
    return _usage(
        _count(metrics, "prompt_tokens"),
        _count(metrics, "completion_tokens"),
        _count(metrics, "cached_tokens"),
        _count(extra, "cache_creation_input_tokens"),
        _count(extra, "reasoning_tokens", "reasoning_output_tokens"),
    )


def harbor(result: JSON) -> Usage | None:
    """Totals of a Harbor agent result: input includes cached tokens."""
    return _usage(_count(result, "n_input_tokens"), _count(result, "n_output_tokens"), _count(result, "n_cache_tokens"))


def harness_training(usage: JSON) -> Usage | None:
    """Usage of a harness-training completion: OpenAI's convention with flat names."""
    return _usage(
        _count(usage, "prompt_tokens"),
        _count(usage, "completion_tokens"),
        _count(usage, "cached_input_tokens"),
        None,
        _count(usage, "reasoning_tokens"),
    )


def gemini(usage: JSON) -> Usage | None:
    """Gemini usage metadata: the prompt includes cached content, the candidates exclude thoughts."""
    thoughts = _count(usage, "thoughtsTokenCount", "thoughts_token_count")
    return _usage(
        _plus(
            _count(usage, "promptTokenCount", "prompt_token_count"),
            _count(usage, "toolUsePromptTokenCount", "tool_use_prompt_token_count"),
        ),
        _plus(_count(usage, "candidatesTokenCount", "candidates_token_count"), thoughts),
        _count(usage, "cachedContentTokenCount", "cached_content_token_count"),
        None,
        thoughts,
    )


def mlflow(usage: JSON) -> Usage | None:
    """MLflow token usage: whether input includes the cache depends on the provider.

    Input is taken to include cached tokens, unless more were cached than the input counts.
    """
    input_ = _count(usage, "input_tokens")
    read, wrote = _count(usage, "cache_read_input_tokens"), _count(usage, "cache_creation_input_tokens")
    excluded = input_ is not None and (read or 0) + (wrote or 0) > input_
    return _usage(_plus(input_, read, wrote) if excluded else input_, _count(usage, "output_tokens"), read, wrote)


def total(usages: list[Usage]) -> Usage:
    """Add usages up; a count that no usage states stays None."""
    return Usage(
        *(
            sum(stated) if (stated := [value for value in values if value is not None]) else None
            for values in zip(
                *((u.input, u.output, u.cache_read, u.cache_write, u.reasoning) for u in usages), strict=True
            )
        )
    )


def _usage(
    input_: int | None, output: int | None, read: int | None, wrote: int | None = None, reasoning: int | None = None
) -> Usage | None:
    """Return a usage, or None where nothing is stated."""
    usage = Usage(input_, output, read, wrote, reasoning)
    return None if usage == Usage() else usage


def _count(values: JSON, *names: str) -> int | None:
    """Return the first of the named counts that is a whole number, also where it is written as text or float."""
    if not isinstance(values, Mapping):
        return None
    for name in names:
        value = values.get(name)
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
            return int(value)
        if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 and value % 1 == 0:
            return int(value)
    return None


def _details(values: JSON, *names: str) -> JSON:
    if not isinstance(values, Mapping):
        return None
    return next((values[name] for name in names if isinstance(values.get(name), Mapping)), None)


def _first(*counts: int | None) -> int | None:
    return next((count for count in counts if count is not None), None)


def _plus(base: int | None, *more: int | None) -> int | None:
    """Add to a stated count; without one the sum is unknown."""
    return None if base is None else base + sum(count or 0 for count in more)
