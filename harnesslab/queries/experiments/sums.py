"""What one experiment adds up to, and what can be asked about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, TypeVar

from msgspec.structs import asdict
from pydantic import PlainSerializer

from harnesslab.core.efficiency.factors import Answers, Cases, Identity, TokenKind, View, identity
from harnesslab.core.efficiency.faults import Faults, Submits, Timed, faults, submits, times, tools
from harnesslab.core.efficiency.spending import BilledCost, Spending, Split, cost, spending, split
from harnesslab.core.efficiency.survival import Bucket, Survival, buckets, survival
from harnesslab.core.errors import InvalidValue
from harnesslab.core.measuring.cells import Cell
from harnesslab.core.natural import natural
from harnesslab.core.running.rollout import Outcome
from harnesslab.core.trace.tool_uses import ToolUse
from harnesslab.queries.read_model import ReadModel
from harnesslab.queries.rollouts.filters import MOST_IDS, RolloutFilter
from harnesslab.store.models import Experiment

MOST = 8
LETTERS = "ABCDEFGH"
E = TypeVar("E", TokenKind, Answers, Cases)


@dataclass(frozen=True, slots=True)
class EfficiencyQuery:
    """What the page or the API is asked for."""

    experiments: tuple[int, ...]
    view: View
    cases: Cases

    @classmethod
    def of(cls, experiments: Sequence[str], query: Mapping[str, str]) -> EfficiencyQuery:
        """Read it from a query string; raises `InvalidValue`."""
        found = list(dict.fromkeys(natural(text.strip()) for text in experiments))
        ids = tuple(number for number in found if number is not None)
        if not 1 <= len(ids) <= MOST or len(ids) != len(found):
            raise InvalidValue(f"from 1 to {MOST} experiments by their ids are needed", where="e", hint="e=12&e=15")
        return cls(
            ids,
            View(
                _one_of(TokenKind, query.get("kind", "") or TokenKind.OUTPUT, "kind"),
                _one_of(Answers, query.get("answers", "") or Answers.BILLED, "answers"),
            ),
            _one_of(Cases, query.get("cases", "") or Cases.ALL, "cases"),
        )


def _one_of(kind: type[E], text: str, where: str) -> E:
    try:
        return kind(text)
    except ValueError:
        raise InvalidValue(f"{text[:40]!r} is none", where=where, hint=f"one of {', '.join(kind)}") from None


def _spelled(found: Faults) -> dict[str, object]:
    """Return faults as JSON, with every count."""
    ratios = {"first_valid": found.first_valid, "fatal": found.fatal, "retries": found.retries}
    repairs = {kind: asdict(repair) for kind, repair in found.repairs.items()}
    return {**ratios, "repairs": repairs, "rollouts": dict(found.rollouts)}


class ExperimentSums(ReadModel):
    """One experiment with its numbers."""

    letter: str
    id: int
    name: str
    project: str
    kind: str
    verdict: str
    models: list[str]
    cases: int
    uncounted: int
    """Rollouts whose trace is not counted yet."""
    identity: Identity
    split: Split
    spending: Spending
    faults: Annotated[Faults, PlainSerializer(_spelled)]
    submits: Submits
    survival: Survival
    solves: list[Bucket]
    tools: dict[str, Annotated[ToolUse, PlainSerializer(asdict, return_type=dict[str, int | float])]]
    used: dict[str, list[int]]
    """By tool, the rollouts that called it."""
    times: list[Timed]
    cost: BilledCost
    solved_at: list[tuple[int, int]]
    """(steps, rollout) of each solve."""
    bucket: int
    """Steps in a bucket of `solves`."""

    def query(self, **filters: str) -> str:
        """Return the query of the rollouts list for its rollouts."""
        return RolloutFilter(project=self.project, experiment=self.name, **filters).url()

    def behind(self, rollouts: Sequence[int]) -> str:
        """Return the query for some of its rollouts; for all of them where they are too many to name."""
        if len(rollouts) > MOST_IDS:
            return self.query()
        return RolloutFilter(ids=".".join(map(str, rollouts))).url() if rollouts else ""

    @property
    def title(self) -> str:
        """Letter and name."""
        return f"{self.letter} {self.name}"


def side_of(
    letter: str, row: Experiment, cells: list[Cell], view: View, walls: Mapping[int, float], size: int
) -> ExperimentSums:
    """Add an experiment's cells up."""
    used: dict[str, list[int]] = {}
    for cell in cells:
        for name in cell.anatomy.tools if cell.anatomy is not None else ():
            used.setdefault(name, []).append(cell.rollout)
    return ExperimentSums(
        letter=letter,
        id=row.pk,
        name=row.name,
        project=row.project.name,
        kind=row.kind,
        verdict=row.verdict,
        models=sorted({cell.model for cell in cells if cell.model}),
        cases=len({cell.case for cell in cells}),
        uncounted=sum(cell.anatomy is None for cell in cells),
        identity=identity(cells, view),
        split=split(cells),
        spending=spending(cells, view),
        faults=faults(cells),
        submits=submits(cells),
        survival=survival(cells),
        solves=list(buckets(cells, size)),
        tools=tools(cells),
        used=used,
        times=times(cells, walls),
        cost=cost(cells, _prices(row.project.prices)),
        solved_at=[(cell.steps, cell.rollout) for cell in cells if cell.outcome is Outcome.SOLVED],
        bucket=size,
    )


def _prices(stated: object) -> dict[str, dict[str, float]]:
    """Return the prices that are numbers."""
    if not isinstance(stated, Mapping):
        return {}
    return {
        str(model): {
            str(name): float(value)
            for name, value in prices.items()
            if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
        }
        for model, prices in stated.items()
        if isinstance(prices, Mapping)
    }
