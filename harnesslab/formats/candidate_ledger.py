"""Keep-or-discard ledgers: a tab-separated row for each tried change, with what was measured and decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from harnesslab.core.measuring.experiments import ExperimentKind, ExperimentRecord, Verdict
from harnesslab.core.running.rollout import Recording
from harnesslab.formats.reading.inputs import Report, Unit
from harnesslab.formats.reading.sniff import Shape

NAME = "candidate-ledger"
_DECIDING = ("status", "decision", "verdict", "correctness")
"""Columns that may hold the decision; the last states whether results were right, and decides only by some words."""
_VERDICTS = {
    "keep": Verdict.PROMOTED,
    "discard": Verdict.REJECTED,
    "revert": Verdict.REJECTED,
    "kill": Verdict.REJECTED,
}
"""Words that decide; any other (crash, fail, pass, blocked, deferred) is kept as the reason and decides nothing."""
_NAMES = ("commit", "experiment")
_SAID = ("description", "tag")


@dataclass(frozen=True, slots=True)
class Ledger:
    """A table: its columns, and the number of the line and the values of each row."""

    columns: tuple[str, ...]
    rows: list[tuple[int, Mapping[str, str]]]

    @property
    def name(self) -> str:
        """The column that names a row."""
        return next(name for name in _NAMES if name in self.columns)

    @property
    def deciding(self) -> str:
        """The column that holds the decision."""
        return next(name for name in _DECIDING if name in self.columns)


def recognises(shape: Shape) -> bool:
    """Tab-separated text whose heading names a commit or experiment and a verdict."""
    if shape.kind != "text":
        return False
    heading = _text(shape.unit)[:20_000].split("\n", 1)[0].strip().split("\t")
    return len(heading) > 2 and bool({*_NAMES} & {*heading}) and bool({*_DECIDING} & {*heading})


def read(unit: Unit, report: Report) -> Iterator[Recording]:
    """Yield nothing: a ledger holds no rollout."""
    yield from ()


def experiments(unit: Unit, report: Report) -> Iterator[ExperimentRecord]:
    """Yield one experiment a row; what each was measured against is the last row that was kept."""
    ledger, times, kept = _ledger(unit, report), Counter[str](), ""
    for line, row in ledger.rows:
        name = row[ledger.name] if ledger.name == "commit" else f"{PurePosixPath(unit.name).stem} {row[ledger.name]}"
        times[name] += 1
        external_id = name if times[name] == 1 else f"{name} #{times[name]}"
        record = _record(ledger, row, external_id, kept, line)
        if ledger.deciding != "correctness" and record.verdict is Verdict.PROMOTED:
            kept = external_id
        yield record


def _record(ledger: Ledger, row: Mapping[str, str], external_id: str, kept: str, line: int) -> ExperimentRecord:
    word, said = row[ledger.deciding], next((row[name] for name in _SAID if row.get(name)), "")
    baseline = any(row.get(name, "").lower().startswith("baseline") for name in _SAID)
    return ExperimentRecord(
        external_id=external_id,
        kind=ExperimentKind.BASELINE if baseline else ExperimentKind.CANDIDATE,
        revision=row.get("commit", ""),
        parent_revision=kept.split(" #")[0],
        baseline=kept,
        verdict=_VERDICTS.get(word.lower()),
        reason=word.lower(),
        mechanism=said,
        decision={ledger.deciding: word},
        metrics={name: value for name, value in row.items() if name not in (ledger.name, ledger.deciding, *_SAID)},
        facts={"format": NAME, "line": line, "row": dict(row)},
    )


def _ledger(unit: Unit, report: Report) -> Ledger:
    lines = _text(unit).split("\n")
    columns = tuple(lines[0].strip().split("\t"))
    table = Ledger(columns, [])
    for number, line in enumerate(lines[1:], start=2):
        if not line.strip():
            continue
        # tabs beyond the last column belong to its text
        values = [part.strip() for part in line.rstrip("\r").split("\t", len(columns) - 1)]
        row = dict(zip(columns, values, strict=False))
        if not row.get(table.name) or not row.get(table.deciding):
            report.skip(f"line {number}", f"no {table.name} or no {table.deciding}")
            continue
        table.rows.append((number, row))
    return table


def _text(unit: Unit) -> str:
    return unit.only.read().decode("utf-8", "surrogateescape").removeprefix("\ufeff")
