"""Where the tokens went: solved, failed and unscored rollouts, the cases that cost most, and what it cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from harnesslab.core.efficiency.factors import Ratio, View, calls_of, tokens_of
from harnesslab.core.measuring.cells import Cell
from harnesslab.core.running.rollout import CrashOrigin, Outcome, is_sample

MOST = 5
MILLION = 1_000_000


class Score(StrEnum):
    """What tokens were spent on."""

    SOLVED = "solved"
    FAILED = "failed"
    UNSCORED = "unscored"
    """Interrupted, failed by infrastructure, crashed by none of its own doing or without a verdict: no sample."""


@dataclass(frozen=True, slots=True)
class Spent:
    """The tokens of one group of rollouts."""

    rollouts: int = 0
    tokens: int = 0
    calls: int = 0


@dataclass(frozen=True, slots=True)
class Contributor:
    """What one case cost in rollouts that did not solve it."""

    case: str
    rollouts: int
    tokens: int
    share: Ratio
    """Of everything that was not spent on solves."""


@dataclass(frozen=True, slots=True)
class Spending:
    """Where the tokens of an experiment went."""

    groups: Mapping[Score, Spent]
    useful: Ratio
    """Tokens of solved rollouts of all tokens."""
    contributors: tuple[Contributor, ...]
    """The cases with the most tokens in trials that didn't solve; other trials of the same case may have."""
    unsolved: Ratio
    """Tokens of the `contributors` of all tokens that were not spent on solves."""


@dataclass(frozen=True, slots=True)
class Split:
    """Tokens of the billed answers by kind, and of those that were served; None where no rollout states them."""

    uncached: int | None
    cached: int | None
    output: int | None
    """Reasoning included."""
    reasoning: int | None
    calls: int
    served: int
    served_input: int | None
    served_output: int | None
    unstated: int
    """Calls that state no tokens."""


@dataclass(frozen=True, slots=True)
class BilledCost:
    """What the billed answers cost, or why it can't be said."""

    amount: float | None
    why: str = ""


def score(outcome: Outcome, origin: CrashOrigin | None = None) -> Score:
    """Say what a rollout's tokens were spent on."""
    if outcome is Outcome.SOLVED:
        return Score.SOLVED
    return Score.FAILED if is_sample(outcome, origin) else Score.UNSCORED


def spending(cells: Iterable[Cell], view: View) -> Spending:
    """Add up the tokens by what they were spent on; rollouts that state none are left out."""
    groups = dict.fromkeys(Score, Spent())
    wasted: dict[str, Spent] = {}
    for cell in cells:
        spent = None if cell.anatomy is None else tokens_of(cell.anatomy, view)
        if cell.anatomy is None or spent is None:
            continue
        calls, group = calls_of(cell.anatomy, view), score(cell.outcome, cell.crash_origin)
        groups[group] = _plus(groups[group], spent, calls)
        if group is not Score.SOLVED:
            wasted[cell.case] = _plus(wasted.get(cell.case, Spent()), spent, calls)
    total = sum(group.tokens for group in groups.values())
    lost = total - groups[Score.SOLVED].tokens
    worst = sorted(wasted.items(), key=lambda item: (-item[1].tokens, item[0]))[:MOST]
    none_lost = "" if lost else "no token went into a rollout that solved nothing"
    return Spending(
        groups=groups,
        useful=Ratio(groups[Score.SOLVED].tokens, total, "" if total else "no tokens were spent"),
        contributors=tuple(
            Contributor(case, spent.rollouts, spent.tokens, Ratio(spent.tokens, lost, none_lost))
            for case, spent in worst
            if spent.tokens
        ),
        unsolved=Ratio(sum(spent.tokens for _, spent in worst), lost, none_lost),
    )


def _plus(before: Spent, tokens: int, calls: int) -> Spent:
    return Spent(before.rollouts + 1, before.tokens + tokens, before.calls + calls)


def split(cells: Iterable[Cell]) -> Split:
    """Add up the tokens of each kind."""
    found = [cell.anatomy for cell in cells if cell.anatomy is not None]
    given, cached = _sum(item.input for item in found), _sum(item.cached for item in found)
    return Split(
        uncached=None if given is None else max(0, given - (cached or 0)),
        cached=cached,
        output=_sum(item.output for item in found),
        reasoning=_sum(item.reasoning for item in found),
        calls=sum(item.calls for item in found),
        served=sum(item.served for item in found),
        served_input=_sum(item.served_input for item in found),
        served_output=_sum(item.served_output for item in found),
        unstated=sum(item.unstated for item in found),
    )


def _sum(values: Iterable[int | None]) -> int | None:
    stated = [value for value in values if value is not None]
    return sum(stated) if stated else None


def cost(cells: Sequence[Cell], prices: Mapping[str, Mapping[str, float]]) -> BilledCost:
    """Price the billed answers: prices are per million tokens by model; cached input costs as input if not priced."""
    if not prices:
        return BilledCost(None, "the project has no prices")
    total = 0.0
    for cell in cells:
        found = cell.anatomy
        if found is None or not found.calls:
            continue
        price = prices.get(cell.model)
        if price is None or "input" not in price or "output" not in price:
            return BilledCost(None, f"no prices of the model {cell.model or 'that is not named'}")
        if found.input is None or found.output is None or found.unstated:
            return BilledCost(None, "some answers state no tokens")
        cached = min(found.cached or 0, found.input)
        fresh = found.input - cached
        total += fresh * price["input"] + cached * price.get("cached", price["input"]) + found.output * price["output"]
    return BilledCost(total / MILLION)
