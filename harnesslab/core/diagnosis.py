"""Why two traces part: from evidence at the first differing event, never from a guess.

`diagnose` is given where the first raw difference is, in causal order, and both tapes. It returns the boundary,
the cause, a clause that says why, and the evidence it rests on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harnesslab.core import scrub
from harnesslab.core.canonical import canonical_bytes
from harnesslab.core.events import (
    AnyEvent,
    ClockRead,
    HarnessAction,
    MemoryAccess,
    ModelCall,
    NetworkExchange,
    Retrieval,
    RolloutEnded,
    RolloutStarted,
    SubagentCall,
    ToolCall,
    UserTurn,
    Verification,
    boundary,
)
from harnesslab.core.evidence import (
    ENVIRONMENT_CONDITIONS,
    Cause,
    Evidence,
    Finding,
    clause,
    condition_rows,
    harness_finding,
    named,
    pair,
    same,
    text,
)
from harnesslab.core.manifest import ConditionPair
from harnesslab.core.model_divergence import model_finding
from harnesslab.core.tape import Tape


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


def diagnose(a: Tape, b: Tape, at_a: int | None, at_b: int | None, declared: Sequence[ConditionPair]) -> Divergence:
    """Explain the first difference, at event positions `at_a` and `at_b`; `declared` are unequal conditions."""
    left = a.event(at_a) if at_a is not None else None
    right = b.event(at_b) if at_b is not None else None
    finding = _find(a, b, at_a, at_b, left, right, declared)
    shown = left or right
    side, position = (a, at_a) if at_a is not None else (b, at_b)
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
    a: Tape,
    b: Tape,
    at_a: int | None,
    at_b: int | None,
    left: AnyEvent | None,
    right: AnyEvent | None,
    declared: Sequence[ConditionPair],
) -> Finding:
    match left, right:
        case (None, None):
            return Finding(Cause.UNKNOWN, "nothing differs")
        case (None, _) | (_, None):
            which = "A" if left is None else "B"
            return Finding(Cause.UNKNOWN, f"{which} has nothing further of what is compared", boundary="harness")
        case (ModelCall(), ModelCall()):
            return model_finding(a, b, at_a or 0, at_b or 0, left, right, declared)
        case (ToolCall(), ToolCall()) if _asks_otherwise(left, right):
            return _other_call(a, b, at_a or 0, at_b or 0, left, right, declared)
        case (ToolCall(), ToolCall()):
            return _result(left, right, declared)
        case (UserTurn(), UserTurn()):
            who = "simulated user" if left.simulated or right.simulated else "user"
            return Finding(
                Cause.USER, f"the {who} said something different", (pair("user", left.content, right.content),)
            )
    return _other(left, right, declared)


def _other(left: AnyEvent | None, right: AnyEvent | None, declared: Sequence[ConditionPair]) -> Finding:
    match left, right:
        case (RolloutEnded(), RolloutEnded()):
            ended = (pair("outcome", left.outcome, right.outcome),)
            if {left.outcome, right.outcome} & {"timeout", "infra_error", "interrupted", "crash"}:
                return Finding(Cause.INFRA, "one was cut short", ended)
            return Finding(Cause.UNKNOWN, "everything before is equal, yet they ended differently", ended)
        case (RolloutEnded(), _) | (_, RolloutEnded()):
            which = "A" if isinstance(left, RolloutEnded) else "B"
            return Finding(Cause.HARNESS, f"{which} ended here while the other went on", boundary="harness")
        case (Verification(), Verification()):
            evidence = (pair("verdict", left.passed, right.passed), pair("reward", left.reward, right.reward))
            return Finding(Cause.EVALUATOR, "the evaluator judged the same actions differently", evidence)
        case (HarnessAction(), HarnessAction()):
            return harness_finding(
                "the harness acted differently", (pair(left.name, left.detail, right.detail),), declared
            )
        case (UserTurn(), _) | (_, UserTurn()):
            return Finding(Cause.USER, "the user spoke in one and not in the other")
        case (HarnessAction(), _) | (_, HarnessAction()):
            action = left if isinstance(left, HarnessAction) else right
            name = action.mechanism or action.name if isinstance(action, HarnessAction) else ""
            return harness_finding(f"the harness did “{name}” in one and not in the other", (), declared)
        case (SubagentCall(), SubagentCall()):
            return Finding(
                Cause.SUBAGENT, "the sub-agent answered differently", (pair(left.name, left.output, right.output),)
            )
        case (Retrieval(), Retrieval()):
            return Finding(
                Cause.RETRIEVAL,
                "the index returned other documents",
                (pair("documents", left.documents, right.documents),),
            )
        case (MemoryAccess(), MemoryAccess()):
            return Finding(Cause.MEMORY, "the memory held something else", (pair(left.key, left.value, right.value),))
        case (ClockRead(), ClockRead()):
            return Finding(Cause.CLOCK, "the clock read differently", (pair("clock", left.value, right.value),))
        case (NetworkExchange(), NetworkExchange()):
            return Finding(
                Cause.NETWORK, "the service answered differently", (pair(left.target, left.response, right.response),)
            )
    kinds = tuple(
        boundary(event) for event in (left, right) if event is not None and not isinstance(event, RolloutStarted)
    )
    return harness_finding(f"one went on with {kinds[0]} and the other with {kinds[-1]}", (), declared)


def _asks_otherwise(left: ToolCall, right: ToolCall) -> bool:
    return left.name != right.name or not same(left.arguments, right.arguments) or left.raw != right.raw


def _other_call(
    a: Tape, b: Tape, at_a: int, at_b: int, left: ToolCall, right: ToolCall, declared: Sequence[ConditionPair]
) -> Finding:
    """Explain two tool calls that ask for different things, from the model calls that emitted them."""
    asked = (pair("tool", left.name, right.name), pair("arguments", left.arguments, right.arguments))
    if left.step == right.step and (left.emitted != right.emitted or left.completed != right.completed):
        return Finding(Cause.TIMING, "parallel calls were handled in another order", asked)
    from_a, from_b = _emitter(a, at_a), _emitter(b, at_b)
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


def _emitter(tape: Tape, before: int) -> int | None:
    """Return the position of the model call that precedes a tool call."""
    return next((index for index in range(before - 1, -1, -1) if tape.kinds[index] == "model_call"), None)


def _emitted(call: ModelCall) -> list[tuple[str, bytes]]:
    return [(request.name, canonical_bytes([request.arguments, request.raw])) for request in call.tool_calls]


def _result(left: ToolCall, right: ToolCall, declared: Sequence[ConditionPair]) -> Finding:
    if left.timed_out != right.timed_out:
        return Finding(Cause.TIMING, "the same command timed out in one", _results(left, right))
    if (left.retries or 0) != (right.retries or 0):
        return Finding(Cause.TIMING, "the same command was retried a different number of times", _results(left, right))
    conditions = named(declared, ENVIRONMENT_CONDITIONS)
    evidence = _results(left, right)
    if conditions:
        why = f"the same call returned something else; {clause(conditions)}"
        return Finding(Cause.DECLARED, why, (*evidence, *condition_rows(conditions)))
    return Finding(Cause.ENVIRONMENT, _volatile(left, right), evidence)


def _volatile(left: ToolCall, right: ToolCall) -> str:
    """Say whether only volatile tokens differ in two results, and whether the model read them."""
    why = "the same call returned something else"
    explained = scrub.explaining(text(left.result), text(right.result))
    if not explained:
        return why
    hidden = left.seen is not None and right.seen is not None and same(left.seen, right.seen)
    read = "the model did not see them" if hidden else "the model read them as they were"
    return f"{why}, but only volatile text differs (rule {', '.join(explained)} removes it); {read}"


def _results(left: ToolCall, right: ToolCall) -> tuple[Evidence, ...]:
    rows = [pair("result", left.result, right.result)]
    if left.exit_code != right.exit_code:
        rows.append(pair("exit code", left.exit_code, right.exit_code))
    if left.error != right.error:
        rows.append(pair("error", left.error, right.error))
    return tuple(rows)
