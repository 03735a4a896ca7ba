"""Two answers token by token, around the first that differs."""

from __future__ import annotations

from collections.abc import Sequence

from harnesslab.core.canonical import JSON
from harnesslab.core.trace.events import ModelCall
from harnesslab.queries.read_model import ReadModel

BEFORE = 4
AFTER = 12
"""Tokens shown before and after the first difference."""


class Token(ReadModel):
    """One completion token; its text is known where the engine gave alternatives, which begin with the chosen one."""

    id: int
    text: str
    logprob: float | None
    alternatives: list[tuple[str, float]]
    """The other tokens that were likely, with their log-probabilities."""


class TokenPairRow(ReadModel):
    """The tokens of both sides at one position, from 0."""

    position: int
    a: Token | None
    b: Token | None
    same: bool


class TokenDifference(ReadModel):
    """The tokens around the first difference."""

    first: int
    """Position of the first difference, from 0."""
    counts: tuple[int, int]
    by_probability: bool
    """The ids are equal and only the log-probabilities differ."""
    rows: list[TokenPairRow]

    @property
    def left_out(self) -> int:
        """Number of token positions after the last listed one."""
        return max(self.counts) - self.rows[-1].position - 1


def token_difference(a: ModelCall, b: ModelCall) -> TokenDifference | None:
    """Return where two answers part in token ids, else in log-probabilities; None where neither does or is recorded."""
    if a.token_ids is None or b.token_ids is None:
        return None
    first = _first(a.token_ids, b.token_ids)
    by_probability = first is None
    if first is None and a.logprobs is not None and b.logprobs is not None:
        first = _first(a.logprobs, b.logprobs)
    if first is None:
        return None
    last = min(max(len(a.token_ids), len(b.token_ids)), first + AFTER)
    return TokenDifference(
        first=first,
        counts=(len(a.token_ids), len(b.token_ids)),
        by_probability=by_probability,
        rows=[_row(a, b, position) for position in range(max(0, first - BEFORE), last)],
    )


def _first(one: Sequence[float], two: Sequence[float]) -> int | None:
    if one == two:
        return None
    pairs = enumerate(zip(one, two, strict=False))
    return next((at for at, (left, right) in pairs if left != right), min(len(one), len(two)))


def _row(a: ModelCall, b: ModelCall, position: int) -> TokenPairRow:
    one, two = _token(a, position), _token(b, position)
    same = one is not None and two is not None and (one.id, one.logprob) == (two.id, two.logprob)
    return TokenPairRow(position=position, a=one, b=two, same=same)


def _token(call: ModelCall, position: int) -> Token | None:
    if call.token_ids is None or position >= len(call.token_ids):
        return None
    found = _alternatives(_at(call.alternatives, position))
    logprob = call.logprobs[position] if call.logprobs is not None and position < len(call.logprobs) else None
    chosen = next((text for text, value in found if logprob is None or value == logprob), "")
    others = [(text, value) for text, value in found if text != chosen]
    return Token(id=call.token_ids[position], text=chosen, logprob=logprob, alternatives=others[:3])


def _at(alternatives: Sequence[JSON] | None, position: int) -> JSON:
    return alternatives[position] if alternatives is not None and position < len(alternatives) else None


def _alternatives(value: JSON) -> list[tuple[str, float]]:
    """Read one position's alternatives, in the shapes that engines give: pairs, or objects with a token."""
    if not isinstance(value, list):
        return []
    found = []
    for item in value:
        if isinstance(item, dict):
            item = [item.get("token"), item.get("logprob")]
        if isinstance(item, list | tuple) and len(item) == 2 and isinstance(item[1], int | float):
            found.append((str(item[0]), float(item[1])))
    return found
