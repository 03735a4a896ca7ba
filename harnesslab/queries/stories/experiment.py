"""What an experiment's page shows beside its cases: every reason, transitions, certificates, time, plan and change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harnesslab.core.deciding.decision_reasons import listed, reasons_of, sentences
from harnesslab.core.efficiency.cycle import Cycle
from harnesslab.core.measuring.attribution import Attribution
from harnesslab.core.measuring.cells import Cells, by_case, solved_cases
from harnesslab.core.measuring.experiments import ExperimentKind
from harnesslab.core.measuring.transitions import Transition, transitions
from harnesslab.queries.experiments.cells import cells_of
from harnesslab.queries.experiments.certificates import CertificateRow, certificates
from harnesslab.queries.experiments.measurements import measuring_plan_of
from harnesslab.queries.stories.candidate import Change, change_of, cycle_of
from harnesslab.store.models import Experiment
from harnesslab.store.text import as_object, thawed


@dataclass(frozen=True, slots=True)
class Card:
    """One experiment, beside its cases."""

    experiment: Experiment
    sentences: Sequence[str]
    """Every reason of its decision."""
    again: Sequence[str]
    """What measuring the baseline again unchanged showed."""
    excluded: Mapping[str, str]
    """Cases that certification kept out, with the verdict."""
    attributions: Mapping[str, Sequence[Attribution]]
    """By case."""
    attributed: bool
    """Whether every case was compared with the baseline's, so that those without an attribution went the same way."""
    transitions: Sequence[Transition]
    certificates: Sequence[CertificateRow]
    certified: Experiment | None
    """Whose certificates they are: its own or its baseline's."""
    cycle: Cycle
    plan: Sequence[tuple[str, str]]
    change: Change

    @property
    def repeats(self) -> int:
        """Cases whose environment repeats."""
        return sum(row.verdict == "deterministic" for row in self.certificates)


def experiment_card(experiment_id: int) -> Card:
    """Return the card of an experiment that is there."""
    row = Experiment.objects.select_related("project", "baseline", "panel__panel").get(pk=experiment_id)
    certified = next(
        (each for each in (row, row.baseline) if each is not None and as_object(thawed(each.certification))), None
    )
    again = _unchanged(row)
    wanted = {pk for pk in (row.pk, row.baseline_id, *(each.pk for each in again)) if pk is not None}
    cells = {pk: by_case(found) for pk, found in cells_of(sorted(wanted)).items()}
    before = cells.get(row.baseline_id or 0, {})
    reasons = reasons_of(as_object(thawed(row.decision)))
    by_name: dict[str, list[Attribution]] = {}
    for each in reasons.attributions or ():
        by_name.setdefault(each.case, []).append(each)
    return Card(
        experiment=row,
        sentences=sentences(reasons),
        again=[_flips(each, cells[each.pk], before) for each in again],
        excluded=reasons.excluded,
        attributions=by_name,
        attributed=reasons.attributions is not None,
        transitions=transitions(before, cells[row.pk]) if before else (),
        certificates=certificates(certified) if certified is not None else (),
        certified=certified,
        cycle=cycle_of(row),
        plan=_plan(row),
        change=change_of(row),
    )


def _unchanged(row: Experiment) -> list[Experiment]:
    """Return the A/A runs that say something of an experiment: itself, or those of its baseline."""
    baseline = row.baseline
    if baseline is None:
        return []
    if row.kind == ExperimentKind.BASELINE and not row.verdict and row.revision and row.revision == baseline.revision:
        return [row]
    found = Experiment.objects.filter(
        baseline=baseline, kind=ExperimentKind.BASELINE, verdict="", revision=baseline.revision
    )
    return list(found.exclude(revision="").order_by("pk"))


def _flips(row: Experiment, own: Cells, before: Cells) -> str:
    common = own.keys() & before.keys()
    flipped = sorted((solved_cases(own) ^ solved_cases(before)) & common)
    names = f": {listed(flipped)}" if flipped else ""
    return f"Measured again unchanged ({row.name}): {len(flipped)} of {len(common)} cases flipped by nothing{names}."


def _plan(row: Experiment) -> list[tuple[str, str]]:
    """Return how it was asked for, by name."""
    if not row.plan:
        return []
    plan = measuring_plan_of(row)
    panel = f"{row.panel.panel.name} {row.panel.digest[:8]}" if row.panel is not None else "–"
    settings = ", ".join(f"{name} {value}" for name, value in plan.settings.items())
    cases = f"{len(plan.cases)} of its cases" if plan.cases is not None else "all its cases"
    return [
        ("panel", f"{panel}, {cases}"),
        ("engine", plan.engine),
        ("trials a case", str(plan.trials)),
        ("root seed", plan.root_seed),
        ("settings", settings or "–"),
    ]
