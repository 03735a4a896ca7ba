"""Hypotheses of why two traces part, and the one place that ranks them.

A hypothesis states its cause with what of the record supports it, what contradicts it, and what could not be seen. The
strongest is stated; one that the record contradicts is stated never while another is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from harnesslab.core.comparing.evidence import HARNESS_CONDITIONS, Cause, Evidence, clause, condition_rows, named
from harnesslab.core.conditions.manifest import ConditionPair
from harnesslab.core.contracts import scrub

NO_WORDS = Evidence("", "", "")
"""The quote of a hypothesis that speaks of nobody's words."""


class Strength(IntEnum):
    """How well the record carries a hypothesis, strongest first."""

    RECORDED = 0
    """The record itself says it, or leaves nothing else."""
    SHOWN = 1
    """What differs is recorded on both sides, and so is who made it."""
    DECLARED = 2
    """A condition that can act is recorded as different."""
    SUGGESTED = 3
    """Nothing recorded speaks for anything else."""
    OPEN = 4
    """The record can't tell."""


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One explanation; an empty boundary means the events' own, and a step of None that of the first difference."""

    cause: Cause
    why: str
    """The clause that says it."""
    evidence: tuple[Evidence, ...] = ()
    token_index: int | None = None
    boundary: str = ""
    step: int | None = None
    strength: Strength = Strength.SHOWN
    supports: tuple[str, ...] = ()
    contradicts: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    quote: Evidence | None = None
    """The row whose words the sentence quotes; None for the first of the evidence."""
    lead: str = ""
    """The part of the clause that says how inputs and answers compare, where it begins so."""
    passing: bool = False
    """Whether what differs is so little that the next difference is named as well: white space, a date, a host."""

    def doubted(self, *contradicts: str) -> Hypothesis:
        """Return it with what of the record contradicts it."""
        return replace(self, contradicts=(*self.contradicts, *contradicts))


def ranked(hypotheses: Iterable[Hypothesis]) -> tuple[Hypothesis, ...]:
    """Return hypotheses, the strongest first: those that nothing contradicts, by strength, then as they come."""
    return tuple(sorted(hypotheses, key=lambda each: (bool(each.contradicts), each.strength)))


def harness_hypothesis(why: str, evidence: tuple[Evidence, ...], declared: Sequence[ConditionPair]) -> Hypothesis:
    """Blame the harness, naming what the manifests declare of it, or the rules that remove all that differs."""
    conditions = named(declared, HARNESS_CONDITIONS)
    if conditions:
        rows = (*evidence, *condition_rows(conditions))
        return Hypothesis(Cause.DECLARED, f"{why}; {clause(conditions)}", rows, supports=(clause(conditions),))
    explained = scrub.explaining("\n".join(row.a for row in evidence), "\n".join(row.b for row in evidence))
    if explained:
        why = f"{why}; only volatile text differs (rule {', '.join(explained)} removes it)"
    return Hypothesis(Cause.HARNESS, why, evidence)
