"""Experiments set side by side: whether they may be compared at all, paired tests, rates, and each case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harnesslab.core.canonical import JSON
from harnesslab.core.conditions.identity import identity_differences, refused
from harnesslab.core.conditions.manifest import Difference, Manifest
from harnesslab.core.errors import InvalidValue, NotFound
from harnesslab.core.measuring.cells import Cell, by_case
from harnesslab.core.measuring.experiments import Verdict
from harnesslab.core.measuring.paired import PairedTest, paired_test
from harnesslab.core.measuring.solve_rates import SolveRate, solve_rate
from harnesslab.core.natural import natural
from harnesslab.core.running.rollout import Outcome
from harnesslab.queries.experiments.cells import cells_of
from harnesslab.queries.experiments.sums import LETTERS, MOST
from harnesslab.queries.read_model import ReadModel
from harnesslab.queries.rollouts.manifests import manifests_of
from harnesslab.store.models import Experiment

NAMED = 6
"""Cases that a difference names."""


class Contender(ReadModel):
    """One of the experiments."""

    letter: str
    id: int
    name: str
    project: str
    project_id: int
    kind: str
    verdict: str
    commit: str
    mechanism: str
    rate: SolveRate
    selected_among: int | None
    """Candidates of its project that were measured on these cases, of which it was the one promoted; else None."""


class ConditionDifference(ReadModel):
    """A condition of the measurement that is not the same."""

    field: str
    different: bool
    """Else it is only not shown equal, since it is unknown somewhere."""
    a: JSON
    b: JSON
    cases: int
    some: list[str]
    """The first of them."""


class Against(ReadModel):
    """One experiment against the first."""

    letter: str
    test: PairedTest
    refused: list[str]
    """Conditions that differ, so that the two are no comparison."""
    differences: list[ConditionDifference]
    """Conditions that differ, then those that are only not shown equal."""

    @property
    def unknown(self) -> list[str]:
        """Conditions that are only not shown equal, each once."""
        return list(dict.fromkeys(each.field for each in self.differences if not each.different))


class ComparedCell(ReadModel):
    """One trial."""

    outcome: str
    rollout: int


class ComparedCase(ReadModel):
    """One case by experiment."""

    case: str
    cells: list[list[ComparedCell]]
    differs: bool
    """Whether some experiments that measured it solved it and others didn't."""


class ExperimentComparison(ReadModel):
    """Two to eight experiments; the first is what the others are compared with."""

    contenders: list[Contender]
    against: list[Against]
    cases: list[ComparedCase]
    """Every case of any of them; first those that differ."""
    differing: int


def experiment_ids(values: Sequence[str]) -> list[int]:
    """Read the experiments' ids; raises `InvalidValue`."""
    found = list(dict.fromkeys(natural(text.strip()) for text in values))
    ids = [number for number in found if number is not None]
    if not 2 <= len(ids) <= MOST or len(ids) != len(found):
        raise InvalidValue(f"from 2 to {MOST} experiments by their ids are needed", where="e", hint="e=12&e=15")
    return ids


def compare_experiments(ids: Sequence[int]) -> ExperimentComparison:
    """Set experiments side by side; raises `NotFound`."""
    rows = Experiment.objects.light().select_related("project").in_bulk(ids)
    if missing := [number for number in ids if number not in rows]:
        raise NotFound(f"there is no experiment {missing[0]}")
    cells = {pk: by_case(found) for pk, found in cells_of(ids).items()}
    manifests = _manifests(cells)
    first = ids[0]
    among = _among([rows[pk] for pk in ids], cells)
    cases = _cases([cells[pk] for pk in ids])
    return ExperimentComparison(
        contenders=[
            _contender(letter, rows[pk], cells[pk], among[pk]) for letter, pk in zip(LETTERS, ids, strict=False)
        ],
        against=[
            _against(letter, cells[first], cells[pk], manifests[first], manifests[pk])
            for letter, pk in zip(LETTERS[1:], ids[1:], strict=False)
        ],
        cases=cases,
        differing=sum(case.differs for case in cases),
    )


def _manifests(cells: Mapping[int, Mapping[str, list[Cell]]]) -> dict[int, dict[str, Manifest]]:
    """Return the manifests of each experiment by case, of its first trial, in one query."""
    first = {f"{pk} {case}": found[0].rollout for pk, cases in cells.items() for case, found in cases.items()}
    read = manifests_of(first)
    return {pk: {case: read[f"{pk} {case}"] for case in cases} for pk, cases in cells.items()}


def _contender(letter: str, row: Experiment, cases: Mapping[str, list[Cell]], among: int | None) -> Contender:
    return Contender(
        letter=letter,
        id=row.pk,
        name=row.name,
        project=row.project.name,
        project_id=row.project_id,
        kind=row.kind,
        verdict=row.verdict,
        commit=row.revision,
        mechanism=row.mechanism,
        rate=solve_rate(cases),
        selected_among=among,
    )


def _among(rows: Sequence[Experiment], cells: Mapping[int, Mapping[str, list[Cell]]]) -> dict[int, int | None]:
    """Count, for each experiment of a promoted revision, the candidates that were judged on some of its cases.

    Such a gain was selected for: the best of m on the same cases looks better than it is.
    """
    projects = {row.project_id for row in rows}
    judged = Experiment.objects.filter(project__in=projects, baseline__isnull=False).exclude(verdict="")
    found = list(judged.values_list("project_id", "revision", "verdict", "pk"))
    trained = {pk: {cell.case for cell in own} for pk, own in cells_of([pk for *_, pk in found]).items()}
    promoted = {(project, revision) for project, revision, verdict, _ in found if verdict == Verdict.PROMOTED}
    counts: dict[int, int | None] = {}
    for row in rows:
        own = cells[row.pk].keys()
        among = sum(project == row.project_id and bool(trained[pk] & own) for project, _, _, pk in found)
        selected = (row.project_id, row.revision) in promoted and bool(row.revision)
        counts[row.pk] = among if selected and among else None
    return counts


def _against(
    letter: str,
    a: Mapping[str, list[Cell]],
    b: Mapping[str, list[Cell]],
    left: Mapping[str, Manifest],
    right: Mapping[str, Manifest],
) -> Against:
    found = identity_differences((case, left[case], right[case]) for case in left if case in right)
    return Against(
        letter=letter,
        test=paired_test(a, b),
        refused=refused(found),
        differences=[
            ConditionDifference(
                field=each.field.name,
                different=each.difference is Difference.DIFFERENT,
                a=each.a,
                b=each.b,
                cases=len(each.cases),
                some=list(each.cases[:NAMED]),
            )
            for each in found
        ],
    )


def _cases(sides: Sequence[Mapping[str, list[Cell]]]) -> list[ComparedCase]:
    rows = []
    for case in dict.fromkeys(case for side in sides for case in side):
        found = [side.get(case, []) for side in sides]
        solved = {all(cell.outcome is Outcome.SOLVED for cell in cells) for cells in found if cells}
        cells = [[ComparedCell(outcome=cell.outcome.value, rollout=cell.rollout) for cell in each] for each in found]
        rows.append(ComparedCase(case=case, cells=cells, differs=len(solved) > 1))
    return sorted(rows, key=lambda row: not row.differs)
