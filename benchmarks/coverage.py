"""How often the interval over cases holds the truth: simulated over numbers of cases and trials; prints Markdown.

`.venv/bin/python benchmarks/coverage.py [DRAWS]`. A case's true rate is drawn from a beta distribution with a mean and
a spread between cases; the truth is that mean. 95 % is what is aimed for; more is cautious, fewer is a promise broken.
"""

from __future__ import annotations

import random
import sys
from itertools import product

from harnesslab.core.measuring.statistics import korn_graubard

CASES = (1, 2, 3, 5, 10, 20, 50, 100)
TRIALS = (1, 2, 3, 5, 10)
MEANS = (0.05, 0.3, 0.5, 0.9)
ALIKE = 0.3
"""Intraclass correlation: how much of a trial's spread is its case's."""


def covered(cases: int, trials: int, mean: float, draws: int, generator: random.Random) -> tuple[float, float]:
    """Return (share of intervals that hold the mean, their mean width)."""
    strength = (1 - ALIKE) / ALIKE
    held = width = 0.0
    for _ in range(draws):
        rates = [generator.betavariate(mean * strength, (1 - mean) * strength) for _ in range(cases)]
        counts = [(sum(generator.random() < rate for _ in range(trials)), trials) for rate in rates]
        interval = korn_graubard(counts)
        held += interval.low <= mean <= interval.high
        width += interval.high - interval.low
    return held / draws, width / draws


def main() -> None:
    """Print one row a number of cases and of trials."""
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    generator = random.Random(20261201)
    sys.stdout.write(f"Coverage of 95 % intervals over cases, and their mean width; {draws:,} draws a cell.\n\n")
    sys.stdout.write(
        f"| cases | trials | {' | '.join(f'mean {mean:g}' for mean in MEANS)} |\n|--:|--:|{'--:|' * len(MEANS)}\n"
    )
    for cases, trials in product(CASES, TRIALS):
        cells = [covered(cases, trials, mean, draws, generator) for mean in MEANS]
        row = " | ".join(f"{100 * held:.1f} % ({100 * width:.0f})" for held, width in cells)
        sys.stdout.write(f"| {cases} | {trials} | {row} |\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
