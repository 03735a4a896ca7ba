"""Matrices of harness-matrix (see `formats/harness_matrix`): what their trials add up to.

The words, the tables and the rounding are those of the summaries that harness-matrix writes beside its results. Its
cell is an agent with its model: what `core.measuring.cells` calls so, a case and trial, is a `MatrixTrial` here. Its
harness is the runtime around the agent: *without harness* sets aside what only that runtime spoiled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

SHAPES = ("described_no_action", "no_action", "wrong_surface", "attempt_refused", "committed_wrong", "unsettled")
"""The ways in which a trial fails, as harness-matrix names them.

Its own words for three: `described_no_action` knew the mechanism and never reached for it, `wrong_surface` did the job
in the workspace and reported success, `attempt_refused` reached for it and got the details wrong.
"""
COMMONEST = 12
"""Rows of the table of shapes by scenario."""


@dataclass(frozen=True, slots=True)
class MatrixTrial:
    """One trial of one scenario in one cell, which is an agent with its model."""

    cell: str
    scenario: str
    group: str = ""
    """The class of its scenario."""
    skipped: bool = False
    one_shot: bool = False
    """Right at once, within the budget of errors."""
    eventual: bool = False
    """Right in the end, also after refusals."""
    excused: bool = False
    """Not right at once, and harness-matrix says that its runtime alone is to blame (`blocked_only_by_harness`)."""
    hard_fails: int = 0
    shape: str = ""
    cost: float = 0.0
    tokens: int = 0
    failures: tuple[str, ...] = ()
    """Names of failed checks, then codes of refused calls."""


@dataclass(frozen=True, slots=True)
class TrialTally:
    """What some trials add up to; skipped ones are counted and enter no rate."""

    trials: int
    skipped: int
    one_shot: int
    without_harness: int
    """One-shot trials, with those that are `excused` and were right in the end."""
    eventual: int
    hard_fails: int
    cost: float
    tokens: int
    shapes: dict[str, int]
    top_failure: str

    @property
    def measured(self) -> int:
        """How many trials ran."""
        return self.trials - self.skipped

    def rate(self, count: int) -> float | None:
        """Return a count over the measured trials; None where none ran."""
        return count / self.measured if self.measured else None

    @property
    def gap(self) -> float | None:
        """Share that was right only after a refusal."""
        return self.rate(self.eventual - self.one_shot)


@dataclass(frozen=True, slots=True)
class MatrixSummary:
    """A whole matrix: in all, by cell, by scenario, and by both, in the order in which they were run."""

    total: TrialTally
    cells: dict[str, TrialTally]
    scenarios: dict[str, TrialTally]
    groups: dict[str, str]
    pairs: dict[str, dict[str, TrialTally]]
    """By cell and scenario."""
    shapes: dict[tuple[str, str], int]
    """Failed trials by scenario and shape, in the order in which they were first met."""


def tally(trials: Iterable[MatrixTrial]) -> TrialTally:
    """Add trials up; what a skipped one states is left out of every sum but `trials` and `skipped`."""
    given = list(trials)
    ran = [trial for trial in given if not trial.skipped]
    failures = Counter(name for trial in ran for name in trial.failures)
    return TrialTally(
        trials=len(given),
        skipped=len(given) - len(ran),
        one_shot=sum(trial.one_shot for trial in ran),
        without_harness=sum(trial.one_shot or (trial.excused and trial.eventual) for trial in ran),
        eventual=sum(trial.eventual for trial in ran),
        hard_fails=sum(trial.hard_fails > 0 for trial in ran),
        cost=sum(trial.cost for trial in ran),
        tokens=sum(trial.tokens for trial in ran),
        shapes=dict(Counter(trial.shape for trial in ran if trial.shape in SHAPES)),
        top_failure=failures.most_common(1)[0][0] if failures else "",
    )


def summarise(trials: Sequence[MatrixTrial]) -> MatrixSummary:
    """Add the trials of one matrix up, as a whole and by every part; order is that of first mention."""
    cells = list(dict.fromkeys(trial.cell for trial in trials))
    groups = {trial.scenario: trial.group for trial in trials}
    return MatrixSummary(
        total=tally(trials),
        cells={cell: tally(trial for trial in trials if trial.cell == cell) for cell in cells},
        scenarios={name: tally(trial for trial in trials if trial.scenario == name) for name in groups},
        groups=groups,
        pairs={
            cell: {
                name: tally(trial for trial in trials if (trial.cell, trial.scenario) == (cell, name))
                for name in groups
            }
            for cell in cells
        },
        shapes=dict(Counter((trial.scenario, trial.shape) for trial in trials if trial.shape in SHAPES)),
    )


def markdown(summary: MatrixSummary) -> str:
    """Write a matrix as Markdown tables: rates by cell and scenario, totals of scenarios, shapes of failures."""
    return "\n".join([*_rates(summary), "", *_totals(summary), "", *_shapes(summary)])


def _table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [_row(heading), f"|{'---|' * len(heading)}", *map(_row, rows)]


def _row(parts: Sequence[str]) -> str:
    escaped = (part.replace("|", "\\|").replace("\n", " ") for part in parts)
    return f"| {' | '.join(escaped)} |"


def _rates(summary: MatrixSummary) -> list[str]:
    heading = ["cell", *summary.scenarios, "one-shot", "excl. harness", "eventual", "cost"]
    rows = (
        [
            cell,
            *(_passes(pair) for pair in summary.pairs[cell].values()),
            percent(found.rate(found.one_shot)),
            percent(found.rate(found.without_harness)),
            percent(found.rate(found.eventual)),
            f"${found.cost:.2f}",
        ]
        for cell, found in summary.cells.items()
    )
    return ["## One-shot rate by cell and scenario", "", *_table(heading, rows)]


def _passes(pair: TrialTally) -> str:
    if not pair.measured:
        return "SKIP" if pair.trials else "–"
    return f"{pair.one_shot}/{pair.measured}{'!' if pair.hard_fails else ''}"


def percent(share: float | None) -> str:
    """Write a share as a whole percentage; undefined is not zero."""
    return "—" if share is None else f"{share:.0%}"


def _totals(summary: MatrixSummary) -> list[str]:
    rows = []
    for name, found in summary.scenarios.items():
        if found.gap is None:
            rows.append([name, "", "SKIP", "SKIP", "", ""])
            continue
        one_shot, eventual = percent(found.rate(found.one_shot)), percent(found.rate(found.eventual))
        rows.append([name, summary.groups[name], one_shot, eventual, f"{found.gap:+.0%}", found.top_failure])
    heading = ["scenario", "class", "one-shot", "eventual", "gap", "top failure"]
    return ["## Scenario totals across cells", "", *_table(heading, rows)]


def _shapes(summary: MatrixSummary) -> list[str]:
    by_cell = ([cell, *(str(found.shapes.get(name, 0)) for name in SHAPES)] for cell, found in summary.cells.items())
    common = Counter(summary.shapes).most_common(COMMONEST)  # equal counts stay in order
    rows = ([name, shape, str(count)] for (name, shape), count in common)
    return [
        "## Failure shapes",
        "",
        *_table(["cell", *SHAPES], by_cell),
        "",
        *_table(["scenario", "shape", "trials"], rows),
    ]
