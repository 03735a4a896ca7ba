"""Why two events of a boundary other than model and tool differ, or why one trace went on with something else."""

from __future__ import annotations

from collections.abc import Sequence

from harnesslab.core.canonical import JSON
from harnesslab.core.comparing.evidence import Cause, Evidence, Finding, harness_finding, only_volatile, pair, same
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
    UserTurn,
    Verification,
    boundary,
)

CUT_SHORT = frozenset({"timeout", "verify_timeout", "infra_error", "interrupted", "crash"})
"""Outcomes of rollouts that something from outside ended."""
_READS = frozenset({"read", "get", "load", "search", "list", "recall"})


def boundary_finding(left: AnyEvent, right: AnyEvent, declared: Sequence[ConditionPair]) -> Finding:
    """Explain two events that differ."""
    match left, right:
        case (RolloutEnded(), RolloutEnded()):
            return _ended(left, right, declared)
        case (RolloutEnded(), _) | (_, RolloutEnded()):
            return _one_ended(left, right)
        case (Verification(), Verification()):
            return _verdicts(left, right)
        case (HarnessAction(), HarnessAction()):
            return _actions(left, right, declared)
        case (UserTurn(), _) | (_, UserTurn()):
            who = "A and not in B" if isinstance(left, UserTurn) else "B and not in A"
            return Finding(Cause.USER, f"the user spoke in {who}")
        case (HarnessAction(), _) | (_, HarnessAction()):
            which, action = ("A", left) if isinstance(left, HarnessAction) else ("B", right)
            name = _name(action) if isinstance(action, HarnessAction) else ""
            return harness_finding(f"the harness did “{name}” in {which} and not in the other", (), declared)
    if type(left) is type(right):
        return _same_kind(left, right, declared)
    return harness_finding(f"A went on with {_next(left)} and B with {_next(right)}", (), declared)


def _next(event: AnyEvent) -> str:
    return "its verdict" if isinstance(event, Verification) else boundary(event)


def _ended(left: RolloutEnded, right: RolloutEnded, declared: Sequence[ConditionPair]) -> Finding:
    ended = (pair("outcome", left.outcome, right.outcome),)
    if left.outcome == right.outcome:
        why = "everything before is equal, yet the workspaces differ at the end"
        return harness_finding(why, (pair("workspace", left.diff, right.diff),), declared)
    if {left.outcome, right.outcome} & CUT_SHORT:
        return Finding(Cause.INFRA, "one was cut short", ended)
    return Finding(Cause.UNKNOWN, "everything before is equal, yet they ended differently", ended)


def _one_ended(left: AnyEvent, right: AnyEvent) -> Finding:
    which, ended = ("A", left) if isinstance(left, RolloutEnded) else ("B", right)
    if isinstance(ended, RolloutEnded) and ended.outcome in CUT_SHORT:
        outcome = ended.outcome.replace("_", " ")
        return Finding(Cause.INFRA, f"{which} was cut short here ({outcome})", boundary="harness")
    if isinstance(left, Verification) or isinstance(right, Verification):
        return Finding(Cause.UNKNOWN, f"no verdict of {which} is recorded, and one of the other is", boundary="harness")
    return Finding(Cause.HARNESS, f"{which} ended here while the other went on", boundary="harness")


def _verdicts(left: Verification, right: Verification) -> Finding:
    tests_a: JSON = [[test.name, test.passed] for test in left.tests]
    tests_b: JSON = [[test.name, test.passed] for test in right.tests]
    rows = (
        pair("verdict", left.passed, right.passed),
        pair("reward", left.reward, right.reward),
        pair("tests", tests_a, tests_b),
        pair("error", left.error, right.error),
    )
    return Finding(
        Cause.EVALUATOR,
        "the evaluator judged the same actions differently",
        tuple(row for row in rows if row.a != row.b),
    )


def _actions(left: HarnessAction, right: HarnessAction, declared: Sequence[ConditionPair]) -> Finding:
    if _name(left) != _name(right):
        why = f"the harness did “{_name(left)}” in A and “{_name(right)}” in B"
        return harness_finding(why, (pair("detail", left.detail, right.detail),), declared)
    return harness_finding("the harness acted differently", (pair(left.name, left.detail, right.detail),), declared)


def _name(action: HarnessAction) -> str:
    return action.mechanism or action.name


def _same_kind(left: AnyEvent, right: AnyEvent, declared: Sequence[ConditionPair]) -> Finding:
    """Explain two events of one kind: the harness asked for something else, or the same was answered differently."""
    what, asked_a, given_a = _exchange(left)
    _, asked_b, given_b = _exchange(right)
    if not same(asked_a, asked_b):
        found = harness_finding(
            f"the {what} was asked for something else", (pair("asked", asked_a, asked_b),), declared
        )
        return Finding(found.cause, found.why, found.evidence, boundary="harness")
    cause, why = _ANSWERED[type(left)]
    if isinstance(left, MemoryAccess) and left.operation not in _READS:
        why = "something else was kept in memory"
    rows = (pair(what, given_a, given_b), *_errors(left, right))
    explained = only_volatile(given_a, given_b) if len(rows) == 1 else ""
    if explained:
        why = f"{why}; only volatile text differs (rule {explained} removes it)"
    return Finding(cause, why, rows)


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
