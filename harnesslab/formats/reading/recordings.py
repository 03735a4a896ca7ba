"""Making recordings from a source: one, some or the only one, and what keeps one from being made."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from harnesslab.core.canonical import JSON, digest
from harnesslab.core.comparing.manner import lasting
from harnesslab.core.errors import FormatRefused, HarnessLabError
from harnesslab.core.running.rollout import Recording
from harnesslab.core.trace.messages import text_of
from harnesslab.formats.reading.inputs import Report


def case_of(instruction: JSON) -> tuple[str, str | None]:
    """Name a case by its instruction where the source gives it no name: (case, digest of the instruction)."""
    said = text_of(instruction)
    if not said:
        return "unnamed", None
    content = digest(lasting(said))
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
