"""What the efficiency page says in words: the sentence, the formula, the caveat."""

from __future__ import annotations

from collections.abc import Sequence

from harnesslab.core.efficiency.factors import Answers, Cases, Lever, Levers, Ratio, TokenKind, View
from harnesslab.queries.experiments.sums import ExperimentSums

TELLING = 0.005
"""Smaller changes of a factor are not named."""
MANIFOLD = 10
MORE = {
    "tokens per call": ("longer calls", "shorter calls"),
    "calls per step": ("more calls per step", "fewer calls per step"),
    "steps per solve": ("more steps per solve", "fewer steps per solve"),
}
PLAIN = {
    TokenKind.OUTPUT: "output tokens",
    TokenKind.INPUT: "input tokens",
    TokenKind.TOTAL: "tokens (input and output)",
}


def tokens_word(view: View) -> str:
    """Name the tokens that are counted."""
    return PLAIN[view.kind] if view.answers is Answers.BILLED else f"{PLAIN[view.kind]} (served answers included)"


def formula(view: View) -> str:
    """Return the identity with its token kind and what it is over."""
    which = "answers that an engine gave" if view.answers is Answers.BILLED else "all answers, served ones included"
    return (
        f"{PLAIN[view.kind]} ÷ solve = {PLAIN[view.kind]} ÷ call × calls ÷ step × steps ÷ solve, "
        f"over {which}, in solved and unsolved rollouts alike"
    )


def headline(sides: Sequence[ExperimentSums], moved: Sequence[Levers], view: View) -> str:
    """Say the result in one sentence."""
    if len(sides) == 1:
        return _alone(sides[0], view)
    if len(sides) == 2:
        return _pair(sides, moved[0], view)
    return _many(sides, view)


def served(sides: Sequence[ExperimentSums], view: View) -> str:
    """Warn where most of what a harness needed was not billed; empty where every answer was."""
    told = [
        f"{side.split.served:,} of {side.split.served + side.split.calls:,} answers of {side.letter}"
        for side in sides
        if side.split.served
    ]
    if not told or view.answers is Answers.USED:
        return ""
    return (
        f"Served, from a cache, a record or another rollout, and not billed: {', '.join(told)}. "
        "What follows is what was paid, which says little about how many tokens the harness needs."
    )


def percent(change: float) -> str:
    """Write a change as a percentage with its sign, a tenfold one as a factor."""
    if change >= MANIFOLD - 1:
        return f"×{change + 1:,.0f}"
    size = abs(change) * 100
    digits = f"{size:.0f}" if size >= 1 else f"{size:.1f}"
    return f"{'−' if change < 0 else '+'}{digits} %"


def figure(ratio: Ratio) -> str:
    """Write a quotient."""
    value = ratio.value
    if value is None:
        return "undefined"
    return f"{value:,.0f}" if value >= 100 else f"{value:,.3g}"


def _alone(side: ExperimentSums, view: View) -> str:
    found, share = side.identity, side.spending.useful
    if found.per_solve.why:
        return f"{tokens_word(view)[:1].upper()}{tokens_word(view)[1:]} per solve are undefined: {found.per_solve.why}."
    useful = f"{share.value:.0%} of them in rollouts that solved" if share.value is not None else share.why
    return (
        f"{figure(found.per_solve)} {tokens_word(view)} per solve in {found.solved:,} of {found.rollouts:,} "
        f"rollouts, {useful.replace('%', ' %')}."
    )


def _pair(sides: Sequence[ExperimentSums], moved: Levers, view: View) -> str:
    change = moved.total.change
    if change is None:
        return f"{_undefined(moved, view)}."
    reasons = _reasons(moved.factors)
    used = "was billed" if view.answers is Answers.BILLED and any(side.split.served for side in sides) else "used"
    if abs(change) < TELLING:
        return f"B {used} as many {tokens_word(view)} per solve as A{': ' + reasons if reasons else ''}."
    if change >= MANIFOLD - 1:
        return f"B {used} {change + 1:,.0f} times as many {tokens_word(view)} per solve as A: {reasons}."
    word = "fewer" if change < 0 else "more"
    size = percent(change).lstrip("−+")
    return f"B {used} {size} {word} {tokens_word(view)} per solve than A{': ' + reasons if reasons else ''}."


def _undefined(moved: Levers, view: View) -> str:
    return f"A and B can't be compared by {tokens_word(view)} per solve: {moved.total.why}"


def _reasons(factors: Sequence[Lever]) -> str:
    """Name the factors that moved, the strongest first."""
    told = [item for item in factors if item.change is not None and abs(item.change) >= TELLING]
    told.sort(key=lambda item: -abs(item.log or 0))
    return ", ".join(f"{MORE[item.name][(item.change or 0) < 0]} ({percent(item.change or 0)})" for item in told)


def _many(sides: Sequence[ExperimentSums], view: View) -> str:
    known = [side for side in sides if side.identity.per_solve.value is not None]
    if not known:
        return f"None of {len(sides)} experiments has {tokens_word(view)} per solve: {sides[0].identity.per_solve.why}."
    best = min(known, key=lambda side: side.identity.per_solve.value or 0)
    worst = max(known, key=lambda side: side.identity.per_solve.value or 0)
    rest = len(sides) - len(known)
    undefined = f" In {rest} of {len(sides)} they are undefined." if rest else ""
    if best is worst:
        return f"{best.letter} alone has {tokens_word(view)} per solve: {figure(best.identity.per_solve)}.{undefined}"
    return (
        f"From {figure(best.identity.per_solve)} ({best.letter}) to {figure(worst.identity.per_solve)} "
        f"({worst.letter}) {tokens_word(view)} per solve.{undefined}"
    )


def caveat(sides: Sequence[ExperimentSums], which: Cases) -> str:
    """Say what the numbers can't show."""
    if len(sides) == 1:
        return (
            "Tokens per solve hold the spending of unsolved rollouts too: they fall when more is solved and when "
            "failing gets cheaper, not only when the same work takes fewer tokens."
        )
    if which is Cases.ALL:
        return (
            "Composition effect: the identity is exact, but both sides mix solved and failed rollouts of their own "
            "cases, so that it doesn't show whether the same case got cheaper. Choose the same cases to see that."
        )
    cases = sides[0].cases
    over = f"{cases:,} case{'' if cases == 1 else 's'}"
    if which is Cases.COMMON:
        return (
            f"Over the {over} measured in every experiment. A case that fails in one and is solved in the other still "
            "weighs in: choose the cases solved in all of them to compare solves alone."
        )
    return (
        f"Over the {over} solved in every experiment, which takes the composition effect out. They are chosen by their "
        "outcome and are the easier ones: what they show need not hold for the others."
    )
