"""Deciding a measured candidate against its baseline, with every reason and what each flip is due to."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from harnesslab.actions.comparisons import first_divergence
from harnesslab.actions.projects.mirrors import say_again
from harnesslab.actions.rollouts.trace_statistics import count_all
from harnesslab.core.conditions.identity import IdentityDifference, identity_differences, refused
from harnesslab.core.conditions.manifest import Difference
from harnesslab.core.contracts.contract import Contract
from harnesslab.core.deciding.grounds import Grounds, Refusal
from harnesslab.core.deciding.promotion import Decision, judge
from harnesslab.core.errors import Conflict, HarnessLabError, NotComparable
from harnesslab.core.measuring.attribution import Attribution, DifferenceOrigin, measurement_faults, origin_of
from harnesslab.core.measuring.cells import Cell
from harnesslab.core.measuring.certification import CertificateVerdict
from harnesslab.core.measuring.experiments import State, Verdict
from harnesslab.core.running.rollout import Outcome
from harnesslab.queries.engines import is_certified
from harnesslab.queries.experiments.criteria import CriterionBroken, criterion
from harnesslab.queries.experiments.measurements import (
    Measured,
    certificates_of,
    counted_rollouts,
    crashed_by_harness,
    get_measured,
    measured,
    measuring_plan_of,
)
from harnesslab.store.models import Experiment
from harnesslab.store.text import frozen, storable

NOT_MEASURED = "not_measured"
CONTRACT = Contract.parse()
"""Text with every scrub rule: what a flip is compared under."""


def decide(experiment: Experiment, criterion_name: str, changed: Collection[str] | None = None) -> Decision:
    """Judge a candidate, keep the decision and return it.

    `changed` are the mechanisms that the candidate is said to change. Raises `Conflict` where the two are no
    comparison, such as naming the conditions where they were not measured alike; that is kept too.
    """
    row = get_measured(experiment.pk)
    if row.baseline is None:
        raise Conflict("there is no baseline to judge it against", where=row.name)
    if running := next((each.name for each in (row.baseline, row) if each.state == State.RUNNING), ""):
        raise Conflict("it is still being measured", where=running)
    for each in (row.baseline, row):
        count_all(counted_rollouts(each.pk))
    before, after = measured(row.baseline.pk, anatomies=True), measured(row.pk, anatomies=True)
    differences = _identity(before, after)
    fields = refused(differences) + (["trials"] if row.trials != row.baseline.trials else [])
    if fields:
        why = f"measured under other conditions than its baseline: {', '.join(fields)}"
        raise _refused(row, Conflict(why, where=row.name), fields)
    try:
        decision = _decision(criterion_name, before, after)
    except Conflict as error:
        raise _refused(row, error) from None
    found = attributed(before, after, changed)
    document = _grounds(row, found, differences).beside(decision)
    # by the first that judged it: a verdict that the branch may have been moved by isn't written over
    Experiment.objects.filter(pk=row.pk, verdict="").update(
        decision=frozen(document), verdict=decision.outcome, reason=storable(decision.reason, 200)
    )
    say_again(row.pk)
    return decision


def _refused(row: Experiment, error: Conflict, fields: list[str] | None = None) -> Conflict:
    """Keep why the two are no comparison, and return it."""
    document = Refusal(error.what, tuple(fields or ())).to_json()
    Experiment.objects.filter(pk=row.pk, verdict="").update(decision=frozen(document))
    say_again(row.pk)
    return error


def _identity(before: Measured, after: Measured) -> list[IdentityDifference]:
    pairs = (
        (case, before.manifests[case], after.manifests[case]) for case in after.manifests if case in before.manifests
    )
    return identity_differences(pairs)


def _decision(name: str, before: Measured, after: Measured) -> Decision:
    if after.missing:
        cases = tuple(sorted({case for case, _ in after.missing}))
        return Decision(
            outcome=Verdict.INVALID_INFRA,
            reason=NOT_MEASURED,
            criterion=name,
            candidate_solved=tuple(sorted(after.solved)),
            baseline_solved=tuple(sorted(before.solved)),
            invalid_infra_tasks=cases,
        )
    if gone := sorted({case for case, _ in before.missing} & after.cases.keys()):
        raise Conflict(f"the baseline has not measured {', '.join(gone[:5])} at every trial", where="panel")
    chosen = criterion(name)
    try:
        return judge(chosen, before.cases, after.cases)
    except HarnessLabError:
        raise
    except Exception as error:  # of a criterion that another package brings
        raise CriterionBroken(f"{type(error).__name__}: {error}", where=f"criterion {name}") from error


def _grounds(row: Experiment, attributions: list[Attribution], differences: list[IdentityDifference]) -> Grounds:
    plan = measuring_plan_of(row)
    gate = is_certified(plan.engine)
    certificates = certificates_of(row.baseline) if row.baseline is not None else {}
    forked = {
        case: certificate.verdict.value
        for case, certificate in certificates.items()
        if certificate.verdict is not CertificateVerdict.DETERMINISTIC
    }
    not_shown = sorted({each.field.name for each in differences if each.difference is Difference.NOT_SHOWN})
    moved = (each for each in attributions if each.flipped or each.origin is not DifferenceOrigin.SAME)
    return Grounds(
        excluded=forked,
        attribution=tuple(moved),
        measurement_faults=tuple(each.case for each in measurement_faults(attributions)) if gate else (),
        identity_not_shown=tuple(not_shown),
        gate=gate,
        provisional=plan.trials == 1 and not gate,
        trials=plan.trials,
        candidates=_tried(row),
    )


def _tried(row: Experiment) -> int:
    """Count the candidates that were measured on its panel up to this one: of its training, or of its project."""
    candidates = Experiment.objects.filter(
        project=row.project_id, panel=row.panel_id, baseline__isnull=False, pk__lte=row.pk
    )
    return (candidates if row.training_id is None else candidates.filter(training=row.training_id)).count()


def attributed(before: Measured, after: Measured, changed: Collection[str] | None) -> list[Attribution]:
    """Compare every case and trial of a candidate with its baseline; equal paths read no trace."""
    found: list[Attribution] = []
    for case, cells in after.cases.items():
        trials = {cell.trial: cell for cell in before.cases.get(case, ())}
        found += [_attribution(trials[cell.trial], cell, changed) for cell in cells if cell.trial in trials]
    return found


def _attribution(a: Cell, b: Cell, changed: Collection[str] | None) -> Attribution:
    flipped = (a.outcome is Outcome.SOLVED) != (b.outcome is Outcome.SOLVED)
    shown = (a.outcome.value, b.outcome.value)
    found = Attribution(b.case, b.trial, a.rollout, b.rollout, shown, DifferenceOrigin.UNKNOWN, flipped)
    if a.path and a.path == b.path:
        return msgspec.structs.replace(found, origin=DifferenceOrigin.VERDICT if flipped else DifferenceOrigin.SAME)
    try:
        divergence = first_divergence(a.rollout, b.rollout, CONTRACT)
    except NotComparable as error:
        return msgspec.structs.replace(found, why=error.sentence)
    origin, mechanism, fired = origin_of(divergence, changed, _firings(a), _firings(b), flipped=flipped)
    if origin is DifferenceOrigin.INCIDENTAL and b.outcome is Outcome.CRASH and crashed_by_harness(b.rollout):
        origin = DifferenceOrigin.HARNESS  # nothing but the crash is there to see
    if divergence is None:
        return msgspec.structs.replace(found, origin=origin)
    return msgspec.structs.replace(
        found,
        origin=origin,
        step=divergence.step,
        boundary=divergence.boundary,
        cause=divergence.cause.value,
        why=storable(divergence.why, 500),
        mechanism=mechanism,
        fired=fired,
    )


def _firings(cell: Cell) -> Mapping[str, tuple[int, ...]]:
    return cell.anatomy.firings if cell.anatomy is not None else {}
