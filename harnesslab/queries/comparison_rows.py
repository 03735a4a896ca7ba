"""One aligned row of a comparison in full: facts and content side by side, differences word by word."""

from __future__ import annotations

from collections.abc import Mapping

from harnesslab.core.alignment import Row
from harnesslab.core.canonical import JSON, parse
from harnesslab.core.text_difference import Span, ValueDifference, spans, value_differences
from harnesslab.queries.comparisons import Aligned
from harnesslab.queries.event_content import Block
from harnesslab.queries.events import EventDetail, event_detail
from harnesslab.queries.read_model import ReadModel


class BlockPair(ReadModel):
    """The same piece of content on both sides, with its word-level or value-level difference."""

    title: str
    equal: bool
    size_a: int
    size_b: int
    spans: list[tuple[str, str]]
    """(side, text) runs; long equal runs are shortened."""
    values: list[tuple[str, str | None, str | None]]
    """(path, A, B) where both sides are JSON."""


class RowDetail(ReadModel):
    """One aligned row in full."""

    number: int
    relation: str
    a: EventDetail | None
    b: EventDetail | None
    facts: list[tuple[str, str, str]]
    """(name, A, B) of facts, those that differ and those that matter."""
    pairs: list[BlockPair]
    input_note: str


def row_detail(compared: Aligned, number: int) -> RowDetail:
    """Return one aligned row in full; raises `IndexError` for a number outside."""
    row = compared.rows[number]
    detail_a = event_detail(compared.a, row.a) if row.a is not None else None
    detail_b = event_detail(compared.b, row.b) if row.b is not None else None
    return RowDetail(
        number=number,
        relation=row.relation.value,
        a=detail_a,
        b=detail_b,
        facts=_facts(detail_a, detail_b),
        pairs=_pairs(compared, row, detail_a, detail_b),
        input_note=_input_note(detail_a, detail_b),
    )


def _facts(a: EventDetail | None, b: EventDetail | None) -> list[tuple[str, str, str]]:
    left, right = dict(a.facts) if a else {}, dict(b.facts) if b else {}
    return [(name, left.get(name, "–"), right.get(name, "–")) for name in dict.fromkeys((*left, *right))]


def _input_note(a: EventDetail | None, b: EventDetail | None) -> str:
    notes = [detail.input_summary for detail in (a, b) if detail is not None and detail.input_summary]
    return notes[0] if len(set(notes)) == 1 else " / ".join(notes)


def _pairs(compared: Aligned, row: Row, a: EventDetail | None, b: EventDetail | None) -> list[BlockPair]:
    """Pair the blocks of two events by title, in order; a block without a partner stands against nothing."""
    left, right = list(a.blocks) if a else [], list(b.blocks) if b else []
    pairs: list[tuple[Block | None, Block | None]] = []
    for block in left:
        partner = next((other for other in right if (other.title, other.tone) == (block.title, block.tone)), None)
        if partner is not None:
            right.remove(partner)
        pairs.append((block, partner))
    pairs += [(None, block) for block in right]
    return [_pair(compared, row, one, two) for one, two in pairs]


def _pair(compared: Aligned, row: Row, one: Block | None, two: Block | None) -> BlockPair:
    text_a, text_b = one.text if one else "", two.text if two else ""
    values = _values(text_a, text_b) if one is not None and two is not None and not one.cut and not two.cut else []
    found = spans(text_a, text_b)
    shown = one or two
    return BlockPair(
        title=shown.title if shown else "",
        equal=text_a == text_b and one is not None and two is not None and one.size == two.size,
        size_a=one.size if one else 0,
        size_b=two.size if two else 0,
        spans=[(span.side, _shortened(span)) for span in found],
        values=[(item.path, item.a, item.b) for item in values],
    )


def _values(a: str, b: str) -> list[ValueDifference]:
    """Compare two texts as JSON values where both are objects or lists."""
    left, right = json_or_none(a), json_or_none(b)
    if not isinstance(left, Mapping | list) or not isinstance(right, Mapping | list):
        return []
    return list(value_differences(left, right))[:200]


def json_or_none(text: str) -> JSON:
    """Return a text's JSON value, or None where it is none."""
    try:
        return parse(text)
    except ValueError:
        return None


def _shortened(span: Span, keep: int = 300) -> str:
    """Cut the middle out of a long equal run."""
    if span.side != "equal" or len(span.text) <= 2 * keep:
        return span.text
    hidden = len(span.text) - 2 * keep
    return f"{span.text[:keep]} ⟨{hidden:,} equal characters⟩ {span.text[-keep:]}"
