"""Which conditions can have made a model answer otherwise, and what is recorded of those that can."""

from __future__ import annotations

from collections.abc import Sequence

from harnesslab.core.canonical import JSON
from harnesslab.core.comparing.evidence import MODEL_CONDITIONS, Evidence, named, pair, same
from harnesslab.core.conditions.manifest import ConditionPair, Difference, compare
from harnesslab.core.contracts.trace_reader import TraceReader
from harnesslab.core.trace.events import ModelCall

_DRAWING = frozenset({"top_p", "top_k", "min_p", "typical_p", "top_a", "seed"})
"""Settings that draw, which nothing does at temperature 0."""
_BOOKKEEPING = frozenset({"user", "metadata", "request_id", "stream", "stream_options", "store", "prompt_cache_key"})
"""Settings that nothing is drawn by."""
_LIMITS = frozenset({"max_tokens", "max_completion_tokens", "max_output_tokens"})
OF_THE_INPUT = frozenset({"instructions", "system", "tool_choice", "response_format", "functions", "text", "prompt"})
"""Settings that are words of the request, not of sampling."""


def temperature(reader: TraceReader, call: ModelCall) -> float | None:
    """Return the temperature of a call, from its settings or else its manifest; None where neither states it."""
    for value in (call.settings.get("temperature"), reader.manifest.value("sampling.temperature")):
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    return None


def seed(reader: TraceReader, call: ModelCall) -> JSON:
    """Return the seed of a call, from its settings or else its manifest; None where neither states it."""
    value = call.settings.get("seed")
    return reader.manifest.value("seeds.seed") if value is None else value


def greedy(a: TraceReader, b: TraceReader, left: ModelCall, right: ModelCall) -> bool:
    """Say whether both calls were made at temperature 0."""
    return temperature(a, left) == 0 and temperature(b, right) == 0


def not_honoured(a: TraceReader, b: TraceReader, left: ModelCall, right: ModelCall) -> bool:
    """Say whether a seed was shown not to be honoured."""
    calls = left.seed_honoured is False or right.seed_honoured is False
    return calls or False in (a.manifest.value("seeds.honoured"), b.manifest.value("seeds.honoured"))


def acting_settings(a: TraceReader, b: TraceReader, left: ModelCall, right: ModelCall) -> list[Evidence]:
    """Return the settings of two requests that differ and can have changed the answer."""
    idle = _idle(a, b, left, right)
    return [
        pair(name, left.settings.get(name), right.settings.get(name))
        for name in sorted({*left.settings, *right.settings})
        if not same(left.settings.get(name), right.settings.get(name)) and name not in idle
    ]


def acting_conditions(
    a: TraceReader, b: TraceReader, left: ModelCall, right: ModelCall, declared: Sequence[ConditionPair]
) -> list[ConditionPair]:
    """Return the declared conditions of model, engine and sampling that can have changed the answer."""
    idle = _idle(a, b, left, right)
    return [
        each
        for each in named(declared, MODEL_CONDITIONS)
        if not (each.field.section == "sampling" and each.field.key in idle)
        and not (each.field.section == "seeds" and "seed" in idle)
    ]


def _idle(a: TraceReader, b: TraceReader, left: ModelCall, right: ModelCall) -> set[str]:
    """Return the settings and conditions that can't have acted on these two calls."""
    idle = set(_BOOKKEEPING)
    if greedy(a, b, left, right):
        idle |= _DRAWING
    if not_honoured(a, b, left, right):
        idle |= {"seed"}
    if "length" not in (left.finish_reason, right.finish_reason):
        idle |= _LIMITS
    return idle


def drawn_under(a: TraceReader, b: TraceReader, left: ModelCall, right: ModelCall) -> str:
    """Say what is recorded of how both answers were drawn; empty where nothing is."""
    warmth, other = temperature(a, left), temperature(b, right)
    seeds = seed(a, left), seed(b, right)
    parts = []
    if warmth is not None or other is not None:
        parts.append(f"temperature {_number(warmth)}" + (f" and {_number(other)}" if warmth != other else ""))
    if seeds == (None, None):
        parts += ["no seed recorded"] if parts else []
    elif same(*seeds):
        parts.append(f"seed {seeds[0]}")
    else:
        parts.append(f"seed {_shown(seeds[0])} against {_shown(seeds[1])}")
    return ", ".join(parts)


def _number(value: float | None) -> str:
    return "not recorded" if value is None else f"{value:g}"


def _shown(value: JSON) -> str:
    return "none" if value is None else str(value)


def known_of_execution(a: TraceReader, b: TraceReader) -> str:
    """Say what is known of numerics and batches, which differ without any trace in a request."""
    pairs = compare(a.manifest, b.manifest)
    known = [
        _known(what, [each for each in pairs if each.field.name.startswith(prefixes)])
        for what, prefixes in (("engine and hardware", ("engine.", "hardware.")), ("load", ("serving.",)))
    ]
    return "; ".join(known) if any("equal" in each for each in known) else "engine, hardware and load aren't recorded"


def _known(what: str, pairs: Sequence[ConditionPair]) -> str:
    equal = sum(each.difference is Difference.EQUAL for each in pairs)
    return f"{what}: {equal} of {len(pairs)} conditions known to be equal" if equal else f"{what}: not recorded"
