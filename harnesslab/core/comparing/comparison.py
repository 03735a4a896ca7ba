"""Two traces compared under a contract: the ladder, both first differences, and the sentence that says it all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from harnesslab.core.comparing import alignment
from harnesslab.core.comparing.alignment import Item, Row
from harnesslab.core.comparing.diagnosis import Divergence, diagnose
from harnesslab.core.comparing.evidence import readable
from harnesslab.core.conditions.manifest import ConditionPair, Difference, compare
from harnesslab.core.contracts import scrub
from harnesslab.core.contracts.comparators import Path, first_difference
from harnesslab.core.contracts.contract import LADDER, TITLES, Contract, Level, Scope
from harnesslab.core.contracts.trace_reader import TraceReader, turns
from harnesslab.core.errors import NotComparable


class Rung(StrEnum):
    """How a level of the ladder compares."""

    EQUAL = "equal"
    DIFFERENT = "different"
    NOT_COMPARABLE = "not comparable"


@dataclass(frozen=True, slots=True)
class Comparison:
    """What comparing two traces found; positions are zero-based event positions."""

    contract: Contract
    ladder: dict[Level, Rung]
    steps: tuple[int, int]
    """Agent turns of A and B."""
    raw: Divergence | None
    """The first difference in anything recorded, generated ids apart."""
    contractual: Divergence | None
    """The first difference that the contract counts."""
    rows: Sequence[Row]
    """Aligned event positions of all events that count, in reading order."""
    summary: alignment.Summary
    conditions: Sequence[ConditionPair]
    outcomes: tuple[str, str]
    removed: tuple[scrub.Removed, scrub.Removed]

    @property
    def identical(self) -> bool:
        """Whether the contract finds no difference."""
        return self.contractual is None

    @property
    def declared(self) -> list[ConditionPair]:
        """The conditions known on both sides and different."""
        return [pair for pair in self.conditions if pair.difference is Difference.DIFFERENT]


def compare_traces(a: TraceReader, b: TraceReader, contract: Contract) -> Comparison:
    """Compare two traces; raises `NotComparable` where one lacks what the contract's level compares."""
    path_a, path_b = a.path(contract), b.path(contract)
    conditions = compare(a.manifest, b.manifest)
    declared = [pair for pair in conditions if pair.difference is Difference.DIFFERENT]
    raw_contract = Contract(Level.TEXT, (), contract.scope)
    rows, summary = align_traces(a, b, contract)
    return Comparison(
        contract=contract,
        ladder={level: _rung(a, b, level, contract) for level in LADDER},
        steps=(turns(a), turns(b)),
        raw=_divergence(a, b, a.path(raw_contract), b.path(raw_contract), declared),
        contractual=_divergence(a, b, path_a, path_b, declared),
        rows=rows,
        summary=summary,
        conditions=conditions,
        outcomes=(a.outcome, b.outcome),
        removed=(path_a.removed, path_b.removed),
    )


def parting(a: TraceReader, b: TraceReader, contract: Contract) -> Divergence | None:
    """Say where two traces part under a contract, and why; None where they don't. Raises `NotComparable`."""
    declared = [pair for pair in compare(a.manifest, b.manifest) if pair.difference is Difference.DIFFERENT]
    return _divergence(a, b, a.path(contract), b.path(contract), declared)


def align_traces(a: TraceReader, b: TraceReader, contract: Contract) -> tuple[list[Row], alignment.Summary]:
    """Align two traces by what the contract counts; rows name event positions."""
    path_a, path_b = a.path(contract), b.path(contract)
    items_a, items_b = _items(a, path_a), _items(b, path_b)
    rows = _marked(_aligned(path_a, path_b, items_a, items_b), a, b, contract)
    return _event_rows(rows, path_a, path_b), alignment.summarise(rows, items_a, items_b)


def _divergence(
    a: TraceReader, b: TraceReader, path_a: Path, path_b: Path, declared: Sequence[ConditionPair]
) -> Divergence | None:
    position = first_difference(path_a, path_b)
    if position is None:
        return None
    at_a = path_a.indices[position] if position < len(path_a) else None
    at_b = path_b.indices[position] if position < len(path_b) else None
    return diagnose(a, b, at_a, at_b, declared, path_a.contract)


def _rung(a: TraceReader, b: TraceReader, level: Level, contract: Contract) -> Rung:
    """Compare at one level, with the contract's rules and scope."""
    at_level = Contract(level, contract.rules, contract.scope)
    try:
        same = first_difference(a.path(at_level), b.path(at_level)) is None
    except NotComparable:
        return Rung.NOT_COMPARABLE
    return Rung.EQUAL if same else Rung.DIFFERENT


def _items(reader: TraceReader, path: Path) -> list[Item]:
    return [
        Item(path.own_at(position), reader.kinds[index], reader.steps[index])
        for position, index in enumerate(path.indices)
    ]


def _aligned(path_a: Path, path_b: Path, items_a: list[Item], items_b: list[Item]) -> list[Row]:
    """Align the whole of two paths: the common beginning as it is, the rest after the first difference."""
    start = first_difference(path_a, path_b)
    if start is None:
        return [Row(alignment.Relation.EQUAL, index, index) for index in range(len(items_a))]
    common = [Row(alignment.Relation.EQUAL, index, index) for index in range(start)]
    if start < min(len(items_a), len(items_b)) and items_a[start].digest == items_b[start].digest:
        # what happened is equal and only the input differs, which alignment doesn't look at
        common.append(Row(alignment.Relation.CHANGED, start, start))
        start += 1
    rest = alignment.align(items_a[start:], items_b[start:])
    return common + [
        Row(row.relation, None if row.a is None else row.a + start, None if row.b is None else row.b + start)
        for row in rest
    ]


def _marked(rows: list[Row], a: TraceReader, b: TraceReader, contract: Contract) -> list[Row]:
    """Mark the rows that are equal only after the contract's rules."""
    if not contract.rules:
        return rows
    bare = Contract(contract.level, (), contract.scope)
    bare_a, bare_b = a.path(bare), b.path(bare)
    return [
        Row(alignment.Relation.SCRUBBED, row.a, row.b)
        if row.relation is alignment.Relation.EQUAL
        and row.a is not None
        and row.b is not None
        and bare_a.own_at(row.a) != bare_b.own_at(row.b)
        else row
        for row in rows
    ]


def _event_rows(rows: Sequence[Row], path_a: Path, path_b: Path) -> list[Row]:
    """Translate path positions to event positions."""
    return [
        Row(
            row.relation,
            None if row.a is None else path_a.indices[row.a],
            None if row.b is None else path_b.indices[row.b],
        )
        for row in rows
    ]


def sentence(comparison: Comparison) -> str:
    """Say where two traces part, at which boundary and why; steps are counted from one."""
    found, contract = comparison.contractual, comparison.contract
    if found is None:
        return readable(_identical(comparison) + _raw_clause(comparison))
    calls_only = contract.scope is Scope.TOOL_CALLS
    return readable(f"{_place(found, calls_only)}: {_reason(found)}.{_raw_clause(comparison)}")


def _identical(comparison: Comparison) -> str:
    level = TITLES[comparison.contract.level]
    if comparison.contract.scope is Scope.TOOL_CALLS:
        return f"The tool calls are identical at the level {level}."
    steps = comparison.steps[0]
    return f"Identical in {f'all {steps} steps' if steps != 1 else 'the one step'} at the level {level}."


def _place(found: Divergence, calls_only: bool) -> str:
    """Say how far two traces are equal, and where they part."""
    token = f", from token {found.token_index + 1}" if found.token_index is not None else ""
    boundary = f"at the boundary {found.boundary}{token}"
    if calls_only and not found.tool_call_index:
        return f"They part at the first tool call, in step {found.step + 1}, {boundary}"
    if not calls_only and found.step == 0:
        return f"They part in the first step, {boundary}"
    equal = _counted(found.tool_call_index or 0, "tool call") if calls_only else _counted(found.step, "step")
    if found.boundary == "model":
        return f"Identical for {equal}. At step {found.step + 1} the model parts them{token}"
    return f"Identical for {equal}. At step {found.step + 1}, {boundary}"


def _reason(found: Divergence) -> str:
    """Return the clause that says why, with the words from which the two sides part after its first part."""
    if found.excerpt is None:
        return found.why
    first, semicolon, rest = found.why.partition("; ")
    return f'{first}, from "{found.excerpt[0]}" against "{found.excerpt[1]}"{semicolon}{rest}'


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _raw_clause(comparison: Comparison) -> str:
    """Name the first raw difference where it is not the one the contract counts, and what the contract left out."""
    raw, found, contract = comparison.raw, comparison.contractual, comparison.contract
    if raw is None or (found is not None and (raw.a, raw.b) == (found.a, found.b)):
        return ""
    used = len({*comparison.removed[0].counts, *comparison.removed[1].counts})
    rules = f"{_counted(used, 'scrub rule')} removed something" if used else ""
    where = f"first raw difference is at step {raw.step + 1}, boundary {raw.boundary}: {raw.why}."
    if found is not None:
        return f" That is at the level {TITLES[contract.level]}{', where ' + rules if rules else ''}; the {where}"
    return f" {rules[:1].upper()}{rules[1:]}; the {where}" if rules else f" The {where}"
