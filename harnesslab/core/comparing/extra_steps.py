"""Steps that one trace has more than the other, where both go on alike after them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from harnesslab.core.comparing.alignment import SAME, Relation, Row
from harnesslab.core.comparing.hypotheses import Hypothesis, Strength
from harnesslab.core.contracts.trace_reader import TraceReader

_OUTCOMES = frozenset({"verification", "rollout_ended"})


@dataclass(frozen=True, slots=True)
class ExtraSteps:
    """Whole steps that one side alone has, and the steps from which both go on alike; all count from 0."""

    side: str
    steps: tuple[int, ...]
    goes_on: tuple[int, int]
    to_the_end: bool
    """Whether nothing differs after them but the outcome."""

    @property
    def words(self) -> str:
        """Say it with steps counted from one."""
        a, b = self.goes_on
        numbers = ", ".join(str(step + 1) for step in self.steps)
        count = "one extra step" if len(self.steps) == 1 else f"{len(self.steps)} extra steps"
        return f"{self.side} has {count}, {numbers}; from A's step {a + 1} and B's step {b + 1} both go on alike"


def extra_steps(a: TraceReader, b: TraceReader, rows: Sequence[Row]) -> ExtraSteps | None:
    """Find whole steps that one side alone has at the first difference, followed by steps that are equal."""
    start = next((index for index, row in enumerate(rows) if row.relation not in SAME), None)
    if start is None or rows[start].relation not in (Relation.ONLY_A, Relation.ONLY_B):
        return None
    relation = rows[start].relation
    end = next((index for index in range(start, len(rows)) if rows[index].relation is not relation), len(rows))
    side, reader = ("A", a) if relation is Relation.ONLY_A else ("B", b)
    positions = [position for row in rows[start:end] if (position := row.a if side == "A" else row.b) is not None]
    steps = tuple(dict.fromkeys(reader.steps[position] for position in positions))
    if not _whole(reader, rows, positions, steps, side) or end == len(rows):
        return None
    following = [row for row in rows[end:] if row.a is not None and a.kinds[row.a] not in _OUTCOMES]
    alike = next((index for index, row in enumerate(following) if row.relation not in SAME), len(following))
    calls = sum(a.kinds[row.a] in ("model_call", "tool_call") for row in following[:alike] if row.a is not None)
    if not calls or (alike < len(following) and calls < 2):
        return None
    first = following[0]
    if first.a is None or first.b is None:
        return None
    rest = [row for row in rows[end:] if row.relation not in SAME and not _outcome(row, a, b)]
    return ExtraSteps(side, steps, (a.steps[first.a], b.steps[first.b]), not rest)


def _outcome(row: Row, a: TraceReader, b: TraceReader) -> bool:
    return (row.a is None or a.kinds[row.a] in _OUTCOMES) and (row.b is None or b.kinds[row.b] in _OUTCOMES)


def _whole(reader: TraceReader, rows: Sequence[Row], positions: Sequence[int], steps: Sequence[int], side: str) -> bool:
    """Say whether a side's rows are all that is compared of their steps, and a model or tool acted in each."""
    inside = set(positions)
    acted: set[int] = set()
    for row in rows:
        position = row.a if side == "A" else row.b
        if position is None or reader.steps[position] not in steps or reader.kinds[position] in _OUTCOMES:
            continue
        if position not in inside:
            return False
        if reader.kinds[position] in ("model_call", "tool_call"):
            acted.add(reader.steps[position])
    return acted == set(steps)


def extra_steps_hypothesis(extra: ExtraSteps, local: Hypothesis) -> Hypothesis:
    """Say what is extra, with what the first difference was found to come from."""
    rest = local.why
    if local.lead and local.lead in rest:
        rest = rest.partition(local.lead)[2].partition("; ")[2]
    after = extra.words if extra.to_the_end else f"{extra.words} until they part again"
    why = f"{after}; {rest}" if rest else after
    return replace(local, why=why, strength=Strength.RECORDED, quote=None, supports=(*local.supports, extra.words))
