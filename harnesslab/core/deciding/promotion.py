"""Criteria: whether a candidate is promoted over its baseline, with every reason.

`StrictPareto` decides as harness-training does (github.com/workofart/harness-training, `StrictPareto`): solved cases
are compared as sets, so that each verdict can be read case by case, where a mean would hide a regression. A criterion
of one's own is registered under the entry point group `harnesslab.criteria`; it is a `Criterion`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import msgspec

from harnesslab.core.canonical import JSON
from harnesslab.core.deciding.secondary import ALL, FavouredSide, Metric, Secondary
from harnesslab.core.errors import Conflict
from harnesslab.core.measuring.cells import Cells, all_crashed, by_rule, solved_cases, untrusted_cases
from harnesslab.core.measuring.experiments import Verdict
from harnesslab.core.measuring.paired import paired_test
from harnesslab.core.running.rollout import RATE_RULE

REGRESSED = "regressed_baseline_tasks"
IMPROVED = "strict_improvement_without_regression"
SECONDARY = "secondary_reward_improvement"
NO_GAIN = "no_net_improvement"
SENSITIVE = "infra_sensitive_verdict"
SIGNIFICANT, NOT_SIGNIFICANT = "significant_improvement", "no_significant_improvement"
CRASHED = "crashed_everywhere"
ALPHA = 0.05


class Decision(msgspec.Struct, frozen=True, omit_defaults=True):
    """A verdict with every reason; the names are harness-training's, so that imported decisions read the same."""

    outcome: Verdict
    reason: str
    criterion: str
    candidate_solved: tuple[str, ...] = ()
    baseline_solved: tuple[str, ...] = ()
    new_solves: tuple[str, ...] = ()
    regressions: tuple[str, ...] = ()
    invalid_infra_tasks: tuple[str, ...] = ()
    """Cases of the candidate whose verdict can't be trusted."""
    baseline_untrusted: tuple[str, ...] = ()
    """Cases of the baseline whose verdict can't be trusted."""
    secondary_rewards: tuple[Secondary, ...] = ()
    p: float | None = None
    """Two-sided, where the criterion tests."""
    method: str = ""

    def to_json(self) -> dict[str, JSON]:
        """Return the decision as JSON."""
        built: dict[str, JSON] = msgspec.to_builtins(self)
        return built


class Criterion(Protocol):
    """Judges a candidate against its baseline, over the candidate's cases."""

    name: str

    def decide(self, baseline: Cells, candidate: Cells) -> Decision:
        """Return the decision; the baseline is restricted to the candidate's cases already."""


def judge(criterion: Criterion, baseline: Cells, candidate: Cells) -> Decision:
    """Decide over the candidate's panel; raises `Conflict` where the baseline did not measure all of it."""
    if missing := sorted(candidate.keys() - baseline.keys()):
        raise Conflict(f"the baseline never measured {', '.join(missing[:5])}", where="panel")
    return criterion.decide({case: baseline[case] for case in candidate}, candidate)


@dataclass(frozen=True, slots=True)
class _View:
    """One way of counting the untrusted cases."""

    baseline: frozenset[str]
    candidate: frozenset[str]
    set_aside: frozenset[str] = frozenset()
    """Cases that count as no regression."""
    secondary: tuple[Secondary, ...] = ()

    @property
    def regressions(self) -> frozenset[str]:
        return self.baseline - self.candidate - self.set_aside

    @property
    def gain(self) -> int:
        return len(self.candidate) - len(self.baseline)

    @property
    def reason(self) -> str:
        if self.regressions:
            return REGRESSED
        if self.gain > 0:
            return IMPROVED
        return SECONDARY if self.breaks_tie else NO_GAIN

    @property
    def breaks_tie(self) -> bool:
        return any(each.outcome is FavouredSide.CANDIDATE for each in self.secondary)

    @property
    def promotes(self) -> bool:
        return not self.regressions and (self.gain > 0 or (self.gain == 0 and self.breaks_tie))


class _Ruled:
    """A criterion under a rule of what is a sample; its name says which, but for the first."""

    title = ""

    def __init__(self, rule: int = RATE_RULE) -> None:
        self.rule = rule
        self.name = self.title if rule == 1 else f"{self.title}@{rule}"

    def _reason(self, reason: str, verdict: Verdict, candidate: Cells) -> str:
        return CRASHED if verdict is Verdict.REJECTED and all_crashed(candidate) else reason


class StrictPareto(_Ruled):
    """Any regression rejects; an exact tie falls to the secondary rewards in order, of which the first decisive wins.

    Where counting the candidate's untrusted cases as all failed or as all solved gives different verdicts, it is
    `invalid_infra`.
    """

    title = "strict_pareto"

    def __init__(self, secondary: Iterable[Metric] = ALL, *, rule: int = RATE_RULE) -> None:
        super().__init__(rule)
        self._secondary = tuple(secondary)

    def decide(self, baseline: Cells, candidate: Cells) -> Decision:
        """Return the decision."""
        baseline, candidate = by_rule(baseline, self.rule), by_rule(candidate, self.rule)
        before, after = frozenset(solved_cases(baseline)), frozenset(solved_cases(candidate))
        untrusted = frozenset(untrusted_cases(candidate))
        extremes = self._extremes(before, after, baseline, untrusted)
        promotes = {self._view(baseline, candidate, *sides).promotes for sides in extremes}
        if len(promotes) > 1:
            worst = self._view(baseline, candidate, before, after)
            return self._decision(baseline, worst, untrusted, Verdict.INVALID_INFRA, SENSITIVE)
        shown = self._view(baseline, candidate, before, after, untrusted)
        verdict = Verdict.PROMOTED if shown.promotes else Verdict.REJECTED
        reason = self._reason(shown.reason, verdict, candidate)
        return self._decision(baseline, shown, untrusted, verdict, reason)

    def _extremes(
        self, before: frozenset[str], after: frozenset[str], baseline: Cells, untrusted: frozenset[str]
    ) -> list[tuple[frozenset[str], frozenset[str]]]:
        """Return the solved sets at the worst and the best for the candidate."""
        return [(before, after), (before, after | untrusted)] if untrusted else [(before, after)]

    def _view(
        self,
        baseline: Cells,
        candidate: Cells,
        before: frozenset[str],
        after: frozenset[str],
        set_aside: frozenset[str] = frozenset(),
    ) -> _View:
        view = _View(before, after, set_aside)
        if view.regressions or view.gain:
            return view
        return _View(before, after, set_aside, _compared(self._secondary, baseline, candidate))

    def _decision(
        self, baseline: Cells, view: _View, untrusted: frozenset[str], verdict: Verdict, reason: str
    ) -> Decision:
        lost = view.regressions - untrusted if verdict is Verdict.INVALID_INFRA else view.regressions
        return Decision(
            outcome=verdict,
            reason=reason,
            criterion=self.name,
            candidate_solved=tuple(sorted(view.candidate)),
            baseline_solved=tuple(sorted(view.baseline)),
            new_solves=tuple(sorted(view.candidate - view.baseline)),
            regressions=tuple(sorted(lost)),
            invalid_infra_tasks=tuple(sorted(untrusted)),
            baseline_untrusted=tuple(sorted(untrusted_cases(baseline))),
            secondary_rewards=view.secondary,
        )


class StrictParetoBothSides(StrictPareto):
    """`StrictPareto` that brackets the baseline's untrusted cases too: a baseline that failed for the sake of
    infrastructure makes no candidate look better."""

    title = "strict_pareto_both_sides"

    def _extremes(
        self, before: frozenset[str], after: frozenset[str], baseline: Cells, untrusted: frozenset[str]
    ) -> list[tuple[frozenset[str], frozenset[str]]]:
        doubtful = frozenset(untrusted_cases(baseline))
        sides = [(before | doubtful, after), (before, after | untrusted)]
        return sides if untrusted or doubtful else [(before, after)]


class Paired(_Ruled):
    """Promotes where a paired test over cases says better at 5 %: exact McNemar at one trial a case, else the
    sign-flip test. Untrusted trials are no samples; they are named."""

    title = "paired_test"

    def decide(self, baseline: Cells, candidate: Cells) -> Decision:
        """Return the decision."""
        baseline, candidate = by_rule(baseline, self.rule), by_rule(candidate, self.rule)
        test = paired_test(baseline, candidate)
        better = test.p <= ALPHA and test.difference > 0
        before, after = solved_cases(baseline), solved_cases(candidate)
        verdict = Verdict.PROMOTED if better else Verdict.REJECTED
        return Decision(
            outcome=verdict,
            reason=self._reason(SIGNIFICANT if better else NOT_SIGNIFICANT, verdict, candidate),
            criterion=self.name,
            candidate_solved=tuple(sorted(after)),
            baseline_solved=tuple(sorted(before)),
            new_solves=tuple(sorted(after - before)),
            regressions=tuple(sorted(before - after)),
            invalid_infra_tasks=tuple(sorted(untrusted_cases(candidate))),
            baseline_untrusted=tuple(sorted(untrusted_cases(baseline))),
            p=test.p,
            method=test.method,
        )


def _compared(metrics: Iterable[Metric], baseline: Cells, candidate: Cells) -> tuple[Secondary, ...]:
    """Compare in order until one favours a side; a tie, or a value that a side lacks, passes to the next."""
    found: list[Secondary] = []
    for metric in metrics:
        found.append(metric.compare(baseline, candidate))
        if found[-1].outcome in (FavouredSide.CANDIDATE, FavouredSide.BASELINE):
            break
    return tuple(found)


_EVERY: tuple[Criterion, ...] = (
    StrictPareto(),
    StrictParetoBothSides(),
    Paired(),
    StrictPareto(rule=1),
    StrictParetoBothSides(rule=1),
    Paired(rule=1),
)
CRITERIA: Mapping[str, Criterion] = {each.name: each for each in _EVERY}
"""The criteria of the lab, by name; `strict_pareto`, of the first rule, decides as harness-training does."""
DEFAULT = StrictPareto().name


def criterion_words(name: str) -> str:
    """Write a criterion's name for people, with what its rule makes of crashes where it is not the current one."""
    said = name.partition("@")[0].replace("_", " ")
    first = name in CRITERIA and name != f"{name.partition('@')[0]}@{RATE_RULE}"
    return f"{said}, first rule: no crash counts" if first else said
