"""Attribution: whether a case that flipped did so for the change under test, or forked for another reason.

A flip is *attributable* where the changed harness made the first difference between baseline and candidate, or where
the changed mechanism fired at or before it. Else it is an *incidental fork*: the change had not acted yet.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum

import msgspec

from harnesslab.core.canonical import JSON
from harnesslab.core.comparing.diagnosis import Divergence
from harnesslab.core.comparing.evidence import Cause


class DifferenceOrigin(StrEnum):
    """Where a difference between baseline and candidate comes from."""

    HARNESS = "harness"
    """The changed harness made the first difference."""
    MECHANISM = "mechanism"
    """The changed mechanism fired at or before it."""
    INCIDENTAL = "incidental"
    """Neither: something else made them part."""
    VERDICT = "verdict"
    """The paths are identical, the verdicts are not."""
    SAME = "same"
    """The paths are identical."""
    UNKNOWN = "unknown"
    """The recordings can't be compared."""


ATTRIBUTABLE = frozenset({DifferenceOrigin.HARNESS, DifferenceOrigin.MECHANISM})
_HARNESS_CAUSES = frozenset({Cause.HARNESS, Cause.DECLARED, Cause.MODEL_OR_HARNESS, Cause.TEMPLATE})
Firings = Mapping[str, Sequence[int]]
"""By mechanism, the steps at which it fired, in order."""


class Attribution(msgspec.Struct, frozen=True, omit_defaults=True):
    """One case of a candidate against its baseline."""

    case: str
    trial: int
    baseline: int
    """Rollout of the baseline."""
    candidate: int
    """Rollout of the candidate."""
    outcomes: tuple[str, str]
    origin: DifferenceOrigin
    flipped: bool = False
    """Whether it is solved on one side only."""
    step: int | None = None
    """Zero-based step of the first difference."""
    boundary: str = ""
    cause: str = ""
    why: str = ""
    mechanism: str = ""
    """The changed mechanism that fired first."""
    fired: int | None = None
    """Zero-based step at which it did."""

    @property
    def attributable(self) -> bool:
        """Whether the change under test explains it."""
        return self.origin in ATTRIBUTABLE

    def to_json(self) -> dict[str, JSON]:
        """Return it as JSON."""
        built: dict[str, JSON] = msgspec.to_builtins(self)
        return built


def origin_of(
    divergence: Divergence | None, changed: Collection[str] | None, before: Firings, after: Firings, *, flipped: bool
) -> tuple[DifferenceOrigin, str, int | None]:
    """Say where a difference comes from: (origin, mechanism that fired first, step at which it did).

    `changed` are the mechanisms that the candidate is said to change; None: take every mechanism whose firings
    differ between the two.
    """
    if divergence is None:
        return (DifferenceOrigin.VERDICT if flipped else DifferenceOrigin.SAME), "", None
    mechanism, step = first_firing(_changed(changed, before, after), before, after)
    if step is not None and step <= divergence.step:
        return DifferenceOrigin.MECHANISM, mechanism, step
    # a declared condition of the environment explains what a tool returned, which is no doing of the changed harness
    if divergence.cause in _HARNESS_CAUSES and divergence.boundary in ("harness", "model"):
        return DifferenceOrigin.HARNESS, mechanism, step
    return DifferenceOrigin.INCIDENTAL, mechanism, step


def first_firing(names: Collection[str], before: Firings, after: Firings) -> tuple[str, int | None]:
    """Return which of some mechanisms fired first, on either side, and when."""
    found = [(steps[0], name) for side in (before, after) for name, steps in side.items() if name in names and steps]
    if not found:
        return "", None
    step, name = min(found)
    return name, step


def _changed(stated: Collection[str] | None, before: Firings, after: Firings) -> Collection[str]:
    if stated is not None:
        return stated
    return {name for name in {*before, *after} if list(before.get(name, ())) != list(after.get(name, ()))}


def measurement_faults(attributions: Sequence[Attribution]) -> list[Attribution]:
    """Return the cases that parted though the change had not acted: under a valid gate there must be none."""
    return [each for each in attributions if each.origin in (DifferenceOrigin.INCIDENTAL, DifferenceOrigin.VERDICT)]
