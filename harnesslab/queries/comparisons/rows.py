"""One aligned row of a comparison in full: facts and content side by side, differences word by word."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping

from harnesslab.core.canonical import JSON, parse
from harnesslab.core.comparing.alignment import SAME, Row
from harnesslab.core.comparing.text_difference import TextSpan, ValueDifference, spans, value_differences
from harnesslab.core.trace.events import ModelCall
from harnesslab.core.trace.messages import view
from harnesslab.queries.comparisons.comparison import Aligned
from harnesslab.queries.comparisons.token_differences import TokenDifference, token_difference
from harnesslab.queries.read_model import ReadModel
from harnesslab.queries.rollouts.event_content import PREVIEW, Block, message_text, part
from harnesslab.queries.rollouts.events import EventDetail, event_detail

INCIDENTAL = frozenset({"latency", "recorded latency", "waited", "at", "response id", "read from", "call id"})
"""Facts that differ between any two runs."""
AROUND = 300
"""Equal characters shown before the place where two long texts part."""
MAX_MESSAGES = 400
"""Longer inputs are not read to be compared."""


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


class Kept(ReadModel):
    """One side's model call, and how many messages it kept of the call before it."""

    name: str
    rollout: int
    index: int
    input_kept: int


class RowDetail(ReadModel):
    """One aligned row in full."""

    number: int
    relation: str
    a: EventDetail | None
    b: EventDetail | None
    facts: list[tuple[str, str, str]]
    """(name, A, B) of the facts that differ."""
    others: list[tuple[str, str, str]]
    """(name, A, B) of the facts that are equal, or that no two runs share: times, ids."""
    pairs: list[BlockPair]
    """The content that differs."""
    same: list[BlockPair]
    """The content that is equal."""
    input_note: str
    input_compared: str
    """How the two inputs compare, where both are model calls."""
    sides: list[Kept]
    tokens: TokenDifference | None
    before: int | None
    """Number of the row before it that differs, of the next one, its own place among them, and how many there are."""
    after: int | None
    place: int | None
    differences: int


def row_detail(compared: Aligned, number: int) -> RowDetail:
    """Return one aligned row in full; raises `IndexError` for a number outside."""
    row = compared.rows[number]
    detail_a = event_detail(compared.a, row.a) if row.a is not None else None
    detail_b = event_detail(compared.b, row.b) if row.b is not None else None
    facts = _facts(detail_a, detail_b)
    pairs = _pairs(compared, row, detail_a, detail_b)
    different = [other for other, found in enumerate(compared.rows) if found.relation not in SAME]
    at = bisect_left(different, number)
    here = at < len(different) and different[at] == number
    return RowDetail(
        number=number,
        relation=row.relation.value,
        a=detail_a,
        b=detail_b,
        facts=[fact for fact in facts if _tells(fact)],
        others=[fact for fact in facts if not _tells(fact)],
        pairs=[pair for pair in pairs if not pair.equal],
        same=[pair for pair in pairs if pair.equal],
        input_note=_input_note(detail_a, detail_b),
        input_compared=_input_compared(compared, row),
        sides=[
            Kept(name=name, rollout=side.id, index=detail.index, input_kept=detail.input_kept)
            for name, side, detail in (("A", compared.row_a, detail_a), ("B", compared.row_b, detail_b))
            if detail is not None
        ],
        tokens=_tokens(compared, row),
        before=different[at - 1] if at else None,
        after=next(iter(different[at + here : at + here + 1]), None),
        place=at if here else None,
        differences=len(different),
    )


def _facts(a: EventDetail | None, b: EventDetail | None) -> list[tuple[str, str, str]]:
    left, right = dict(a.facts) if a else {}, dict(b.facts) if b else {}
    return [(name, left.get(name, "–"), right.get(name, "–")) for name in dict.fromkeys((*left, *right))]


def _tells(fact: tuple[str, str, str]) -> bool:
    name, left, right = fact
    return left != right and name not in INCIDENTAL


def _tokens(compared: Aligned, row: Row) -> TokenDifference | None:
    if row.a is None or row.b is None:
        return None
    one, two = compared.a.event(row.a), compared.b.event(row.b)
    return token_difference(one, two) if isinstance(one, ModelCall) and isinstance(two, ModelCall) else None


def _input_compared(compared: Aligned, row: Row) -> str:
    """Say whether two calls were given the same words, and where not; ids and long inputs are left out."""
    if row.a is None or row.b is None or {compared.a.kinds[row.a], compared.b.kinds[row.b]} != {"model_call"}:
        return ""
    counts = len(compared.a.message_positions(row.a)), len(compared.b.message_positions(row.b))
    if max(counts) > MAX_MESSAGES:
        return ""
    left, right = (
        [_said(message) for message in reader.messages(index)]
        for reader, index in ((compared.a, row.a), (compared.b, row.b))
    )
    total = f"{counts[0]} messages" if counts[0] == counts[1] else f"{counts[0]} and {counts[1]} messages"
    if left == right:
        return f"the same words, {total}" if counts[0] != 1 else "the same words, 1 message"
    pairs = enumerate(zip(left, right, strict=False))
    first = next((at for at, (one, two) in pairs if one != two), min(counts))
    role = (left if first < len(left) else right)[first][0]
    return f"{total}; the first that differs is message {first + 1}, {role}"


def _said(message: JSON) -> tuple[str, str]:
    return view(message).role, message_text(message)


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
    return [_pair(one, two, *_texts(compared, row, one, two)) for one, two in pairs]


def _texts(compared: Aligned, row: Row, one: Block | None, two: Block | None) -> tuple[str, str]:
    """Return what two blocks are compared by: their previews, or the whole texts from where those part."""
    text_a, text_b = one.text if one else "", two.text if two else ""
    if one is None or two is None or row.a is None or row.b is None or text_a != text_b or not (one.cut or two.cut):
        return text_a, text_b
    whole_a, whole_b = part(compared.a, row.a, one.part), part(compared.b, row.b, two.part)
    if whole_a == whole_b:
        return text_a, text_b
    shorter = min(len(whole_a), len(whole_b))
    first = next((at for at in range(shorter) if whole_a[at] != whole_b[at]), shorter)
    start = max(0, first - AROUND)
    before = f"⟨{start:,} equal characters⟩ " if start else ""
    return f"{before}{whole_a[start : first + PREVIEW]}", f"{before}{whole_b[start : first + PREVIEW]}"


def _pair(one: Block | None, two: Block | None, text_a: str, text_b: str) -> BlockPair:
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


def _shortened(span: TextSpan, keep: int = 300) -> str:
    """Cut the middle out of a long equal run."""
    if span.side != "equal" or len(span.text) <= 2 * keep:
        return span.text
    hidden = len(span.text) - 2 * keep
    return f"{span.text[:keep]} ⟨{hidden:,} equal characters⟩ {span.text[-keep:]}"
