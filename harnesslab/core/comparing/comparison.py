"""Two traces compared under a contract: the ladder, both first differences, what is extra and what may have decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from harnesslab.core.comparing import alignment
from harnesslab.core.comparing.alignment import Item, Row
from harnesslab.core.comparing.answers import answered_alike
from harnesslab.core.comparing.deciding_action import DecidingAction, deciding_action
from harnesslab.core.comparing.diagnosis import Divergence, diagnose
from harnesslab.core.comparing.extra_steps import ExtraSteps, extra_steps
from harnesslab.core.comparing.whole_pair import pair_hypothesis
from harnesslab.core.conditions.manifest import ConditionPair, Difference, compare
from harnesslab.core.contracts import scrub
from harnesslab.core.contracts.comparators import Path, first_difference
from harnesslab.core.contracts.contract import LADDER, Contract, Level
from harnesslab.core.contracts.trace_reader import TraceReader, turns
from harnesslab.core.errors import NotComparable
from harnesslab.core.trace.events import ModelCall, boundary


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
    deciding: DecidingAction | None = None
    """The first differing action that the outcome could hang on: a candidate."""
    tokens_part: int | None = None
    """The step from which token ids differ under words that are equal; None where they don't, or aren't recorded."""
    counted: bool = True
    """Whether either trace has anything of what is compared."""
    about_pair: str = ""
    """What is said of both traces as a whole."""
    next_difference: tuple[int, str] | None = None
    """(step, boundary) of the difference after the first, where that one is of white space, a date or a host alone."""

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
    counted = bool(len(path_a) or len(path_b))
    whole = pair_hypothesis(a, b)
    contractual = _divergence(a, b, contract, declared, rows)
    return Comparison(
        contract=contract,
        ladder={level: _rung(a, b, level, contract) for level in LADDER},
        steps=(turns(a), turns(b)),
        raw=contractual if raw_contract == contract else _divergence(a, b, raw_contract, declared),
        contractual=contractual,
        rows=rows,
        summary=summary,
        conditions=conditions,
        outcomes=(a.outcome, b.outcome),
        removed=(path_a.removed, path_b.removed),
        deciding=deciding_action(a, b, rows, (a.outcome, b.outcome)),
        tokens_part=_tokens_part(a, b, contract),
        counted=counted,
        about_pair=whole.why if whole is not None else "",
        next_difference=_next(a, b, rows) if contractual is not None and contractual.passing else None,
    )


def _next(a: TraceReader, b: TraceReader, rows: Sequence[Row]) -> tuple[int, str] | None:
    """Return the step and boundary of the second row that differs."""
    different = [row for row in rows if row.relation not in alignment.SAME]
    for row in different[1:2]:
        reader, position = (a, row.a) if row.a is not None else (b, row.b)
        if position is not None:
            event = reader.event(position)
            return event.step, boundary(event)
    return None


def parting(a: TraceReader, b: TraceReader, contract: Contract) -> Divergence | None:
    """Say where two traces part under a contract, and why; None where they don't. Raises `NotComparable`."""
    declared = [pair for pair in compare(a.manifest, b.manifest) if pair.difference is Difference.DIFFERENT]
    return _divergence(a, b, contract, declared)


def _tokens_part(a: TraceReader, b: TraceReader, contract: Contract) -> int | None:
    """Return the first step whose tokens differ under equal words; None where there is none before the words differ."""
    tokens, words = Contract(Level.TOKEN_IDS, contract.rules), Contract(Level.TEXT, contract.rules)
    if contract.level in (Level.TOKEN_IDS, Level.LOGPROBS):
        return None
    try:
        path_a, path_b = a.path(tokens), b.path(tokens)
    except NotComparable:
        return None
    position = first_difference(path_a, path_b)
    if position is None or position >= min(len(path_a), len(path_b)):
        return None
    at_a, at_b = path_a.indices[position], path_b.indices[position]
    one, two = a.event(at_a), b.event(at_b)
    if not isinstance(one, ModelCall) or not isinstance(two, ModelCall) or not answered_alike(one, two):
        return None
    if one.token_ids == two.token_ids:
        return None
    spoken = first_difference(a.path(words), b.path(words))
    return one.step if spoken is None or a.path(words).indices[min(spoken, len(a.path(words)) - 1)] >= at_a else None


def align_traces(a: TraceReader, b: TraceReader, contract: Contract) -> tuple[list[Row], alignment.Summary]:
    """Align two traces by what the contract counts; rows name event positions."""
    path_a, path_b = a.path(contract), b.path(contract)
    items_a, items_b = _items(a, path_a), _items(b, path_b)
    rows = _marked(_aligned(path_a, path_b, items_a, items_b), a, b, contract)
    return _event_rows(rows, path_a, path_b), alignment.summarise(rows, items_a, items_b)


def _divergence(
    a: TraceReader,
    b: TraceReader,
    contract: Contract,
    declared: Sequence[ConditionPair],
    rows: Sequence[Row] | None = None,
) -> Divergence | None:
    path_a, path_b = a.path(contract), b.path(contract)
    position = first_difference(path_a, path_b)
    if position is None:
        return None
    at_a = path_a.indices[position] if position < len(path_a) else None
    at_b = path_b.indices[position] if position < len(path_b) else None
    if rows is None:
        rows = align_traces(a, b, contract)[0]
    return diagnose(a, b, at_a, at_b, declared, contract, _extra(a, b, rows, at_a, at_b))


def _extra(
    a: TraceReader, b: TraceReader, rows: Sequence[Row], at_a: int | None, at_b: int | None
) -> ExtraSteps | None:
    """Return the steps that one side has more, where they are what the first difference is."""
    first = next((row for row in rows if row.relation not in alignment.SAME), None)
    if first is None or (first.a if first.a is not None else first.b) not in (at_a if first.a is not None else at_b,):
        return None
    return extra_steps(a, b, rows)


def _rung(a: TraceReader, b: TraceReader, level: Level, contract: Contract) -> Rung:
    """Compare at one level, with the contract's rules and scope."""
    at_level = Contract(level, contract.rules, contract.scope)
    try:
        if not len(a.path(at_level)) and not len(b.path(at_level)):
            return Rung.NOT_COMPARABLE
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
