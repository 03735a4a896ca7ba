"""Why two traces part: from evidence at the first differing event, never from a guess.

`diagnose` is given where the first raw difference is, in causal order, and both trace readers. It returns the boundary,
the cause, a clause that says why, and the evidence it rests on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harnesslab.core.canonical import JSON, canonical_bytes
from harnesslab.core.comparing.boundary_findings import boundary_finding
from harnesslab.core.comparing.evidence import (
    ENVIRONMENT_CONDITIONS,
    Cause,
    Evidence,
    Finding,
    clause,
    condition_rows,
    excerpt,
    harness_finding,
    named,
    only_volatile,
    pair,
    same,
)
from harnesslab.core.comparing.model_divergence import model_finding
from harnesslab.core.conditions.manifest import ConditionPair
from harnesslab.core.contracts.comparators import ContentReader
from harnesslab.core.contracts.contract import RAW, Contract, Level, Scope
from harnesslab.core.contracts.trace_reader import TraceReader
from harnesslab.core.trace.events import AnyEvent, ModelCall, ToolCall, UserTurn, boundary
from harnesslab.core.trace.parts import other_parts

_NO_EXCERPT = frozenset({"tool", "error", "attempt", "exit code", "token ids", "log-probabilities", "finish reason"})
"""Evidence that is no text of a model, user or tool."""


@dataclass(frozen=True, slots=True)
class Divergence:
    """Where two traces part, and why.

    Positions are zero-based; a side's event position is None where that trace has no further event.
    """

    a: int | None
    b: int | None
    step: int
    boundary: str
    cause: Cause
    why: str
    evidence: tuple[Evidence, ...] = ()
    tool_call_index: int | None = None
    """How many tool calls both traces made before."""
    token_index: int | None = None
    """First differing completion token, where both sides record token ids."""
    excerpt: tuple[str, str] | None = None
    """The words from which the two sides part, where a model, user or tool said them."""


def diagnose(
    a: TraceReader,
    b: TraceReader,
    at_a: int | None,
    at_b: int | None,
    declared: Sequence[ConditionPair],
    contract: Contract = RAW,
) -> Divergence:
    """Explain the first difference that a contract finds, at event positions `at_a` and `at_b`.

    `declared` are the conditions known on both sides and unequal.
    """
    left = a.event(at_a) if at_a is not None else None
    right = b.event(at_b) if at_b is not None else None
    finding = _find(a, b, at_a, at_b, left, right, declared, contract)
    shown = left or right
    side, position = (a, at_a) if at_a is not None else (b, at_b)
    spoken = isinstance(left, ModelCall | UserTurn | ToolCall) and type(left) is type(right)
    return Divergence(
        at_a,
        at_b,
        shown.step if shown is not None else 0,
        finding.boundary or (_causal_boundary(left, right)),
        finding.cause,
        finding.why,
        finding.evidence,
        sum(kind == "tool_call" for kind in side.kinds[: position or 0]),
        finding.token_index,
        excerpt([row for row in finding.evidence[:2] if row.label not in _NO_EXCERPT]) if spoken else None,
    )


def _causal_boundary(left: AnyEvent | None, right: AnyEvent | None) -> str:
    """Name the boundary of two events that differ; where their kinds differ, the harness chose between them."""
    if left is None or right is None:
        return boundary(left or right) if (left or right) else "harness"  # type: ignore[arg-type]
    if type(left) is type(right):
        return boundary(left)
    for event in (left, right):
        if isinstance(event, UserTurn):
            return "user"
    return "harness"


def _find(
    a: TraceReader,
    b: TraceReader,
    at_a: int | None,
    at_b: int | None,
    left: AnyEvent | None,
    right: AnyEvent | None,
    declared: Sequence[ConditionPair],
    contract: Contract,
) -> Finding:
    if left is None and right is None:
        return Finding(Cause.UNKNOWN, "nothing differs")
    if (silent := _silent(a)) != _silent(b) and contract.scope is Scope.ALL:
        why = f"{'A' if silent else 'B'} records no conversation, only how it ended"
        return Finding(Cause.UNKNOWN, why, boundary="harness")
    if left is None or right is None:
        which = "A" if left is None else "B"
        return Finding(Cause.UNKNOWN, f"{which} has nothing further of what is compared", boundary="harness")
    match left, right:
        case (ModelCall(), ModelCall()):
            covered = contract.scope is Scope.ALL and contract.level is not Level.BEHAVIOUR
            return model_finding(a, b, at_a or 0, at_b or 0, left, right, declared, contract, first=covered)
        case (ToolCall(), ToolCall()) if _asks_otherwise(left, right):
            return _other_call(a, b, at_a or 0, at_b or 0, left, right, declared)
        case (ToolCall(), ToolCall()):
            return _result(left, right, declared)
        case (UserTurn(), UserTurn()):
            return _user(a, at_a or 0, left, right)
    return boundary_finding(left, right, declared)


def _silent(reader: TraceReader) -> bool:
    """Say whether a trace holds neither a model's nor a user's nor a tool's part of a conversation."""
    return not {"model_call", "user_turn", "tool_call"} & set(reader.kinds)


def _user(a: TraceReader, at_a: int, left: UserTurn, right: UserTurn) -> Finding:
    """Explain two user turns; who wrote the opening message, a person or a harness's template, isn't recorded."""
    if left.simulated or right.simulated:
        why = "the simulated user said something different"
    elif "model_call" in a.kinds[:at_a]:
        why = "the user said something different"
    else:
        why = "the opening message differs"
    if word := other_parts(left.content, right.content):
        why = f"{why} in its {word} alone"
    return Finding(Cause.USER, why, (pair("user", left.content, right.content),))


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
) -> Finding:
    """Explain two tool calls that ask for different things, from the model calls that emitted them."""
    asked = (pair("tool", left.name, right.name), pair("arguments", left.arguments, right.arguments))
    from_a, from_b = _emitter(a, at_a, left.agent), _emitter(b, at_b, right.agent)
    order = left.emitted != right.emitted or left.completed != right.completed
    if order and _calls_of(a, at_a, left) == _calls_of(b, at_b, right):
        return Finding(Cause.TIMING, "parallel calls were handled in another order", asked)
    if from_a is None or from_b is None:
        return Finding(Cause.UNKNOWN, "the model call that asked for it is not recorded", asked)
    one, two = a.event(from_a), b.event(from_b)
    if not isinstance(one, ModelCall) or not isinstance(two, ModelCall) or _emitted(one) == _emitted(two):
        return harness_finding("the model asked for the same, and another call was made", asked, declared)
    found = model_finding(a, b, from_a, from_b, one, two, declared)
    what = f"the model called {left.name} in A and {right.name} in B"
    if left.name == right.name:
        what = f"the model called {left.name} with other arguments"
    return Finding(found.cause, f"{what}: {found.why}", (*asked, *found.evidence), found.token_index, boundary="model")


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
    return [(request.name, canonical_bytes([request.arguments, request.raw])) for request in call.tool_calls]


def _result(left: ToolCall, right: ToolCall, declared: Sequence[ConditionPair]) -> Finding:
    evidence = _results(left, right)
    if left.timed_out != right.timed_out:
        return Finding(Cause.TIMING, "the same command timed out in one", evidence)
    if (left.retries or 0) != (right.retries or 0):
        return Finding(Cause.TIMING, "the same command was retried a different number of times", evidence)
    if left.has_result != right.has_result:
        return Finding(Cause.UNKNOWN, "the result of the call is recorded in one and not in the other", evidence)
    # nothing that was returned differs, so what does is how the harness passed it on (`seen`)
    if len(evidence) == 1 and same(left.result, right.result):
        why = "the harness showed the model the same result in another form"
        return harness_finding(why, (pair("seen", left.seen, right.seen),), declared)
    conditions = named(declared, ENVIRONMENT_CONDITIONS)
    if conditions:
        why = f"the same call returned something else; {clause(conditions)}"
        return Finding(Cause.DECLARED, why, (*evidence, *condition_rows(conditions)))
    return Finding(Cause.ENVIRONMENT, _volatile(left, right, evidence), evidence)


def _volatile(left: ToolCall, right: ToolCall, evidence: tuple[Evidence, ...]) -> str:
    """Say whether only volatile text differs in two results, and whether the model read it."""
    if word := other_parts(left.result, right.result):
        return f"the tool returned another {word}"
    why = "the same call returned something else"
    explained = only_volatile(left.result, right.result) if len(evidence) == 1 else ""
    if not explained:
        return why
    hidden = left.seen is not None and right.seen is not None and same(left.seen, right.seen)
    read = "the model did not see it" if hidden else "the model read it as it was"
    return f"{why}; only volatile text differs (rule {explained} removes it), and {read}"


def _results(left: ToolCall, right: ToolCall) -> tuple[Evidence, ...]:
    rows = [pair("result", left.result, right.result)]
    if left.exit_code != right.exit_code:
        rows.append(pair("exit code", left.exit_code, right.exit_code))
    if left.error != right.error:
        rows.append(pair("error", left.error, right.error))
    return tuple(rows)
