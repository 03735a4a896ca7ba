"""What became of an experiment, in words: kinds, decisions and the reasons that sources and criteria give."""

from __future__ import annotations

REASONS = {
    "strict_improvement_without_regression": "solves more cases and loses none",
    "secondary_reward_improvement": "solves the same cases, and better by a secondary reward",
    "no_net_improvement": "no gain: neither more cases nor a secondary reward decides for it",
    "regressed_baseline_tasks": "loses cases that the baseline solves",
    "infra_sensitive_verdict": "cases that can't be trusted could turn the decision",
    "crashed_everywhere": "crashed in every trial, by its own doing",
    "not_measured": "not every case of it could be measured",
    "significant_improvement": "better than its baseline by the paired test at 5 %",
    "no_significant_improvement": "not shown to be better by the paired test at 5 %",
    "keep": "kept, as the ledger says",
    "discard": "discarded, as the ledger says",
    "revert": "taken back, as the ledger says",
    "kill": "given up, as the ledger says",
    "crash": "crashed, as the ledger says",
    "fail": "its results were wrong, as the ledger says",
    "pass": "its results were right; whether it was kept is not said",
    "blocked": "blocked, as the ledger says",
    "deferred": "deferred, as the ledger says",
}
"""By the reason's name; any other is written as its words."""
DECISIONS = {
    "promoted": "Promoted",
    "rejected": "Rejected",
    "invalid_infra": "Not decided, since infrastructure failed",
}


def reason_words(reason: str | None) -> str:
    """Return a reason in words; empty for none."""
    return REASONS.get(reason, reason.replace("_", " ")) if reason else ""


def decision_sentence(
    kind: str | None,
    decision: str | None,
    reason: str | None,
    solved: int | None,
    total: int | None,
    *,
    cancelled: bool = False,
) -> str:
    """Say what an experiment came to: its decision with its reason, or what it was, and how many cases it solved."""
    said = DECISIONS.get(decision or "", "")
    if not said:
        said = {"baseline": "A baseline", "candidate": "A candidate without a decision", "eval": "An evaluation"}.get(
            kind or "", "An experiment without a decision"
        )
    if cancelled:
        said = f"{said}, cancelled before its end"
    why = f": {reason_words(reason)}" if reason else ""
    count = f"; {solved} of {total} cases solved" if solved is not None and total is not None else ""
    return f"{said}{why}{count}."
