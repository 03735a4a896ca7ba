"""Token efficiency as exact identities: tokens/solve = tokens/call × calls/step × steps/solve.

Every sum is over the rollouts whose tokens are stated, failed ones included; the others are counted beside it. What
is undefined, such as anything per solve where nothing was solved, is a value with a reason: not 0, not infinity.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from harnesslab.core.measuring.cells import Cell, by_case, solved_cases
from harnesslab.core.measuring.trace_statistics import TraceStatistics
from harnesslab.core.running.rollout import Outcome


class TokenKind(StrEnum):
    """Which tokens are counted."""

    OUTPUT = "output"
    INPUT = "input"
    TOTAL = "total"


class Answers(StrEnum):
    """Which answers are counted."""

    BILLED = "billed"
    """Answers that an engine gave."""
    USED = "used"
    """Answers served from a cache or a record too, as if each had been asked for."""


class Cases(StrEnum):
    """Which cases are counted, where experiments are compared."""

    ALL = "all"
    COMMON = "common"
    """Cases that every experiment measured."""
    SOLVED = "solved"
    """Cases that every experiment solved."""


@dataclass(frozen=True, slots=True)
class View:
    """Which tokens of which answers are counted."""

    kind: TokenKind = TokenKind.OUTPUT
    answers: Answers = Answers.BILLED


@dataclass(frozen=True, slots=True)
class Ratio:
    """A quotient of two counts, or why it is undefined."""

    top: int
    bottom: int
    why: str = ""
    """Empty where it is defined."""

    @property
    def exact(self) -> Fraction | None:
        """The quotient; None where it is undefined."""
        return None if self.why else Fraction(self.top, self.bottom)

    @property
    def value(self) -> float | None:
        """The quotient as a number; None where it is undefined."""
        return None if self.exact is None else float(self.exact)


@dataclass(frozen=True, slots=True)
class Identity:
    """Tokens per solve and its three factors, whose product it is."""

    rollouts: int
    """With stated tokens: what everything here is over."""
    left_out: tuple[int, ...]
    """Ids of rollouts that are not counted yet or state no tokens."""
    solved: int
    steps: int
    calls: int
    tokens: int
    per_solve: Ratio
    per_call: Ratio
    calls_per_step: Ratio
    steps_per_solve: Ratio

    @property
    def factors(self) -> tuple[tuple[str, Ratio], ...]:
        """The factors by name."""
        return (
            ("tokens per call", self.per_call),
            ("calls per step", self.calls_per_step),
            ("steps per solve", self.steps_per_solve),
        )


@dataclass(frozen=True, slots=True)
class Lever:
    """By how much one factor changed from A to B."""

    name: str
    a: Ratio
    b: Ratio
    log: float | None
    """Natural logarithm of B ÷ A; the factors' add up to that of tokens per solve."""
    why: str = ""

    @property
    def change(self) -> float | None:
        """B ÷ A − 1."""
        return None if self.log is None else math.expm1(self.log)


@dataclass(frozen=True, slots=True)
class Levers:
    """What made tokens per solve change."""

    factors: tuple[Lever, ...]
    total: Lever


def tokens_of(statistics: TraceStatistics, view: View) -> int | None:
    """Return the tokens of a rollout; None where it had answers and none states any."""
    parts = {
        "input": (statistics.input, statistics.served_input),
        "output": (statistics.output, statistics.served_output),
    }
    names = ("input", "output") if view.kind is TokenKind.TOTAL else (view.kind.value,)
    total = 0
    for name in names:
        billed, served = parts[name]
        if (billed is None and statistics.calls) or (
            view.answers is Answers.USED and served is None and statistics.served
        ):
            return None
        total += (billed or 0) + ((served or 0) if view.answers is Answers.USED else 0)
    return total


def calls_of(statistics: TraceStatistics, view: View) -> int:
    """Return the answers of a rollout that are counted."""
    return statistics.calls + (statistics.served if view.answers is Answers.USED else 0)


def identity(cells: Iterable[Cell], view: View) -> Identity:
    """Add the rollouts up."""
    solved = steps = calls = tokens = rollouts = served = lump = 0
    left_out: list[int] = []
    for cell in cells:
        spent = None if cell.anatomy is None else tokens_of(cell.anatomy, view)
        if cell.anatomy is None or spent is None:
            left_out.append(cell.rollout)
            continue
        rollouts += 1
        solved += cell.outcome is Outcome.SOLVED
        steps += cell.anatomy.steps
        calls += calls_of(cell.anatomy, view)
        served += cell.anatomy.served
        tokens += spent
        lump += spent > 0 and not calls_of(cell.anatomy, view)
    unpaid = f"all {served:,} answers were served from a cache" if served else "the model was never asked"
    nothing = "" if calls or lump else unpaid if rollouts else "no rollout states its tokens"
    no_solve = nothing or ("" if solved else f"none of {rollouts:,} rollouts was solved")
    # tokens that are known of a whole rollout alone belong to no call or step of it
    no_call = f"{lump:,} of {rollouts:,} rollouts state their tokens as a whole, without calls" if lump else nothing
    return Identity(
        rollouts=rollouts,
        left_out=tuple(left_out),
        solved=solved,
        steps=steps,
        calls=calls,
        tokens=tokens,
        per_solve=Ratio(tokens, solved, no_solve),
        per_call=Ratio(tokens, calls, no_call),
        calls_per_step=Ratio(calls, steps, no_call or ("" if steps else "no step was made")),
        steps_per_solve=Ratio(steps, solved, no_call or no_solve),
    )


def levers(a: Identity, b: Identity) -> Levers:
    """Say by how much each factor moved tokens per solve."""
    factors = zip(a.factors, b.factors, strict=True)
    return Levers(
        tuple(_lever(name, one, other) for (name, one), (_, other) in factors),
        _lever("tokens per solve", a.per_solve, b.per_solve),
    )


def _lever(name: str, a: Ratio, b: Ratio) -> Lever:
    one, other = a.exact, b.exact
    if one is None or other is None:
        sides = [f"{side}: {ratio.why}" for side, ratio in (("A", a), ("B", b)) if ratio.why]
        return Lever(name, a, b, None, "; ".join(sides))
    if not one or not other:
        return Lever(name, a, b, None, f"{'A' if not one else 'B'} is 0, which has no logarithm")
    change = other / one
    return Lever(name, a, b, math.log(change.numerator) - math.log(change.denominator))


def chosen(experiments: Sequence[Sequence[Cell]], which: Cases) -> list[list[Cell]]:
    """Return the cells of the cases that are counted, so that all experiments are over the same ones."""
    if which is Cases.ALL or len(experiments) < 2:
        return [list(cells) for cells in experiments]
    groups = [by_case(cells) for cells in experiments]
    if which is Cases.SOLVED:
        shared = set.intersection(*(solved_cases(cases) for cases in groups))
    else:
        shared = set.intersection(*({case for case, cells in cases.items() if _measured(cells)} for cases in groups))
    return [[cell for cell in cells if cell.case in shared] for cells in experiments]


def _measured(cells: Sequence[Cell]) -> bool:
    return any(cell.is_sample for cell in cells)
