"""Why two model calls differ: another input, another template, a failed attempt, or another answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from harnesslab.core.canonical import JSON, canonical_bytes
from harnesslab.core.comparing.answers import Calls, answer_hypotheses, answered_alike
from harnesslab.core.comparing.evidence import Cause, differ, pair, same, short
from harnesslab.core.comparing.hypotheses import NO_WORDS, Hypothesis, Strength, harness_hypothesis, ranked
from harnesslab.core.comparing.input_difference import InputDifference, first_input_difference
from harnesslab.core.comparing.manner import Kind, manner
from harnesslab.core.conditions.manifest import ConditionPair
from harnesslab.core.contracts.comparators import ContentReader
from harnesslab.core.contracts.contract import RAW, Contract
from harnesslab.core.contracts.trace_reader import TraceReader
from harnesslab.core.trace.events import ModelCall


def model_hypotheses(
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
) -> tuple[Hypothesis, ...]:
    """Explain two model calls at event positions `at_a` and `at_b`, as the contract sees them, the strongest first.

    `first`: all inputs before are known to be equal, so what both calls keep of them is not read again.
    """
    calls = Calls(a, b, at_a, at_b, left, right, tuple(declared))
    start = min(left.input.keep, right.input.keep) if first else 0
    new, old = _input_differences(calls, contract, start, first=first)
    if new is not None:
        return ranked(_of_input(calls, new))
    tools_a = None if left.tools is None else a.payload(left.tools)
    tools_b = None if right.tools is None else b.payload(right.tools)
    if not same(tools_a, tools_b) and (None not in (tools_a, tools_b) or answered_alike(left, right)):
        return (_tools(tools_a, tools_b, calls),)
    if differ(left.prompt_token_ids, right.prompt_token_ids):
        why = "equal messages became other prompt tokens: the chat template or tokenizer differs"
        return (Hypothesis(Cause.TEMPLATE, why, strength=Strength.RECORDED),)
    if left.error != right.error or left.attempt != right.attempt:
        return (_retried(left, right),)
    if (left.rejected is None) != (right.rejected is None) and answered_alike(left, right):
        return (_rejected(left, right, declared),)
    return _of_answers(calls, contract, start, old)


def _of_answers(calls: Calls, contract: Contract, start: int, old: InputDifference | None) -> tuple[Hypothesis, ...]:
    """Explain two answers to inputs that the contract counts as equal, or that differ in `old` alone."""
    if old is None:
        removed = _removed(calls, contract, start)
        told = "inputs that are equal only after the rules" if removed else ""
        return answer_hypotheses(calls, told, _made_equal(calls, removed, start))
    # what differs was there before, and the model went on alike: it explains nothing that comes later
    alike = f"the model went on alike after {old.label}, which differed then already"
    told = "inputs that differ only where the model had gone on alike before"
    doubted = tuple(each.doubted(alike) for each in _of_input(calls, old))
    return ranked((*answer_hypotheses(calls, told), *doubted))


def _removed(calls: Calls, contract: Contract, start: int) -> list[str]:
    """Return the rules that made two inputs equal; none where they are equal without any."""
    a, b, at_a, at_b = calls.a, calls.b, calls.at_a, calls.at_b
    if not contract.rules or first_input_difference(a, b, at_a, at_b, RAW, (start, start)) is None:
        return []
    readers = ContentReader(contract, ()), ContentReader(contract, ())
    for reader, messages in zip(readers, (a.messages(at_a, start), b.messages(at_b, start)), strict=True):
        for message in messages:
            reader.message(message)
    return sorted({*readers[0].removed.counts, *readers[1].removed.counts})


def _made_equal(calls: Calls, removed: Sequence[str], start: int) -> tuple[str, ...]:
    """Say what made two recorded inputs equal: renamed ids, or what the rules took."""
    if removed:
        return (f"the inputs are equal once these rules took what they name: {', '.join(removed)}",)
    if calls.a.messages(calls.at_a, start) != calls.b.messages(calls.at_b, start):
        return ("the inputs are equal once generated ids are renamed",)
    return ()


def _input_differences(
    calls: Calls, contract: Contract, start: int, *, first: bool
) -> tuple[InputDifference | None, InputDifference | None]:
    """Return the difference of two inputs that explains another answer, and one that was answered alike before."""
    a, b, at_a, at_b = calls.a, calls.b, calls.at_a, calls.at_b
    if first:
        return first_input_difference(a, b, at_a, at_b, contract, (start, start)), None
    before_a, before_b = previous_call(a, at_a), previous_call(b, at_b)
    if contract == RAW or before_a is None or before_b is None:
        return first_input_difference(a, b, at_a, at_b, contract), None
    lengths = len(a.messages(before_a)), len(b.messages(before_b))
    if calls.left.input.keep < lengths[0] or calls.right.input.keep < lengths[1]:
        return first_input_difference(a, b, at_a, at_b, contract), None
    recent = first_input_difference(a, b, at_a, at_b, contract, lengths, answers=False)
    if recent is not None:
        return recent, None
    earliest = first_input_difference(a, b, at_a, at_b, contract)
    if earliest is None or earliest.emitters is None:
        return None, earliest
    return earliest, None


def _of_input(calls: Calls, difference: InputDifference) -> list[Hypothesis]:
    if difference.emitters is None:
        return [_input(difference, calls)]
    at_a, at_b = difference.emitters
    one, two = calls.a.event(at_a), calls.b.event(at_b)
    if not isinstance(one, ModelCall) or not isinstance(two, ModelCall):
        return [Hypothesis(Cause.UNKNOWN, difference.why, strength=Strength.OPEN)]
    row = pair(difference.label, difference.a, difference.b)
    return [
        replace(
            each,
            why=f"{difference.why}, given at step {one.step + 1}: {each.why}",
            evidence=(row, *each.evidence),
            quote=row,
            step=one.step,
        )
        for each in model_hypotheses(calls.a, calls.b, at_a, at_b, one, two, calls.declared)
    ]


def _tools(tools_a: JSON, tools_b: JSON, calls: Calls) -> Hypothesis:
    evidence = (pair("tools", _written(tools_a), _written(tools_b)),)
    if tools_a is None or tools_b is None:
        why = "the tools offered to the model are recorded in one and not in the other"
        return Hypothesis(Cause.UNKNOWN, why, evidence, strength=Strength.OPEN)
    why = f"the harness offered the model other tools{_alone(tools_a, tools_b)}"
    if calls.rebuilt:
        why = f"{why}; the input is an importer's reconstruction"
        return Hypothesis(Cause.MODEL_OR_HARNESS, why, evidence, boundary="harness", quote=NO_WORDS)
    # what the manifests state of the schemas is these schemas' digest, which says nothing more
    declared = [each for each in calls.declared if each.field.name != "tools.schemas"]
    return replace(harness_hypothesis(why, evidence, declared), boundary="harness", quote=NO_WORDS)


def _written(tools: JSON) -> JSON:
    return None if tools is None else canonical_bytes(tools).decode()


def _alone(tools_a: JSON, tools_b: JSON) -> str:
    """Name the tools that one side alone was offered."""
    names_a, names_b = _names(tools_a), _names(tools_b)
    said = [
        f"{', '.join(sorted(names))} in {which} alone"
        for which, names in (("A", names_a - names_b), ("B", names_b - names_a))
        if names
    ]
    return f"; {' and '.join(said)}" if said else "; of the same names, with other schemas" if names_a else ""


def _names(tools: JSON) -> set[str]:
    found = set()
    for tool in tools if isinstance(tools, list) else []:
        inner = tool.get("function", tool) if isinstance(tool, dict) else {}
        if isinstance(inner, dict) and isinstance(inner.get("name"), str):
            found.add(str(inner["name"]))
    return found


def _input(difference: InputDifference, calls: Calls) -> Hypothesis:
    row = pair(difference.label, difference.a, difference.b)
    little = manner(difference.a, difference.b)
    why, boundary = difference.why, difference.boundary
    if little is not None and boundary != "clock":
        why = f"{why}; they differ in {little.words} alone"
    if little is not None and little.blank and boundary == "user":
        # nobody says a final newline: it is how a message was put together
        boundary, why = "harness", f"a user message differs in {little.words} alone"
    passing = little is not None and (little.blank or little.kinds <= {Kind.DATE, Kind.HOST})
    if boundary != "harness":
        return Hypothesis(_giver(boundary), why, (row,), boundary=boundary, quote=row)
    if little is not None and little.kinds <= {Kind.DATE, Kind.HOST}:
        cause = Cause.CLOCK if Kind.DATE in little.kinds else Cause.ENVIRONMENT
        return Hypothesis(cause, why, (row,), boundary=boundary, quote=row, passing=True)
    if calls.rebuilt:
        why = f"{why}; the input is an importer's reconstruction"
        unseen = ("the requests as they were sent",)
        cause = Cause.MODEL_OR_HARNESS
        return Hypothesis(cause, why, (row,), boundary=boundary, unseen=unseen, quote=row, passing=passing)
    made = harness_hypothesis(why, (row,), calls.declared)
    return replace(made, boundary=boundary, quote=row, passing=passing)


def _giver(boundary: str) -> Cause:
    """Return the cause that stands for a boundary which gave a message."""
    if boundary.startswith("tool:"):
        return Cause.ENVIRONMENT
    return Cause.MODEL_OR_HARNESS if boundary == "model" else Cause(boundary)


def _retried(left: ModelCall, right: ModelCall) -> Hypothesis:
    """Explain a call that failed or was tried again in one trace."""
    rows = (pair("error", left.error, right.error), pair("attempt", left.attempt, right.attempt))
    if left.error is None and right.error is None:
        which, attempt = ("A", left.attempt) if left.attempt > right.attempt else ("B", right.attempt)
        why = f"the answer came at attempt {attempt + 1} in {which}, and earlier in the other"
    elif left.error is not None and right.error is not None:
        why = "the request failed in both, with other errors"
    else:
        which, error = ("A", left.error) if left.error is not None else ("B", right.error)
        why = f"the request failed in {which} (“{short(error)}”) and not in the other; a retry is no other answer"
    return Hypothesis(Cause.INFRA, why, rows, strength=Strength.RECORDED)


def _rejected(left: ModelCall, right: ModelCall, declared: Sequence[ConditionPair]) -> Hypothesis:
    which, reason = ("A", left.rejected) if left.rejected is not None else ("B", right.rejected)
    why = f"the harness rejected an equal answer in {which} (“{short(reason)}”) and took it in the other"
    made = harness_hypothesis(why, (pair("rejected", left.rejected, right.rejected),), declared)
    return replace(made, boundary="harness")


def previous_call(reader: TraceReader, before: int) -> int | None:
    """Return the position of the call of the same agent before a model call that the harness took."""
    agent = reader.event(before).agent
    for index in range(before - 1, -1, -1):
        event = reader.event(index) if reader.kinds[index] == "model_call" else None
        if isinstance(event, ModelCall) and event.agent == agent and event.error is None:
            return index
    return None
