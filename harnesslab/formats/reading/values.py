"""Reading JSON whose types can't be trusted: each reader returns what was asked for, or None or an empty value."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta, timezone, tzinfo

from harnesslab.core.canonical import JSON

UNSTATED = timezone(timedelta(0), "zone not stated")
"""The zone of a time that states none: it is counted as UTC and told apart from it."""


class Moment(float):
    """Seconds since 1970 that know the zone in which their source wrote them."""

    zone: tzinfo = UTC


def mapping(value: JSON) -> Mapping[str, JSON]:
    """Return an object, or an empty one."""
    return value if isinstance(value, Mapping) else {}


def items(value: JSON) -> list[JSON]:
    """Return a list, or an empty one."""
    return value if isinstance(value, list) else []


def objects(value: JSON) -> list[Mapping[str, JSON]]:
    """Return the objects of a list."""
    return [item for item in items(value) if isinstance(item, Mapping)]


def text(value: JSON) -> str:
    """Return a string, or an empty one."""
    return value if isinstance(value, str) else ""


def whole(value: JSON) -> int | None:
    """Return an integer, or None; a boolean is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def number(value: JSON) -> float | None:
    """Return a finite number as float, or None; a boolean is none."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return float(value) if math.isfinite(value) else None
        except OverflowError:
            return None
    return None


def flag(value: JSON) -> bool | None:
    """Return a boolean, or None."""
    return value if isinstance(value, bool) else None


def instant(value: JSON) -> datetime | None:
    """Return the time of an ISO 8601 text, or of epoch seconds or milliseconds; one without a zone is `UNSTATED`."""
    if isinstance(value, int | float):
        return epoch_time(moment(value))
    if not isinstance(value, str):
        return None
    try:
        parsed = datetime.fromisoformat(value)
    except ValueError:
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UNSTATED)


def seconds(start: datetime | None, end: datetime | None) -> float | None:
    """Return the seconds from one time to another, where both are known."""
    return (end - start).total_seconds() if start and end else None


def not_empty(values: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the entries that say something: neither null nor empty."""
    return {key: value for key, value in values.items() if value is not None and value not in ("", [], {})}


def without_nulls(values: Mapping[str, JSON], *skip: str) -> dict[str, JSON]:
    """Return what an object states, without nulls and without the keys in `skip`."""
    return {key: value for key, value in values.items() if value is not None and key not in skip}


def moment(value: JSON) -> float | None:
    """Return seconds since 1970 of an ISO 8601 text or of epoch seconds or milliseconds; None for anything else.

    A time without a zone counts as UTC, which leaves differences within a file right.
    """
    if isinstance(value, str):
        parsed = instant(value)
        if parsed is None or parsed.tzinfo is None:
            return None
        found = Moment(parsed.timestamp())
        found.zone = parsed.tzinfo
        return found
    seconds = number(value)
    if seconds is None or seconds <= 0:
        return None
    return seconds / 1000 if seconds > 1e11 else seconds


def epoch_time(seconds: float | None) -> datetime | None:
    """Return the time of epoch seconds, or None where it is unknown or out of range."""
    try:
        zone = seconds.zone if isinstance(seconds, Moment) else UTC
        return None if seconds is None else datetime.fromtimestamp(seconds, zone)
    except (OverflowError, ValueError, OSError):
        return None


def elapsed(value: float | None, start: float | None) -> float | None:
    """Return the seconds between two moments, rounded to microseconds."""
    return None if value is None or start is None else round(value - start, 6)


def most_used(names: Iterable[str]) -> str:
    """Return the name that occurs most often, the first of equals; empty where there is none."""
    counts: dict[str, int] = {}
    for name in names:
        if name:
            counts[name] = counts.get(name, 0) + 1
    return max(counts, key=lambda name: counts[name]) if counts else ""
