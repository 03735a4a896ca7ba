"""What an Inspect score says: a verdict, a reward, or a number on a scale of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harnesslab.core.canonical import JSON
from harnesslab.core.trace.events import Verification
from harnesslab.formats.reading.values import mapping, not_empty, number


def verification(score: JSON, name: str, **fields: Any) -> Verification:
    """Return what a score says; only a verdict or a number from 0 to 1 says whether it passed."""
    given = mapping(score)
    value = given.get("value") if given else score
    passed, reward = verdict(value)
    scores = dict(value) if isinstance(value, Mapping) else {name: value}
    extra = {**fields.pop("extra", {}), **not_empty({key: item for key, item in given.items() if key != "value"})}
    return Verification(passed=passed, reward=reward, scores=scores, extra=extra, **fields)


def verdict(value: JSON) -> tuple[bool | None, float | None]:
    """Read a score's value: (passed, reward); a scale other than 0 to 1 passes no judgement."""
    named = {"C": 1.0, "CORRECT": 1.0, "I": 0.0, "INCORRECT": 0.0, "P": 0.5, "N": 0.0}
    if isinstance(value, str):
        reward = named.get(value.upper())
        return (None, None) if reward is None else (reward == 1, reward)
    if isinstance(value, bool):
        return value, float(value)
    reward = number(value)
    return (reward == 1 if reward is not None and 0 <= reward <= 1 else None), reward
