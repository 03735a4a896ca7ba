"""Decisions: sets of cases first, secondary rewards in order, and nothing that infrastructure decided."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesslab.core.deciding.promotion import (
    CRITERIA,
    Criterion,
    Paired,
    StrictPareto,
    StrictParetoBothSides,
    criterion_words,
    judge,
)
from harnesslab.core.deciding.secondary import GENERIC, FavouredSide
from harnesslab.core.errors import Conflict
from harnesslab.core.measuring.cells import Cell, Cells
from harnesslab.core.measuring.experiments import Verdict
from harnesslab.core.measuring.trace_statistics import TraceStatistics
from harnesslab.core.running.rollout import CrashOrigin, Outcome

WORDS = {
    "s": Outcome.SOLVED,
    "f": Outcome.FAILED_VERIFICATION,
    "k": Outcome.STEP_CAP,
    "c": Outcome.CRASH,
    "i": Outcome.INFRA_ERROR,
    "v": Outcome.VERIFY_TIMEOUT,
}


def side(letters: str, anatomy: TraceStatistics | None = None) -> Cells:
    """One letter a case, named a, b, c …"""
    return {
        chr(97 + place): [Cell(chr(97 + place), 0, WORDS[letter], 0, anatomy=anatomy)]
        for place, letter in enumerate(letters)
    }


def decided(baseline: str, candidate: str) -> tuple[str, str]:
    found = StrictPareto().decide(side(baseline), side(candidate))
    return found.outcome.value, found.reason


@pytest.mark.parametrize(
    ("baseline", "candidate", "outcome", "reason"),
    [
        ("ff", "sf", "promoted", "strict_improvement_without_regression"),
        ("sf", "fs", "rejected", "regressed_baseline_tasks"),
        ("sff", "fss", "rejected", "regressed_baseline_tasks"),
        ("sf", "sf", "rejected", "no_net_improvement"),
        ("sf", "si", "invalid_infra", "infra_sensitive_verdict"),
        ("sf", "ci", "invalid_infra", "infra_sensitive_verdict"),
        ("ssf", "fsv", "rejected", "regressed_baseline_tasks"),
        ("fff", "sfv", "promoted", "strict_improvement_without_regression"),
        ("fs", "sc", "invalid_infra", "infra_sensitive_verdict"),
    ],
)
def test_strict_pareto(baseline: str, candidate: str, outcome: str, reason: str) -> None:
    assert decided(baseline, candidate) == (outcome, reason)


def test_a_decision_names_all_its_cases() -> None:
    found = StrictPareto().decide(side("ssffv"), side("fssfi"))
    assert found.new_solves == ("c",)
    assert found.regressions == ("a",)
    assert found.invalid_infra_tasks == ("e",)
    assert found.baseline_untrusted == ("e",)
    assert found.candidate_solved == ("b", "c")


def test_the_first_decisive_secondary_reward_breaks_a_tie() -> None:
    before = side("sf", TraceStatistics(actions=4, first_attempts=4, first_valid=4))
    after = side("sf", TraceStatistics(actions=3, first_attempts=3, first_valid=3))
    found = StrictPareto(GENERIC).decide(before, after)
    assert (found.outcome, found.reason) == (Verdict.PROMOTED, "secondary_reward_improvement")
    assert [(each.name, each.outcome) for each in found.secondary_rewards] == [
        ("invalid_first_attempts", FavouredSide.TIED),
        ("steps_used", FavouredSide.CANDIDATE),
    ]


def test_fewer_invalid_first_attempts_win_though_more_attempts_were_made() -> None:
    before = side("s", TraceStatistics(actions=2, first_attempts=50, first_valid=49))
    after = side("s", TraceStatistics(actions=9, first_attempts=2, first_valid=2))
    found = StrictPareto().decide(before, after)
    assert found.outcome is Verdict.PROMOTED
    (reward,) = found.secondary_rewards
    assert (reward.baseline_value, reward.candidate_value) == (1, 0)
    assert reward.detail == "98.00 % of 50 valid → 100.00 % of 2 valid"


def test_a_worse_secondary_reward_ends_the_search() -> None:
    before = side("s", TraceStatistics(actions=9, first_attempts=2, first_valid=2))
    after = side("s", TraceStatistics(actions=2, first_attempts=2, first_valid=1))
    found = StrictPareto().decide(before, after)
    assert found.outcome is Verdict.REJECTED
    assert [each.outcome for each in found.secondary_rewards] == [FavouredSide.BASELINE]


def test_a_secondary_reward_that_nobody_can_read_passes_on() -> None:
    before = side("s", TraceStatistics(actions=3, tests=4, tests_passed=2))
    after = side("s", TraceStatistics(actions=3, tests=4, tests_passed=4))
    found = StrictPareto().decide(before, after)
    assert [each.outcome for each in found.secondary_rewards] == [
        FavouredSide.UNAVAILABLE,
        FavouredSide.TIED,
        FavouredSide.CANDIDATE,
    ]
    assert found.outcome is Verdict.PROMOTED


def test_only_the_variant_brackets_the_baselines_untrusted_cases() -> None:
    before, after = side("sv"), side("ss")
    assert StrictPareto().decide(before, after).outcome is Verdict.PROMOTED
    found = StrictParetoBothSides().decide(before, after)
    assert (found.outcome, found.criterion) == (Verdict.INVALID_INFRA, "strict_pareto_both_sides@2")
    assert found.baseline_solved == ("a",)


@given(st.text("sfkciv", min_size=1, max_size=7), st.data())
def test_no_way_of_counting_untrusted_cases_overturns_a_verdict(baseline: str, data: st.DataObject) -> None:
    candidate = data.draw(st.text("sfkciv", min_size=len(baseline), max_size=len(baseline)))
    found = StrictPareto().decide(side(baseline), side(candidate))
    if found.outcome is Verdict.INVALID_INFRA:
        return
    worst = StrictPareto().decide(side(baseline), side(candidate.translate(str.maketrans("civ", "fff"))))
    best = StrictPareto().decide(side(baseline), side(candidate.translate(str.maketrans("civ", "sss"))))
    assert worst.outcome == best.outcome == found.outcome


def test_a_case_with_repeats_is_solved_at_every_trial() -> None:
    before = {"a": [Cell("a", 0, Outcome.SOLVED, 0), Cell("a", 1, Outcome.FAILED_VERIFICATION, 0)]}
    after = {"a": [Cell("a", 0, Outcome.SOLVED, 0), Cell("a", 1, Outcome.SOLVED, 0)]}
    assert StrictPareto().decide(before, after).new_solves == ("a",)


def test_the_paired_criterion_needs_evidence() -> None:
    assert Paired().decide(side("ffff"), side("ssff")).outcome is Verdict.REJECTED
    found = Paired().decide(side("ffffff"), side("ssssss"))
    assert (found.outcome, found.p, found.method) == (Verdict.PROMOTED, 2 / 2**6, "exact McNemar")


def test_the_baseline_is_restricted_to_the_candidates_cases() -> None:
    assert judge(CRITERIA["strict_pareto"], side("fss"), side("s")).outcome is Verdict.PROMOTED


def test_a_case_that_the_baseline_never_measured_is_refused() -> None:
    with pytest.raises(Conflict, match="never measured b"):
        judge(CRITERIA["strict_pareto"], side("f"), side("fs"))


def crashed(origin: CrashOrigin, *cases: str) -> dict[str, list[Cell]]:
    return {case: [Cell(case, 0, Outcome.CRASH, 0, crash_origin=origin)] for case in cases}


@pytest.mark.parametrize("origin", [CrashOrigin.HARNESS, CrashOrigin.WORKSPACE])
@pytest.mark.parametrize("criterion", [StrictPareto(), StrictParetoBothSides(), Paired()])
def test_a_candidate_that_crashes_everywhere_by_its_own_doing_is_rejected_for_that(
    criterion: Criterion, origin: CrashOrigin
) -> None:
    found = criterion.decide(side("ss"), crashed(origin, "a", "b"))
    assert (found.outcome, found.reason, found.invalid_infra_tasks) == (Verdict.REJECTED, "crashed_everywhere", ())


def test_a_crash_of_the_environment_still_decides_nothing() -> None:
    found = StrictPareto().decide(side("ss"), {**side("s"), **crashed(CrashOrigin.ENVIRONMENT, "b")})
    assert found.invalid_infra_tasks == ("b",)
    assert found.outcome is not Verdict.PROMOTED


def test_the_first_rule_decides_as_it_did_whoever_made_the_crash() -> None:
    after = {**side("s"), **crashed(CrashOrigin.HARNESS, "b")}
    assert StrictPareto(rule=1).name == "strict_pareto"
    assert StrictPareto(rule=1).decide(side("ff"), after).invalid_infra_tasks == ("b",)
    assert StrictPareto().decide(side("ff"), after).invalid_infra_tasks == ()


def test_a_criterion_is_named_with_its_rule_where_that_is_not_the_current_one() -> None:
    assert criterion_words("strict_pareto@2") == "strict pareto"
    assert criterion_words("strict_pareto") == "strict pareto, first rule: no crash counts"
    assert criterion_words("my_own") == "my own"
