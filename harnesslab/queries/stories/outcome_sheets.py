"""Outcomes of an experiment as tables: how they moved, and case × experiment."""

from __future__ import annotations

from harnesslab.figures.sheets import Column, Entry, Sheet
from harnesslab.queries.experiments.outcome_matrix import MatrixCell, OutcomeMatrix
from harnesslab.queries.rollouts.filters import MOST_IDS, RolloutFilter
from harnesslab.queries.stories.experiment import Card


def outcome_sheets(card: Card, matrix: OutcomeMatrix) -> list[Sheet]:
    """Return both tables."""
    return [_transitions(card), _matrix(matrix)]


def _transitions(card: Card) -> Sheet:
    before = list(dict.fromkeys(each.before for each in card.transitions))
    after = list(dict.fromkeys(each.after for each in card.transitions))
    found = {(each.before, each.after): each for each in card.transitions}
    rows = []
    for name in before:
        entries = [Entry(_word(name))]
        for other in after:
            each = found.get((name, other))
            rollouts = [move.after or move.before for move in each.moves] if each is not None else []
            entries.append(Entry(len(rollouts), query=_behind([pk for pk in rollouts if pk is not None])))
        rows.append(tuple(entries))
    columns = (Column("baseline ↓, here →", numeric=False), *(Column(_word(name)) for name in after))
    total = sum(len(each.moves) for each in card.transitions)
    title = "Outcomes from baseline to here"
    return Sheet("transitions", title, columns, tuple(rows), f"{total:,} cases and trials, each counted once.")


def _behind(rollouts: list[int]) -> str:
    if not 0 < len(rollouts) <= MOST_IDS:
        return ""
    return RolloutFilter(ids=".".join(map(str, rollouts))).url() if len(rollouts) > 1 else f"#{rollouts[0]}"


def _matrix(matrix: OutcomeMatrix) -> Sheet:
    columns = [Column("case", numeric=False), Column("change", numeric=False)]
    columns += [
        Column(f"{column.role} {column.commit[:8] or column.name}".strip(), numeric=False) for column in matrix.columns
    ]
    rows = tuple((Entry(row.case), Entry(row.change), *map(_entry, row.cells)) for row in matrix.rows)
    title = "Case × experiment"
    return Sheet("matrix", title, tuple(columns), rows, "The cases lost come first, then those gained.")


def _entry(cell: MatrixCell | None) -> Entry:
    if cell is None:
        return Entry(None)
    trials = f" ({cell.solved} of {cell.trials} trials solved)" if cell.trials > 1 else ""
    return Entry(f"{_word(cell.outcome)}{trials}", query=f"#{cell.rollout}")


def _word(outcome: str) -> str:
    return {"unknown": "no verdict", "absent": "not in its panel"}.get(outcome, outcome.replace("_", " "))
