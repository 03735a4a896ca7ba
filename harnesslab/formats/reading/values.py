"""Reading JSON whose types can't be trusted: each helper returns what was asked for, or the empty answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime

from harnesslab.core.canonical import JSON, digest
from harnesslab.core.errors import FormatRefused, HarnessLabError
from harnesslab.core.running.rollout import Recording
from harnesslab.core.trace.messages import text_of
from harnesslab.formats.reading.inputs import Report


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
    """Return an ISO 8601 time; one without a zone is taken as UTC."""
    if not isinstance(value, str):
        return None
    try:
        parsed = datetime.fromisoformat(value)
    except ValueError:
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def seconds(start: datetime | None, end: datetime | None) -> float | None:
    """Return the seconds from one time to another, where both are known."""
    return (end - start).total_seconds() if start and end else None


def not_empty(values: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the entries that say something: neither null nor empty."""
    return {key: value for key, value in values.items() if value is not None and value not in ("", [], {})}


def case_of(instruction: JSON) -> tuple[str, str | None]:
    """Name a case by its instruction where the source gives it no name: (case, digest of the instruction)."""
    said = text_of(instruction)
    if not said:
        return "unnamed", None
    content = digest(said)
    return f"instruction-{content[:12]}", content


def attempt(report: Report, where: str, make: Callable[[], Recording]) -> Iterator[Recording]:
    """Yield one recording, or note in the report why it can't be made, so that the others are still read."""
    try:
        recording = only(where, make)
    except HarnessLabError as error:
        report.skip(where, error.sentence.removeprefix(f"{where}: "))
        return
    yield recording


def only(where: str, make: Callable[[], Recording]) -> Recording:
    """Return the recording of a source that holds one; whatever keeps it from being made is a refusal."""
    try:
        return make()
    except FormatRefused:
        raise
    except HarnessLabError as error:
        raise FormatRefused(error.what, where=error.where or where, hint=error.hint) from error
    except RecursionError as error:
        raise FormatRefused("nested too deeply", where=where) from error


def some(where: str, report: Report, recordings: Iterator[Recording]) -> Iterator[Recording]:
    """Yield recordings; raises `FormatRefused` with the first reason where there is none."""
    before, count = len(report.skipped), 0
    for recording in recordings:
        count += 1
        yield recording
    if not count:
        first = report.skipped[before] if len(report.skipped) > before else None
        why = f": {first.where}: {first.why}" if first else ""
        raise FormatRefused(f"no rollout could be read{why}", where=where)
