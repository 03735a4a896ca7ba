"""Why two traces part: every hypothesis that the record allows, weighed, never a guess.

`diagnose` is given where the first difference is, in causal order, and both trace readers. It returns the boundary, the
strongest cause, a clause that says why, the evidence it rests on, and what else might explain it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from harnesslab.core.comparing.boundary_findings import boundary_hypothesis
from harnesslab.core.comparing.damage import damage_hypothesis
from harnesslab.core.comparing.endings import crash_before_first_call
from harnesslab.core.comparing.evidence import Cause, Evidence, excerpt
from harnesslab.core.comparing.extra_steps import ExtraSteps, extra_steps_hypothesis
from harnesslab.core.comparing.hypotheses import Hypothesis, Strength, ranked
from harnesslab.core.comparing.model_divergence import model_hypotheses
from harnesslab.core.comparing.openings import lone_turn, user_hypothesis
from harnesslab.core.comparing.tool_findings import tool_hypotheses
from harnesslab.core.comparing.whole_pair import pair_hypothesis
from harnesslab.core.conditions.manifest import ConditionPair
from harnesslab.core.contracts.contract import RAW, Contract, Level, Scope
from harnesslab.core.contracts.trace_reader import TraceReader
from harnesslab.core.trace.events import AnyEvent, ModelCall, ToolCall, UserTurn, boundary

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
    hypotheses: tuple[Hypothesis, ...] = ()
    """What may explain it, the strongest first, which is what is said."""
    extra_steps: ExtraSteps | None = None
    """The steps that one side has more, where both go on alike after them."""
    about_pair: str = ""
    """What is said first, since it is of both traces as a whole: two cases, or two recordings of one run."""
    passing: bool = False
    """Whether so little differs that the next difference is worth a word."""


def diagnose(
    a: TraceReader,
    b: TraceReader,
    at_a: int | None,
    at_b: int | None,
    declared: Sequence[ConditionPair],
    contract: Contract = RAW,
    extra: ExtraSteps | None = None,
) -> Divergence:
    """Explain the first difference that a contract finds, at event positions `at_a` and `at_b`.

    `declared` are the conditions known on both sides and unequal, `extra` the steps that one side has more from there.
    """
    left = a.event(at_a) if at_a is not None else None
    right = b.event(at_b) if at_b is not None else None
    hypotheses = _weighed(a, b, at_a, at_b, left, right, declared, contract)
    if extra is not None:
        hypotheses = (extra_steps_hypothesis(extra, hypotheses[0]), *hypotheses)
    whole = pair_hypothesis(a, b)
    local = _of_case(hypotheses[0], whole, a, at_a, left)
    where = local.boundary or _causal_boundary(left, right)
    shown = left or right
    side, position = (a, at_a) if at_a is not None else (b, at_b)
    return Divergence(
        a=at_a,
        b=at_b,
        step=shown.step if shown is not None else 0,
        boundary=where,
        cause=whole.cause if whole is not None else local.cause,
        why=local.why,
        evidence=(*(whole.evidence if whole else ()), *local.evidence),
        tool_call_index=sum(kind == "tool_call" for kind in side.kinds[: position or 0]),
        token_index=local.token_index,
        excerpt=None if extra is not None else _excerpt(local, left, right),
        hypotheses=(replace(whole, boundary=where), *hypotheses) if whole is not None else hypotheses,
        extra_steps=extra,
        about_pair=whole.why if whole else "",
        passing=local.passing,
    )


def _of_case(
    local: Hypothesis, whole: Hypothesis | None, a: TraceReader, at_a: int | None, left: AnyEvent | None
) -> Hypothesis:
    """Return what is said of openings that tell two cases: neither the user's whim nor another template."""
    opening = isinstance(left, UserTurn) and "model_call" not in a.kinds[: at_a or 0]
    if whole is None or whole.cause is not Cause.CASE or not opening:
        return local
    why = "the opening message asks for another thing"
    return replace(local, why=why, boundary="user", strength=Strength.SHOWN)


def _excerpt(local: Hypothesis, left: AnyEvent | None, right: AnyEvent | None) -> tuple[str, str] | None:
    """Return the words from which the two sides part, of whom the clause speaks of."""
    if not isinstance(left, ModelCall | UserTurn | ToolCall) or type(left) is not type(right):
        return None
    rows = [local.quote] if local.quote is not None else local.evidence[:2]
    return excerpt([row for row in rows if row.label not in _NO_EXCERPT])


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


def _weighed(
    a: TraceReader,
    b: TraceReader,
    at_a: int | None,
    at_b: int | None,
    left: AnyEvent | None,
    right: AnyEvent | None,
    declared: Sequence[ConditionPair],
    contract: Contract,
) -> tuple[Hypothesis, ...]:
    """Return the hypotheses about a first difference, the strongest first."""
    crash = crash_before_first_call(a, b) if contract.scope is Scope.ALL else None
    if crash is not None:
        return (crash,)
    found = _of_events(a, b, at_a, at_b, left, right, declared, contract)
    damage = damage_hypothesis(found[0], left, right)
    return ranked((damage, *found)) if damage is not None else found


def _of_events(
    a: TraceReader,
    b: TraceReader,
    at_a: int | None,
    at_b: int | None,
    left: AnyEvent | None,
    right: AnyEvent | None,
    declared: Sequence[ConditionPair],
    contract: Contract,
) -> tuple[Hypothesis, ...]:
    if left is None and right is None:
        return (Hypothesis(Cause.UNKNOWN, "nothing differs", strength=Strength.OPEN),)
    if (silent := _silent(a)) != _silent(b) and contract.scope is Scope.ALL:
        why = f"{'A' if silent else 'B'} records no conversation, only how it ended"
        return (Hypothesis(Cause.UNKNOWN, why, boundary="harness", strength=Strength.OPEN),)
    if left is None or right is None:
        why = _nothing_further("A" if left is None else "B", left or right)
        return (Hypothesis(Cause.UNKNOWN, why, boundary="harness", strength=Strength.OPEN),)
    match left, right:
        case (ModelCall(), ModelCall()):
            covered = contract.scope is Scope.ALL and contract.level is not Level.BEHAVIOUR
            return model_hypotheses(a, b, at_a or 0, at_b or 0, left, right, declared, contract, first=covered)
        case (ToolCall(), ToolCall()):
            return tool_hypotheses(a, b, at_a or 0, at_b or 0, left, right, declared, contract)
        case (UserTurn(), UserTurn()):
            return (user_hypothesis(a, b, at_a or 0, at_b or 0, left, right, declared),)
        case (UserTurn(), _) | (_, UserTurn()):
            return (lone_turn(a, b, at_a or 0, at_b or 0, left, right, declared),)
    return (boundary_hypothesis(left, right, declared),)


def _nothing_further(which: str, other: AnyEvent | None) -> str:
    if isinstance(other, ToolCall):
        return f"{which} makes no further tool call, where the other calls {other.name}"
    return f"{which} has nothing further of what is compared"


def _silent(reader: TraceReader) -> bool:
    """Say whether a trace holds neither a model's nor a user's nor a tool's part of a conversation."""
    return not {"model_call", "user_turn", "tool_call"} & set(reader.kinds)
