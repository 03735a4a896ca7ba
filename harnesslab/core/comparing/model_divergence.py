"""Why two model calls differ: another input, another template, a failed attempt, or another answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from harnesslab.core.canonical import JSON
from harnesslab.core.comparing.evidence import (
    HARNESS_CONDITIONS,
    LOAD_CONDITIONS,
    MODEL_CONDITIONS,
    Cause,
    Evidence,
    Finding,
    clause,
    condition_rows,
    differ,
    harness_finding,
    named,
    pair,
    same,
    text,
)
from harnesslab.core.comparing.input_difference import InputDifference, first_input_difference
from harnesslab.core.conditions.manifest import ConditionPair
from harnesslab.core.contracts.contract import RAW, Contract
from harnesslab.core.contracts.trace_reader import TraceReader
from harnesslab.core.trace.events import Fidelity, ModelCall


def model_finding(
    a: TraceReader,
    b: TraceReader,
    at_a: int,
    at_b: int,
    left: ModelCall,
    right: ModelCall,
    declared: Sequence[ConditionPair],
    contract: Contract = RAW,
    *,
    first: bool = False,
) -> Finding:
    """Explain two model calls at event positions `at_a` and `at_b`, as the contract sees them.

    `first`: all inputs before are known to be equal, so what both calls keep of them is not read again.
    """
    start = min(left.input.keep, right.input.keep) if first else 0
    difference = first_input_difference(a, b, at_a, at_b, contract, start)
    if difference is not None and difference.emitters is not None:
        return _earlier(a, b, difference, difference.emitters, declared)
    if difference is not None:
        return _input(difference, left, right, declared)
    tools_a = None if left.tools is None else a.payload(left.tools)
    tools_b = None if right.tools is None else b.payload(right.tools)
    if not same(tools_a, tools_b):
        return _tools(tools_a, tools_b, left, right, declared)
    if differ(left.prompt_token_ids, right.prompt_token_ids):
        return Finding(
            Cause.TEMPLATE, "equal messages became other prompt tokens: the chat template or tokenizer differs"
        )
    if (left.error is None) != (right.error is None) or left.attempt != right.attempt:
        return Finding(
            Cause.INFRA,
            "the request failed or was retried in one and not in the other",
            (pair("error", left.error, right.error), pair("attempt", left.attempt, right.attempt)),
        )
    scrubbed = contract.rules and first_input_difference(a, b, at_a, at_b, RAW, start) is not None
    answered = "inputs that are equal only after the rules" if scrubbed else "the same input"
    return _output(left, right, declared, f"{answered} {'were' if scrubbed else 'was'} answered differently")


def _earlier(
    a: TraceReader,
    b: TraceReader,
    difference: InputDifference,
    emitters: tuple[int, int],
    declared: Sequence[ConditionPair],
) -> Finding:
    """Explain two inputs that hold different earlier answers by the calls that gave those."""
    at_a, at_b = emitters
    one, two = a.event(at_a), b.event(at_b)
    if not isinstance(one, ModelCall) or not isinstance(two, ModelCall):
        return Finding(Cause.UNKNOWN, difference.why)
    found = model_finding(a, b, at_a, at_b, one, two, declared)
    why = f"{difference.why}, given at step {one.step + 1}: {found.why}"
    return replace(found, why=why, evidence=(pair(difference.label, difference.a, difference.b), *found.evidence))


def _tools(
    tools_a: JSON, tools_b: JSON, left: ModelCall, right: ModelCall, declared: Sequence[ConditionPair]
) -> Finding:
    evidence = (pair("tools", tools_a, tools_b),)
    if tools_a is None or tools_b is None:
        why = "the tools offered to the model are recorded in one and not in the other"
        return Finding(Cause.UNKNOWN, why, evidence)
    why = "the harness offered the model other tools"
    if Fidelity.REBUILT in (left.fidelity, right.fidelity):
        why = f"{why}; the input is an importer's reconstruction"
        return Finding(Cause.MODEL_OR_HARNESS, why, evidence, boundary="harness")
    return replace(harness_finding(why, evidence, declared), boundary="harness")


def _input(
    difference: InputDifference, left: ModelCall, right: ModelCall, declared: Sequence[ConditionPair]
) -> Finding:
    evidence = (pair(difference.label, difference.a, difference.b),)
    if difference.boundary == "user":
        return Finding(Cause.USER, difference.why, evidence, boundary="user")
    if difference.boundary.startswith("tool:"):
        return Finding(Cause.ENVIRONMENT, difference.why, evidence, boundary=difference.boundary)
    if difference.boundary != "harness":
        return Finding(Cause(difference.boundary), difference.why, evidence, boundary=difference.boundary)
    if Fidelity.REBUILT in (left.fidelity, right.fidelity):
        why = f"{difference.why}; the input is an importer's reconstruction"
        return Finding(Cause.MODEL_OR_HARNESS, why, evidence, boundary="harness")
    return replace(harness_finding(difference.why, evidence, declared), boundary="harness")


def _output(left: ModelCall, right: ModelCall, declared: Sequence[ConditionPair], answered: str) -> Finding:
    token = _token_index(left, right)
    label, text_a, text_b = _output_part(left, right)
    rows = [Evidence(label, text_a, text_b)]
    if token is not None:
        rows += _token_rows(left, right, token)
    settings = [
        pair(name, left.settings.get(name), right.settings.get(name))
        for name in sorted({*left.settings, *right.settings})
        if not same(left.settings.get(name), right.settings.get(name))
    ]
    conditions = named(declared, MODEL_CONDITIONS)
    if conditions or settings:
        what = (
            clause(conditions) if conditions else f"the requests differ in {', '.join(row.label for row in settings)}"
        )
        return Finding(Cause.DECLARED, f"{answered}; {what}", (*rows, *settings, *condition_rows(conditions)), token)
    if Fidelity.REBUILT in (left.fidelity, right.fidelity):
        why = f"{answered}, as far as recorded; the input is an importer's reconstruction"
        if others := named(declared, HARNESS_CONDITIONS):
            why = f"{why}; {clause(others)}"
        return Finding(Cause.MODEL_OR_HARNESS, why, (*rows, *condition_rows(others)), token)
    load = named(declared, LOAD_CONDITIONS)
    if load or left.served_from_cache != right.served_from_cache:
        why = f"{answered}; {clause(load) if load else 'one answer came from a cache'}"
        return Finding(Cause.BATCH, why, (*rows, *condition_rows(load)), token)
    return _sampled(left, right, answered, tuple(rows), token)


def _sampled(
    left: ModelCall, right: ModelCall, answered: str, rows: tuple[Evidence, ...], token: int | None
) -> Finding:
    temperature, seed = left.settings.get("temperature"), left.settings.get("seed")
    if isinstance(temperature, int | float) and temperature > 0 and seed is None:
        return Finding(Cause.SAMPLING, f"{answered}; temperature {temperature:g}, no seed recorded", rows, token)
    if temperature is None and seed is None:
        return Finding(Cause.SAMPLING, f"{answered}; neither temperature nor seed recorded", rows, token)
    stated = ", ".join(
        part
        for part in (
            f"temperature {temperature}" if temperature is not None else "",
            f"seed {seed}" if seed is not None else "",
        )
        if part
    )
    why = f"{answered}; {stated}, nothing else declared: undeclared numerics or a seed that was not honoured"
    return Finding(Cause.NUMERICS, why, rows, token)


def _output_part(left: ModelCall, right: ModelCall) -> tuple[str, str, str]:
    """Return (part, A, B) of the first part of two answers that differs."""
    for name in ("refusal", "reasoning", "text"):
        one, two = getattr(left, name), getattr(right, name)
        if one != two:
            return name, text(one), text(two)
    calls_a = "\n".join(f"{call.name} {_call_text(call.raw, call.arguments)}" for call in left.tool_calls)
    calls_b = "\n".join(f"{call.name} {_call_text(call.raw, call.arguments)}" for call in right.tool_calls)
    if calls_a != calls_b:
        return "tool calls", text(calls_a or None), text(calls_b or None)
    if left.finish_reason != right.finish_reason:
        return "finish reason", text(left.finish_reason), text(right.finish_reason)
    if differ(left.token_ids, right.token_ids):
        return "token ids", text(list(left.token_ids or ())), text(list(right.token_ids or ()))
    if differ(left.logprobs, right.logprobs):
        return "log-probabilities", text(list(left.logprobs or ())), text(list(right.logprobs or ()))
    return "rejected", text(left.rejected), text(right.rejected)


def _call_text(raw: str | None, arguments: JSON) -> str:
    return raw if raw is not None else text(arguments)


def _token_index(left: ModelCall, right: ModelCall) -> int | None:
    if left.token_ids is None or right.token_ids is None or left.token_ids == right.token_ids:
        return None
    for index, (one, two) in enumerate(zip(left.token_ids, right.token_ids, strict=False)):
        if one != two:
            return index
    return min(len(left.token_ids), len(right.token_ids))


def _token_rows(left: ModelCall, right: ModelCall, token: int) -> list[Evidence]:
    rows = [pair("first differing token", _at(left.token_ids, token), _at(right.token_ids, token))]
    if left.logprobs is not None and right.logprobs is not None:
        rows.append(pair("log-probability", _at(left.logprobs, token), _at(right.logprobs, token)))
    if left.alternatives is not None or right.alternatives is not None:
        rows.append(pair("alternatives", _at(left.alternatives, token), _at(right.alternatives, token)))
    return rows


def _at(items: Sequence[JSON] | None, index: int) -> JSON:
    return items[index] if items is not None and index < len(items) else None
