"""What is kept of a decision is read back as it was written."""

from __future__ import annotations

import json

from msgspec.structs import replace

from harnesslab.core.deciding.decision_reasons import reasons_of, sentences
from harnesslab.core.deciding.grounds import Grounds, Refusal
from harnesslab.core.deciding.promotion import Decision
from harnesslab.core.deciding.secondary import FavouredSide, Secondary
from harnesslab.core.measuring.attribution import Attribution, DifferenceOrigin
from harnesslab.core.measuring.experiments import Verdict

FLIP = Attribution(
    "b", 0, 1, 2, ("solved", "step_cap"), DifferenceOrigin.MECHANISM, flipped=True, step=3, mechanism="guard"
)
GROUNDS = Grounds(
    excluded={"c": "forked"},
    attribution=(FLIP,),
    measurement_faults=("d",),
    identity_not_shown=("engine.kernels",),
    gate=True,
    provisional=False,
    trials=2,
)
DECISION = Decision(
    outcome=Verdict.REJECTED,
    reason="regressed_baseline_tasks",
    criterion="strict_pareto",
    regressions=("b",),
    new_solves=("a",),
    invalid_infra_tasks=("e",),
    baseline_untrusted=("f",),
    secondary_rewards=(Secondary("steps_used", 3, 3, FavouredSide.TIED),),
    p=0.5,
    method="McNemar",
)


def test_a_decision_and_its_grounds_survive_the_store_in_every_part() -> None:
    reasons = reasons_of(json.loads(json.dumps(GROUNDS.beside(DECISION))))
    assert (reasons.new, reasons.lost) == (DECISION.new_solves, DECISION.regressions)
    assert (reasons.untrusted, reasons.baseline_untrusted) == (("e",), ("f",))
    assert (reasons.criterion, reasons.p, reasons.method) == ("strict_pareto", 0.5, "McNemar")
    assert [(each.name, each.outcome) for each in reasons.secondary] == [("steps_used", "tied")]
    assert reasons.attributions == (FLIP,)
    for name in ("excluded", "gate", "provisional", "trials"):
        assert getattr(reasons, name) == getattr(GROUNDS, name), name
    assert (reasons.faults, reasons.not_shown) == (GROUNDS.measurement_faults, GROUNDS.identity_not_shown)


def test_a_refusal_is_read_as_one() -> None:
    reasons = reasons_of(json.loads(json.dumps(Refusal("other conditions", ("model.name",)).to_json())))
    assert reasons.refused == "other conditions"
    assert reasons.attributable is None


def test_a_p_value_says_how_many_candidates_it_was_chosen_among_in_the_same_sentence() -> None:
    many, alone = (replace(GROUNDS, candidates=count).beside(DECISION) for count in (9, 1))
    (sentence,) = [each for each in sentences(reasons_of(many)) if "p = " in each]
    assert sentence.startswith("Two-sided p = 0.5 (McNemar), of one of 9 candidates tried on this panel, not corrected")
    assert "Two-sided p = 0.5 (McNemar)." in sentences(reasons_of(alone))
