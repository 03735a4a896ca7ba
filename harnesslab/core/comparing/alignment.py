"""Alignment of two paths after they part: equal, changed, moved, or only in one; one inserted step is one edit.

Rows come in reading order of both sides. Applying them to A gives B: taking, in B's order, A's item for equal
rows and B's for the others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from rapidfuzz.distance import Indel, Opcode


class Relation(StrEnum):
    """How the two sides of a row compare."""

    EQUAL = "equal"
    SCRUBBED = "scrubbed"
    """Equal only after the contract's rules."""
    CHANGED = "changed"
    MOVED = "moved"
    """The same content at another place."""
    ONLY_A = "only-a"
    ONLY_B = "only-b"


SAME = frozenset({Relation.EQUAL, Relation.SCRUBBED})
"""Relations that the contract counts as equal."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row: positions in A and B, None where a side has nothing."""

    relation: Relation
    a: int | None
    b: int | None


@dataclass(frozen=True, slots=True)
class Item:
    """What alignment knows of an event: its digest, its kind (only like is paired with like), and its step."""

    digest: Hashable
    kind: str
    step: int


def align(a: Sequence[Item], b: Sequence[Item]) -> list[Row]:
    """Align two sequences of items.

    The longest common subsequence is kept; what it leaves out between two kept rows is paired in order where
    the kinds match; an item left out on both sides with the same digest is a move.
    """
    # rapidfuzz compares items by their hash alone: that of a small number is the number, so that none are confused
    numbers: dict[Hashable, int] = {}
    left = [numbers.setdefault(item.digest, len(numbers)) for item in a]
    right = [numbers.setdefault(item.digest, len(numbers)) for item in b]
    rows: list[Row] = []
    gap_a: list[int] = []
    gap_b: list[int] = []
    for operation in Indel.opcodes(left, right):
        deleted = range(operation.src_start, operation.src_end)
        inserted = range(operation.dest_start, operation.dest_end)
        if operation.tag == "equal":
            rows += _pair(a, b, gap_a, gap_b)
            gap_a, gap_b = [], []
            rows += [Row(Relation.EQUAL, i, j) for i, j in zip(deleted, inserted, strict=True)]
        else:
            gap_a += deleted
            gap_b += inserted
    return _moves(rows + _pair(a, b, gap_a, gap_b), left, right)


def _pair(a: Sequence[Item], b: Sequence[Item], gap_a: list[int], gap_b: list[int]) -> list[Row]:
    """Pair the items of a gap in order, kind with kind; the rest is on one side only."""
    kinds_a, kinds_b = [a[i].kind for i in gap_a], [b[j].kind for j in gap_b]
    if not gap_a or not gap_b:
        return [Row(Relation.ONLY_A, i, None) for i in gap_a] + [Row(Relation.ONLY_B, None, j) for j in gap_b]
    rows: list[Row] = []
    numbers: dict[str, int] = {}
    left = [numbers.setdefault(kind, len(numbers)) for kind in kinds_a]
    right = [numbers.setdefault(kind, len(numbers)) for kind in kinds_b]
    for operation in Indel.opcodes(left, right):
        if operation.tag == "equal":
            for x, y in zip(
                range(operation.src_start, operation.src_end),
                range(operation.dest_start, operation.dest_end),
                strict=True,
            ):
                rows.append(Row(Relation.CHANGED, gap_a[x], gap_b[y]))
        rows += [Row(Relation.ONLY_A, gap_a[x], None) for x in _span(operation, "delete")]
        rows += [Row(Relation.ONLY_B, None, gap_b[y]) for y in _span(operation, "insert")]
    return rows


def _span(operation: Opcode, tag: str) -> range:
    """Return the positions an edit operation deletes or inserts."""
    if operation.tag != tag:
        return range(0)
    if tag == "delete":
        return range(operation.src_start, operation.src_end)
    return range(operation.dest_start, operation.dest_end)


def _moves(rows: list[Row], left: Sequence[int], right: Sequence[int]) -> list[Row]:
    """Turn rows that hold the same content on opposite sides into moves, nearest first."""
    waiting: dict[int, list[int]] = defaultdict(list)
    for row in rows:
        if row.relation in (Relation.ONLY_A, Relation.CHANGED) and row.a is not None:
            waiting[left[row.a]].append(row.a)
    moved: dict[int, int] = {}
    for row in rows:
        if row.relation in (Relation.ONLY_B, Relation.CHANGED) and row.b is not None and waiting[right[row.b]]:
            moved[row.b] = waiting[right[row.b]].pop(0)
    if not moved:
        return rows
    return _with_moves(rows, moved)


def _with_moves(rows: list[Row], moved: dict[int, int]) -> list[Row]:
    gone = set(moved.values())
    result: list[Row] = []
    for row in rows:
        from_a = moved.get(row.b) if row.b is not None else None
        if row.relation is Relation.EQUAL or (from_a is None and row.a not in gone):
            result.append(row)
            continue
        if row.a is not None and row.a not in gone:
            result.append(Row(Relation.ONLY_A, row.a, None))
        if from_a is not None:
            result.append(Row(Relation.MOVED, from_a, row.b))
        elif row.b is not None:
            result.append(Row(Relation.ONLY_B, None, row.b))
    return result


@dataclass(frozen=True, slots=True)
class Summary:
    """Counts of rows by relation, edits (steps touched, a run of rows in one step being one edit), and rejoining."""

    equal: int
    """Rows that the contract counts as equal."""
    scrubbed: int
    """Rows among `equal` that only the rules made so."""
    changed: int
    moved: int
    only_a: int
    only_b: int
    edits: int
    rejoins_at: int | None
    """Row from which everything is equal to the end, where that includes an action."""


def summarise(rows: Sequence[Row], a: Sequence[Item], b: Sequence[Item]) -> Summary:
    """Count what an alignment found."""
    counts = dict.fromkeys(Relation, 0)
    touched: set[tuple[str, int]] = set()
    changed = {
        a[row.a].step: b[row.b].step
        for row in rows
        if row.a is not None and row.b is not None and row.relation is Relation.CHANGED
    }
    for row in rows:
        counts[row.relation] += 1
        if row.relation in SAME:
            continue
        if row.b is not None:
            touched.add(("b", b[row.b].step))
        elif row.a is not None:
            step = a[row.a].step
            touched.add(("b", changed[step]) if step in changed else ("a", step))
    return Summary(
        counts[Relation.EQUAL] + counts[Relation.SCRUBBED],
        counts[Relation.SCRUBBED],
        counts[Relation.CHANGED],
        counts[Relation.MOVED],
        counts[Relation.ONLY_A],
        counts[Relation.ONLY_B],
        len(touched),
        _rejoins(rows, a, b),
    )


def _rejoins(rows: Sequence[Row], a: Sequence[Item], b: Sequence[Item]) -> int | None:
    """Return where the final run of equal rows begins, if an action is in it and something differs before."""
    end = len(rows)
    while end > 0 and rows[end - 1].relation is not Relation.MOVED and _is_outcome(rows[end - 1], a, b):
        end -= 1  # how it ended and was judged is no part of where paths go
    start = end
    while start > 0 and rows[start - 1].relation in SAME:
        start -= 1
    if start == 0:
        return None
    acted = any(row.a is not None and a[row.a].kind.startswith(("model", "tool")) for row in rows[start:end])
    return start if acted else None


def _is_outcome(row: Row, a: Sequence[Item], b: Sequence[Item]) -> bool:
    kinds = {items[at].kind for items, at in ((a, row.a), (b, row.b)) if at is not None}
    return kinds <= {"verification", "rollout_ended"}
