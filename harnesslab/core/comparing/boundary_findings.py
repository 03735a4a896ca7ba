"""Why two events of a boundary other than model, tool and end differ, or one trace went on with something else."""

from __future__ import annotations

from collections.abc import Sequence

from harnesslab.core.canonical import JSON
from harnesslab.core.comparing.endings import both_ended, one_ended
from harnesslab.core.comparing.evidence import Cause, Evidence, only_volatile, pair, same
from harnesslab.core.comparing.hypotheses import Hypothesis, Strength, harness_hypothesis
from harnesslab.core.comparing.manner import Kind, manner
from harnesslab.core.comparing.times import same_but_times
from harnesslab.core.conditions.manifest import ConditionPair
from harnesslab.core.trace.events import (
    AnyEvent,
    ClockRead,
    HarnessAction,
    MemoryAccess,
    NetworkExchange,
    Retrieval,
    RolloutEnded,
    SubagentCall,
    Verification,
    boundary,
)

_READS = frozenset({"read", "get", "load", "search", "list", "recall"})


def boundary_hypothesis(left: AnyEvent, right: AnyEvent, declared: Sequence[ConditionPair]) -> Hypothesis:
    """Explain two events that differ."""
    match left, right:
        case (RolloutEnded(), RolloutEnded()):
            return both_ended(left, right, declared)
        case (RolloutEnded(), _) | (_, RolloutEnded()):
            return one_ended(left, right)
        case (Verification(), Verification()):
            return _verdicts(left, right)
        case (HarnessAction(), HarnessAction()):
            return _actions(left, right, declared)
        case (HarnessAction(), _) | (_, HarnessAction()):
            which, action = ("A", left) if isinstance(left, HarnessAction) else ("B", right)
            name = _name(action) if isinstance(action, HarnessAction) else ""
            return harness_hypothesis(f"the harness did “{name}” in {which} and not in the other", (), declared)
    if type(left) is type(right):
        return _same_kind(left, right, declared)
    for which, event, other in (("A", left, right), ("B", right, left)):
        if isinstance(event, Verification):
            why = f"{which} ended here and was judged, while the other went on with {boundary(other)}"
            return harness_hypothesis(why, (), declared)
    return harness_hypothesis(f"A went on with {boundary(left)} and B with {boundary(right)}", (), declared)


def _verdicts(left: Verification, right: Verification) -> Hypothesis:
    tests_a: JSON = [[test.name, test.passed] for test in left.tests]
    tests_b: JSON = [[test.name, test.passed] for test in right.tests]
    rows = (
        pair("verdict", left.passed, right.passed),
        pair("reward", left.reward, right.reward),
        pair("tests", tests_a, tests_b),
        pair("error", left.error, right.error),
    )
    return Hypothesis(
        Cause.EVALUATOR,
        "the evaluator judged the same actions differently",
        tuple(row for row in rows if row.a != row.b),
    )


def _actions(left: HarnessAction, right: HarnessAction, declared: Sequence[ConditionPair]) -> Hypothesis:
    if _name(left) != _name(right):
        why = f"the harness did “{_name(left)}” in A and “{_name(right)}” in B"
        return harness_hypothesis(why, (pair("detail", left.detail, right.detail),), declared)
    row = pair(left.name, left.detail, right.detail)
    if same_but_times(left.detail, right.detail):
        why = f"the harness did “{_name(left)}” in both, at another time"
        return Hypothesis(Cause.CLOCK, why, (row,), strength=Strength.RECORDED)
    little = manner(row.a, row.b)
    if little is not None and little.kinds <= {Kind.DATE, Kind.HOST}:
        cause = Cause.CLOCK if Kind.DATE in little.kinds else Cause.ENVIRONMENT
        why = f"the harness did “{_name(left)}” in both; they differ in {little.words} alone"
        return Hypothesis(cause, why, (row,), strength=Strength.RECORDED)
    return harness_hypothesis(f"the harness did “{_name(left)}” differently", (row,), declared)


def _name(action: HarnessAction) -> str:
    return action.mechanism or action.name


def _same_kind(left: AnyEvent, right: AnyEvent, declared: Sequence[ConditionPair]) -> Hypothesis:
    """Explain two events of one kind: the harness asked for something else, or the same was answered differently."""
    what, asked_a, given_a = _exchange(left)
    _, asked_b, given_b = _exchange(right)
    if not same(asked_a, asked_b):
        found = harness_hypothesis(
            f"the {what} was asked for something else", (pair("asked", asked_a, asked_b),), declared
        )
        return Hypothesis(found.cause, found.why, found.evidence, boundary="harness")
    cause, why = _ANSWERED[type(left)]
    if isinstance(left, MemoryAccess) and left.operation not in _READS:
        why = "something else was kept in memory"
    rows = (pair(what, given_a, given_b), *_errors(left, right))
    explained = only_volatile(given_a, given_b) if len(rows) == 1 else ""
    if explained:
        why = f"{why}; only volatile text differs (rule {explained} removes it)"
    return Hypothesis(cause, why, rows)


def _exchange(event: AnyEvent) -> tuple[str, JSON, JSON]:
    """Return (what was asked, the question, the answer) of an event at a boundary that answers."""
    match event:
        case SubagentCall():
            return "sub-agent", [event.name, event.input], event.output
        case Retrieval():
            return "index", event.query, event.documents
        case MemoryAccess():
            return "memory", [event.operation, event.key], event.value
        case ClockRead():
            return "clock", None, event.value
        case NetworkExchange():
            return "service", [event.target, event.request], event.response
    return "harness", None, None


_ANSWERED: dict[type[AnyEvent], tuple[Cause, str]] = {
    SubagentCall: (Cause.SUBAGENT, "the sub-agent answered differently"),
    Retrieval: (Cause.RETRIEVAL, "the index returned other documents"),
    MemoryAccess: (Cause.MEMORY, "the memory held something else"),
    ClockRead: (Cause.CLOCK, "the clock read differently"),
    NetworkExchange: (Cause.NETWORK, "the service answered differently"),
}


def _errors(left: AnyEvent, right: AnyEvent) -> tuple[Evidence, ...]:
    one, two = getattr(left, "error", None), getattr(right, "error", None)
    return () if one == two else (pair("error", one, two),)
