"""Why two tool calls differ: another call was asked for, or the same call returned something else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from harnesslab.core.canonical import JSON, canonical_bytes
from harnesslab.core.comparing.evidence import (
    ENVIRONMENT_CONDITIONS,
    Cause,
    Evidence,
    clause,
    condition_rows,
    named,
    only_volatile,
    pair,
    same,
    text,
)
from harnesslab.core.comparing.hypotheses import Hypothesis, Strength, harness_hypothesis
from harnesslab.core.comparing.manner import manner, reordered
from harnesslab.core.comparing.model_divergence import model_hypotheses
from harnesslab.core.conditions.manifest import ConditionPair
from harnesslab.core.contracts.comparators import ContentReader
from harnesslab.core.contracts.contract import RAW, Contract
from harnesslab.core.contracts.trace_reader import TraceReader
from harnesslab.core.trace.events import ModelCall, ToolCall
from harnesslab.core.trace.parts import other_parts

_LISTING = re.compile(
    r"(?:^|[\s;&|(/_\"])(?:ls|dir|find|tree|glob|listdir|scandir|walk|iterdir|list_?(?:files|dir\w*))\b"
)


def tool_hypotheses(
    a: TraceReader,
    b: TraceReader,
    at_a: int,
    at_b: int,
    left: ToolCall,
    right: ToolCall,
    declared: Sequence[ConditionPair],
    contract: Contract = RAW,
) -> tuple[Hypothesis, ...]:
    """Explain two tool calls at event positions `at_a` and `at_b`, the strongest first."""
    if _asks_otherwise(left, right):
        return _other_call(a, b, at_a, at_b, left, right, declared, contract)
    return (_result(left, right, declared),)


def _asks_otherwise(left: ToolCall, right: ToolCall) -> bool:
    """Say whether two calls part in what they ask for; spacing and generated ids don't, where results differ too."""
    if left.name != right.name:
        return True
    if same([left.arguments, left.raw], [right.arguments, right.raw]):
        return False
    return not _alike(_asked(left), _asked(right)) or _alike(_given(left), _given(right))


def _asked(call: ToolCall) -> JSON:
    return call.raw if call.arguments is None else call.arguments


def _given(call: ToolCall) -> JSON:
    return [call.result, call.has_result, call.seen, call.exit_code, call.error, call.timed_out]


def _alike(a: JSON, b: JSON) -> bool:
    return same(ContentReader(RAW, ()).rewrite(a), ContentReader(RAW, ()).rewrite(b))


def _other_call(
    a: TraceReader,
    b: TraceReader,
    at_a: int,
    at_b: int,
    left: ToolCall,
    right: ToolCall,
    declared: Sequence[ConditionPair],
    contract: Contract,
) -> tuple[Hypothesis, ...]:
    """Explain two tool calls that ask for different things, from the model calls that emitted them."""
    asked = (pair("tool", left.name, right.name), pair("arguments", _asked(left), _asked(right)))
    from_a, from_b = _emitter(a, at_a, left.agent), _emitter(b, at_b, right.agent)
    order = left.emitted != right.emitted or left.completed != right.completed
    if order and _calls_of(a, at_a, left) == _calls_of(b, at_b, right):
        return (Hypothesis(Cause.TIMING, "parallel calls were handled in another order", asked),)
    if from_a is None or from_b is None:
        if left.name == right.name and None in (_asked(left), _asked(right)):
            why = f"the arguments of {left.name} are recorded in one and not in the other"
            return (Hypothesis(Cause.RECORDING, why, asked, strength=Strength.OPEN),)
        why = f"A called {left.name} and B called {right.name}" if left.name != right.name else ""
        why = f"{why or f'{left.name} was called with other arguments'}; the model call that asked is not recorded"
        return (Hypothesis(Cause.UNKNOWN, why, asked, strength=Strength.OPEN),)
    one, two = a.event(from_a), b.event(from_b)
    if not isinstance(one, ModelCall) or not isinstance(two, ModelCall) or _emitted(one) == _emitted(two):
        why = "the model asked for the same, and another call was made"
        return (harness_hypothesis(why, asked, declared),)
    what = f"the model called {left.name} in A and {right.name} in B"
    if left.name == right.name:
        what = f"the model called {left.name} with other arguments"
    return tuple(
        replace(
            each,
            why=f"{what}: {each.why}",
            evidence=(*asked, *each.evidence),
            boundary="model",
            quote=_quote(each, asked[1]),
        )
        for each in model_hypotheses(a, b, from_a, from_b, one, two, declared, contract)
    )


def _quote(explained: Hypothesis, arguments: Evidence) -> Evidence | None:
    """Return the row to quote: what was called, unless the clause speaks of what someone else said or returned."""
    if explained.boundary or explained.step is not None:
        return explained.quote
    return arguments


def _calls_of(reader: TraceReader, at: int, call: ToolCall) -> list[bytes]:
    """Return what a call and its parallel calls asked for, whatever their order."""
    found = []
    for step in (-1, 1):
        index = at if step > 0 else at - 1
        while (
            0 <= index < len(reader.kinds) and reader.kinds[index] == "tool_call" and reader.steps[index] == call.step
        ):
            event = reader.event(index)
            if isinstance(event, ToolCall) and event.agent == call.agent:
                found.append(canonical_bytes([event.name, event.arguments, event.raw]))
            index += step
    return sorted(found)


def _emitter(reader: TraceReader, before: int, agent: str) -> int | None:
    """Return the position of the accepted model call of an agent that precedes a tool call."""
    for index in range(before - 1, -1, -1):
        event = reader.event(index) if reader.kinds[index] == "model_call" else None
        if isinstance(event, ModelCall) and event.agent == agent and event.error is None:
            return index
    return None


def _emitted(call: ModelCall) -> list[tuple[str, bytes]]:
    """Return what an answer asked for: its structured calls, or else its words, which a harness reads actions in."""
    if not call.tool_calls:
        return [("", canonical_bytes(call.text))]
    return [(request.name, canonical_bytes([request.arguments, request.raw])) for request in call.tool_calls]


def _result(left: ToolCall, right: ToolCall, declared: Sequence[ConditionPair]) -> Hypothesis:
    evidence = _results(left, right)
    if left.timed_out != right.timed_out:
        return Hypothesis(Cause.TIMING, f"the same command timed out in {'A' if left.timed_out else 'B'}", evidence)
    if (left.retries or 0) != (right.retries or 0):
        counts = f"{left.retries or 0} against {right.retries or 0}"
        why = f"the same command was retried a different number of times ({counts})"
        return Hypothesis(Cause.TIMING, why, evidence)
    if left.has_result != right.has_result:
        why = "the result of the call is recorded in one and not in the other"
        return Hypothesis(Cause.UNKNOWN, why, evidence, strength=Strength.OPEN)
    # nothing that was returned differs, so what does is how the harness passed it on (`seen`)
    if len(evidence) == 1 and same(left.result, right.result):
        why = "the harness showed the model the same result in another form"
        return harness_hypothesis(why, (pair("seen", left.seen, right.seen),), declared)
    conditions = named(declared, ENVIRONMENT_CONDITIONS)
    why, little = _way(left, right, evidence)
    if conditions and not little:
        why = f"{why}; {clause(conditions)}"
        return Hypothesis(Cause.DECLARED, why, (*evidence, *condition_rows(conditions)), quote=evidence[0])
    return Hypothesis(Cause.ENVIRONMENT, why, evidence, quote=evidence[0])


def _way(left: ToolCall, right: ToolCall, evidence: tuple[Evidence, ...]) -> tuple[str, bool]:
    """Return the clause for two results, and whether they differ in little: volatile text, order, spaces."""
    if word := other_parts(left.result, right.result):
        return f"the tool returned another {word}", False
    why = "the same call returned something else"
    if len(evidence) > 1:
        return why, False
    hidden = left.seen is not None and right.seen is not None and same(left.seen, right.seen)
    read = "the model did not see it" if hidden else "the model read it as it was"
    explained = only_volatile(left.result, right.result)
    if explained:
        return f"{why}; only volatile text differs (rule {explained} removes it), and {read}", True
    if reordered(evidence[0].a, evidence[0].b):
        listing = _LISTING.search(f"{left.name} {text(_asked(left))}")
        what = "the same entries listed in another order (directory order)" if listing else "the same in another order"
        return f"the same call returned {what}; {read}", True
    little = manner(evidence[0].a, evidence[0].b)
    if little is not None:
        return f"{why}; the results differ in {little.words} alone, and {read}", True
    return why, False


def _results(left: ToolCall, right: ToolCall) -> tuple[Evidence, ...]:
    rows = [pair("result", left.result, right.result)]
    if left.exit_code != right.exit_code:
        rows.append(pair("exit code", left.exit_code, right.exit_code))
    if left.error != right.error:
        rows.append(pair("error", left.error, right.error))
    return tuple(rows)
