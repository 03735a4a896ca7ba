"""The bodies of requests as they were sent, byte for byte, in space that grows with what is new.

An agent sends its whole transcript at every step, so bodies grow with the square of steps. Each one is kept as what
follows its common beginning with the body before it of the same agent, and now and then whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harnesslab.core.canonical import JSON, bytes_digest

KEY = "sent"
"""Key in a model call's `extra` of the digest, size and beginning of its body."""
WHOLE_EVERY = 32
"""Bodies of an agent from one that is kept whole to the next."""


@dataclass(frozen=True, slots=True)
class SentBody:
    """What is stored of one body."""

    text: str
    """What follows the common beginning; bytes that are no UTF-8 as lone surrogates."""
    facts: Mapping[str, JSON]
    """`digest` and `bytes` of the whole body, and `keeps`: characters of the body before it that it begins with."""


class SentBodies:
    """Keeps the bodies of one rollout in the order they were sent."""

    def __init__(self) -> None:
        self._last: dict[str, str] = {}
        self._since_whole: dict[str, int] = {}

    def keep(self, agent: str, raw: bytes) -> SentBody:
        """Return what to keep of an agent's next body."""
        text = raw.decode(errors="surrogateescape")
        since = self._since_whole.get(agent, WHOLE_EVERY)
        keeps = 0 if since >= WHOLE_EVERY else _common(self._last[agent], text)
        self._last[agent] = text
        self._since_whole[agent] = 1 if keeps == 0 else since + 1
        return SentBody(text[keeps:], {"digest": bytes_digest(raw), "bytes": len(raw), "keeps": keeps})


def keeps(facts: JSON) -> int:
    """Return how many characters of the body before it a kept body begins with."""
    stated = facts.get("keeps") if isinstance(facts, Mapping) else None
    return stated if isinstance(stated, int) else 0


def body(chain: Sequence[tuple[str, JSON]]) -> str:
    """Return the last body of a chain of (text, facts) of one agent, of which the first is kept whole."""
    text = ""
    for kept, facts in chain:
        text = text[: keeps(facts)] + kept
    return text


def _common(a: str, b: str) -> int:
    """Return the length of the common beginning, by halves: comparing slices is quick, characters are not."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
