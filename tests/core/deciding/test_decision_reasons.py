"""Every reason of a decision is said, whoever wrote its document, and what is malformed is passed over."""

from __future__ import annotations

from typing import Any

from harnesslab.core.deciding.decision_reasons import brief, reasons_of, sentences
from harnesslab.core.measuring.attribution import Attribution, DifferenceOrigin


def attribution(origin: DifferenceOrigin, *, flipped: bool) -> Any:
    return Attribution("c", 0, 1, 2, ("solved", "timeout"), origin, flipped, 3, "model", "sampling").to_json()


def test_every_reason_gets_a_sentence() -> None:
    document: dict[str, Any] = {
        "new_solves": ["a"],
        "regressions": ["b"],
        "invalid_infra_tasks": ["c"],
        "baseline_untrusted": ["d"],
        "secondary_rewards": [
            {"name": "steps_used", "baseline_value": 4, "candidate_value": 2, "outcome": "candidate_better"},
            {"name": "tests", "baseline_value": None, "candidate_value": 1.5, "outcome": "odd", "detail": "x"},
        ],
        "p": 0.0312,
        "method": "exact McNemar",
        "attribution": [
            attribution(DifferenceOrigin.HARNESS, flipped=True),
            attribution(DifferenceOrigin.INCIDENTAL, flipped=True),
            attribution(DifferenceOrigin.INCIDENTAL, flipped=False),
            "nonsense",
        ],
        "measurement_faults": ["e"],
        "provisional": True,
        "identity_not_shown": ["model.revision"],
    }
    said = sentences(reasons_of(document))
    assert said[:2] == ["Newly solved: a.", "Regressions: b."]
    assert "Steps used: 4 → 2, better." in said
    assert "Tests: – → 1.5, odd (x)." in said
    assert "Two-sided p = 0.0312 (exact McNemar)." in said
    assert "1 of 2 flips attributable to the change." in said
    assert "Measurement fault: e parted though the change had not acted." in said
    assert said[-2].startswith("Provisional")
    assert said[-1] == "1 condition is not shown equal on both sides, since unknown somewhere: model.revision."


def test_a_document_of_anything_is_read() -> None:
    odd: dict[str, Any] = dict.fromkeys(("new_solves", "secondary_rewards", "p", "attribution", "excluded"), 7)
    found = reasons_of(odd | {"p": True, "trials": True, "new_solves": [1, "a", None]})
    assert (found.new, found.p, found.trials, found.attributable, found.excluded) == (("a",), None, None, None, {})


def test_the_reason_in_short_names_cases_then_the_deciding_reward_then_the_words() -> None:
    lost = reasons_of({"regressions": [f"case-{n}" for n in range(6)], "new_solves": ["x"]})
    assert brief("regressed_baseline_tasks", lost) == "lost case-0, case-1, case-2 and 3 more; gained x"
    reward: Any = {"name": "steps_used", "baseline_value": 4, "candidate_value": 2, "outcome": "candidate_better"}
    assert brief("secondary_reward_improvement", reasons_of({"secondary_rewards": [reward]})) == "steps used 4 → 2"
    assert brief("infra_sensitive_verdict", reasons_of({"invalid_infra_tasks": ["s"]})) == "verdict depends on s"
    assert brief("keep", reasons_of({})) == "kept, as the ledger says"


def test_a_refused_comparison_says_why_first() -> None:
    found = reasons_of({"refused": "measured under other conditions than its baseline: model.name"})
    assert sentences(found) == [
        "Refused as a comparison: measured under other conditions than its baseline: model.name."
    ]
