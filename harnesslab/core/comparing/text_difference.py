"""Word-level difference of two texts, and value-level difference of two JSON values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rapidfuzz.distance import Indel

from harnesslab.core.canonical import JSON, canonical_bytes

MAX_WORDS = 20_000
"""Longer texts are compared line by line."""
_WORDS = re.compile(r"\w+|\s+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class TextSpan:
    """A run of text: `equal` on both sides, only in `a`, or only in `b`."""

    side: str
    text: str


def spans(a: str, b: str) -> list[TextSpan]:
    """Return the runs of two texts in reading order; joining the equal ones and one side's gives that side."""
    pieces_a, pieces_b = _pieces(a, b)
    numbers: dict[str, int] = {}  # as in `alignment.align`
    left = [numbers.setdefault(piece, len(numbers)) for piece in pieces_a]
    right = [numbers.setdefault(piece, len(numbers)) for piece in pieces_b]
    found: list[TextSpan] = []
    for operation in Indel.opcodes(left, right):
        if operation.tag == "equal":
            found.append(TextSpan("equal", "".join(pieces_a[operation.src_start : operation.src_end])))
        if operation.tag == "delete":
            found.append(TextSpan("a", "".join(pieces_a[operation.src_start : operation.src_end])))
        if operation.tag == "insert":
            found.append(TextSpan("b", "".join(pieces_b[operation.dest_start : operation.dest_end])))
    return _joined(found)


def _pieces(a: str, b: str) -> tuple[list[str], list[str]]:
    words_a, words_b = _WORDS.findall(a), _WORDS.findall(b)
    if len(words_a) + len(words_b) <= MAX_WORDS:
        return words_a, words_b
    return a.splitlines(keepends=True), b.splitlines(keepends=True)


def _joined(found: list[TextSpan]) -> list[TextSpan]:
    """Join deletions and insertions that only whitespace separates, so that a changed phrase reads as one."""
    result: list[TextSpan] = []
    index = 0
    while index < len(found):
        only_a, only_b = "", ""
        while index < len(found) and (
            found[index].side != "equal"
            or (found[index].text.isspace() and 0 < index < len(found) - 1 and (only_a or only_b))
        ):
            span = found[index]
            only_a += span.text if span.side in ("a", "equal") else ""
            only_b += span.text if span.side in ("b", "equal") else ""
            index += 1
        if only_a:
            result.append(TextSpan("a", only_a))
        if only_b:
            result.append(TextSpan("b", only_b))
        if index < len(found):
            result.append(found[index])
            index += 1
    return result


@dataclass(frozen=True, slots=True)
class ValueDifference:
    """One place where two JSON values differ; a side that has nothing there is None."""

    path: str
    a: str | None
    b: str | None


def value_differences(a: JSON, b: JSON, path: str = "$") -> Iterator[ValueDifference]:
    """Yield the places where two JSON values differ, by path; equal values yield nothing."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        for name in sorted({*a, *b}):
            if name not in a or name not in b:
                yield ValueDifference(f"{path}.{name}", _shown(a, name), _shown(b, name))
            else:
                yield from value_differences(a[name], b[name], f"{path}.{name}")
    elif isinstance(a, list) and isinstance(b, list):
        for index in range(max(len(a), len(b))):
            if index >= len(a) or index >= len(b):
                one = _text(a[index]) if index < len(a) else None
                two = _text(b[index]) if index < len(b) else None
                yield ValueDifference(f"{path}[{index}]", one, two)
            else:
                yield from value_differences(a[index], b[index], f"{path}[{index}]")
    elif canonical_bytes(a) != canonical_bytes(b):
        yield ValueDifference(path, _text(a), _text(b))


def _shown(value: Mapping[str, JSON], name: str) -> str | None:
    return _text(value[name]) if name in value else None


def _text(value: JSON) -> str:
    return canonical_bytes(value).decode()
