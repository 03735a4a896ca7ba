"""What went wrong and what mended it: first attempts, repairs, fatal steps, retries, submits; and tools and times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from harnesslab.core.efficiency.factors import Ratio
from harnesslab.core.measuring.askings import Repair
from harnesslab.core.measuring.cells import Cell
from harnesslab.core.measuring.trace_statistics import TraceStatistics
from harnesslab.core.running.rollout import Outcome
from harnesslab.core.trace.tool_uses import ToolUse


@dataclass(frozen=True, slots=True)
class Faults:
    """How often answers were no valid action, and what became of it; answers served from a cache included."""

    first_valid: Ratio
    """Askings whose first answer was valid."""
    fatal: Ratio
    """Askings of which no answer was valid."""
    retries: Ratio
    """Answers that were a further attempt, of all answers."""
    repairs: Mapping[str, Repair]
    """By kind of fault, the most frequent first."""
    rollouts: Mapping[str, tuple[int, ...]]
    """By kind of fault, the rollouts in which it occurred."""


@dataclass(frozen=True, slots=True)
class Submits:
    """Solve rate as submit rate × pass rate, over the scored rollouts of which it is known whether they submitted."""

    submitted: Ratio
    passed: Ratio
    solved: Ratio
    unknown: int
    """Scored rollouts whose trace can't tell."""


@dataclass(frozen=True, slots=True)
class Timed:
    """Where the time of one rollout went, in seconds."""

    case: str
    trial: int
    rollout: int
    outcome: Outcome
    model: float | None
    """None, as each of these, where no event states its time."""
    waited: float | None
    tool: float | None
    verify: float | None
    wall: float | None
    """Its time budget; None where none is stated."""

    @property
    def share(self) -> float | None:
        """Model time of the budget."""
        return self.model / self.wall if self.wall and self.model is not None else None


def faults(cells: Iterable[Cell]) -> Faults:
    """Add up the faults of rollouts."""
    found = [(cell.rollout, cell.anatomy) for cell in cells if cell.anatomy is not None]
    asked = sum(item.first_attempts for _, item in found)
    answers = sum(item.calls + item.served for _, item in found)
    repairs: dict[str, Repair] = {}
    where: dict[str, list[int]] = {}
    for rollout, item in found:
        for kind, repair in item.repairs.items():
            before = repairs.get(kind, Repair())
            repairs[kind] = Repair(before.times + repair.times, before.recovered + repair.recovered)
            where.setdefault(kind, []).append(rollout)
    never = "" if asked else "the model gave no answer"
    order = sorted(repairs, key=lambda kind: (-repairs[kind].times, kind))
    return Faults(
        first_valid=Ratio(sum(item.first_valid for _, item in found), asked, never),
        fatal=Ratio(sum(item.fatal for _, item in found), asked, never),
        retries=Ratio(answers - asked, answers, never),
        repairs={kind: repairs[kind] for kind in order},
        rollouts={kind: tuple(where[kind]) for kind in order},
    )


def submits(cells: Iterable[Cell]) -> Submits:
    """Split the solve rate."""
    scored = [cell for cell in cells if cell.is_sample]
    known = [cell for cell in scored if cell.anatomy is not None and cell.anatomy.submitted is not None]
    handed_in = sum(cell.anatomy is not None and cell.anatomy.submitted is True for cell in known)
    solved = sum(cell.outcome is Outcome.SOLVED for cell in known)
    none = "" if known else "no scored rollout says whether it submitted"
    return Submits(
        submitted=Ratio(handed_in, len(known), none),
        passed=Ratio(solved, handed_in, none or ("" if handed_in else f"none of {len(known):,} rollouts submitted")),
        solved=Ratio(solved, len(known), none),
        unknown=len(scored) - len(known),
    )


def tools(cells: Iterable[Cell]) -> dict[str, ToolUse]:
    """Add up the calls of each tool, the most called first."""
    sums: dict[str, ToolUse] = {}
    for cell in cells:
        for name, use in (cell.anatomy or TraceStatistics()).tools.items():
            before = sums.get(name, ToolUse())
            sums[name] = ToolUse(
                before.calls + use.calls,
                before.failed + use.failed,
                before.seconds + use.seconds,
                before.timed + use.timed,
                before.output_tokens + use.output_tokens,
                before.asked + use.asked,
            )
    return dict(sorted(sums.items(), key=lambda item: (-item[1].calls, item[0])))


def times(cells: Sequence[Cell], walls: Mapping[int, float]) -> list[Timed]:
    """Return where the time of each rollout went, the most model time first; `walls` are time budgets by rollout."""
    rows = [
        Timed(
            cell.case,
            cell.trial,
            cell.rollout,
            cell.outcome,
            cell.anatomy.model,
            cell.anatomy.waited,
            cell.anatomy.tool,
            cell.anatomy.verify,
            walls.get(cell.rollout),
        )
        for cell in cells
        if cell.anatomy is not None and cell.anatomy.first_attempts
    ]
    return sorted(rows, key=lambda row: (-(row.model or 0.0), row.case, row.trial))
