"""The story of a project: its experiments in order, the baseline as a line of steps, and where that line breaks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from harnesslab.core.measuring.experiments import ExperimentKind, Verdict

Series = Sequence[float | None]


class Mark(StrEnum):
    """What an experiment is in the story."""

    BASELINE = "baseline"
    UNCHANGED = "unchanged"
    """A baseline measured again with nothing changed: an A/A run."""
    PROMOTED = "promoted"
    REJECTED = "rejected"
    INVALID = "invalid"
    """A candidate that could not be judged."""
    UNDECIDED = "undecided"
    RUNNING = "running"


class Turn(StrEnum):
    """How the line of the baseline came to a step."""

    START = "start"
    PROMOTION = "promotion"
    AGAIN = "again"
    """The same revision, measured anew, maybe over other cases."""
    RESET = "reset"
    """Another revision that doesn't follow the one before, or a baseline that solves less."""


_MARKS = {Verdict.PROMOTED: Mark.PROMOTED, Verdict.REJECTED: Mark.REJECTED, Verdict.INVALID_INFRA: Mark.INVALID}
CANDIDATES = frozenset({Mark.PROMOTED, Mark.REJECTED, Mark.INVALID, Mark.UNDECIDED, Mark.RUNNING})


@dataclass(frozen=True, slots=True)
class Point:
    """One experiment of the story."""

    mark: Mark
    revision: str
    parent: str
    value: float | None
    """Cases solved, or the metric that is told; None where there is none."""
    of: int | None = None
    """Cases it was measured over."""


@dataclass(frozen=True, slots=True)
class Step:
    """From a place on, the baseline stands at a value."""

    place: int
    """Zero-based position among the points."""
    value: float
    of: int | None
    turn: Turn

    @property
    def breaks(self) -> bool:
        """Whether the line does not go on from the step before."""
        return self.turn in (Turn.AGAIN, Turn.RESET)


def mark_of(kind: str, verdict: str, *, against: str | None, revision: str, running: bool) -> Mark:
    """Say what an experiment is; `against` is the revision of its baseline, None where it has none.

    Sources name a promoted candidate a baseline, since it is the next one; whatever was decided against a baseline is
    a candidate.
    """
    if kind == ExperimentKind.BASELINE and (against is None or not verdict):
        return Mark.UNCHANGED if against is not None and revision and against == revision else Mark.BASELINE
    if running:
        return Mark.RUNNING
    return _MARKS[Verdict(verdict)] if verdict else Mark.UNDECIDED


def steps(points: Sequence[Point], *, falls: bool = True) -> list[Step]:
    """Return the steps of the baseline; with `falls` a baseline that stands lower is a reset."""
    found: list[Step] = []
    current: Point | None = None
    for place, point in enumerate(points):
        if point.value is None or point.mark not in (Mark.BASELINE, Mark.PROMOTED):
            continue
        turn = Turn.PROMOTION
        if current is None:
            turn = Turn.START
        elif point.mark is Mark.BASELINE:
            turn = _turn(current, point, falls=falls)
        found.append(Step(place, point.value, point.of, turn))
        current = point
    return found


def _turn(current: Point, point: Point, *, falls: bool) -> Turn:
    if point.revision and point.revision == current.revision:
        return Turn.AGAIN
    lower = falls and point.value is not None and current.value is not None and point.value < current.value
    follows = bool(point.parent) and point.parent == current.revision
    return Turn.PROMOTION if follows and not lower else Turn.RESET


def common_panel(panels: Iterable[Iterable[str]]) -> frozenset[str]:
    """Return the cases that every experiment measured; empty without any."""
    sets = [frozenset(panel) for panel in panels]
    return frozenset.intersection(*sets) if sets else frozenset()


def numbers(metrics: Mapping[str, object]) -> dict[str, float]:
    """Return the metrics that are finite numbers, also where they are written as text."""
    found: dict[str, float] = {}
    for name, value in metrics.items():
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            continue
        try:
            number = float(value)
        except (ValueError, OverflowError):
            continue
        if math.isfinite(number):
            found[name] = number
    return found


def leading(series: Mapping[str, Series], marks: Sequence[Mark]) -> str:
    """Return the metric that promotions moved most consistently one way: what the candidates were most likely kept by.

    Empty where no metric has a value. Where nothing was promoted, all experiments count.
    """
    kept = [place for place, mark in enumerate(marks) if mark in (Mark.BASELINE, Mark.PROMOTED)]
    places = kept if len(kept) > 1 else range(len(marks))

    def order(name: str) -> tuple[float, int, str]:
        values = [value for place in places if (value := series[name][place]) is not None]
        moves = [(b > a) - (b < a) for a, b in itertools.pairwise(values)]
        told = sum(value is not None for value in series[name])
        return -abs(sum(moves)) / max(1, len(moves)), -told, name

    return min((name for name in series if any(value is not None for value in series[name])), key=order, default="")
