"""A language model small enough to read: a table of commands, sampled token by token with real log-probabilities.

Its logits are sums of 32-bit floats, and the `kernel` decides in which order they are added. As on any engine,
another order rounds differently; where two tokens are nearly tied, that alone can change the answer.
"""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

NAME = "table-lm-1"
KERNELS = ("forward", "reverse")


@dataclass(frozen=True, slots=True)
class Sampled:
    """One answer: its words, their token ids, log-probabilities, and the alternatives at each token."""

    words: tuple[str, ...]
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    alternatives: tuple[tuple[tuple[str, float], ...], ...]

    @property
    def text(self) -> str:
        """The answer as text."""
        return " ".join(self.words[:-1])


END = "<end>"


class TableModel:
    """Samples commands from a table of (command, features) rows."""

    def __init__(self, commands: Sequence[str]) -> None:
        words = sorted({word for command in commands for word in command.split()})
        self._ids = {word: number for number, word in enumerate([END, *words])}

    def sample(
        self, table: Mapping[str, Sequence[float]], *, temperature: float, seed: int, kernel: str = "forward"
    ) -> Sampled:
        """Sample one command; `table` gives each command's features, whose sum is its logit.

        At temperature 0 the most probable token is taken, the first in the table on a tie.
        """
        generator = random.Random(seed)  # noqa: S311 - a sampler, not a secret
        scores = {(*command.split(), END): _logit(features, kernel) for command, features in table.items()}
        words: tuple[str, ...] = ()
        logprobs: list[float] = []
        alternatives: list[tuple[tuple[str, float], ...]] = []
        while not words or words[-1] != END:
            choices = _next_words(scores, words, temperature)
            word = _draw(choices, generator, temperature)
            logprobs.append(math.log(choices[word]))
            ranked = sorted(choices.items(), key=lambda item: -item[1])[:3]
            alternatives.append(tuple((option, math.log(share)) for option, share in ranked if share > 0))
            words = (*words, word)
        ids = tuple(self._ids[word] for word in words)
        return Sampled(words, ids, tuple(logprobs), tuple(alternatives))


def _logit(features: Sequence[float], kernel: str) -> float:
    """Add 32-bit floats in the kernel's order, rounding after each addition as hardware does."""
    total = 0.0
    for value in features if kernel == "forward" else reversed(features):
        total = _round32(total + _round32(value))
    return total


def _round32(value: float) -> float:
    return float(struct.unpack("f", struct.pack("f", value))[0])


def _next_words(
    scores: Mapping[tuple[str, ...], float], words: tuple[str, ...], temperature: float
) -> dict[str, float]:
    """Return the probability of each word that can follow."""
    scale = temperature or 1.0
    highest = max(scores.values())
    totals: dict[str, float] = {}
    for command, score in scores.items():
        if command[: len(words)] == words:
            word = command[len(words)]
            totals[word] = totals.get(word, 0.0) + math.exp((score - highest) / scale)
    whole = math.fsum(totals.values())
    return {word: value / whole for word, value in totals.items()}


def _draw(choices: Mapping[str, float], generator: random.Random, temperature: float) -> str:
    if temperature == 0:
        return max(choices, key=lambda word: choices[word])
    point = generator.random()
    for word, share in choices.items():
        point -= share
        if point < 0:
            return word
    return list(choices)[-1]
