"""One attempt at a job, as its work sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class JobRun:
    """What a job's work is given."""

    job: int
    payload: Mapping[str, Any]
    progress: Callable[[int, str], bool]
    """Told how much is done and a sentence; False means: stop now."""
    stopped: Callable[[], bool]
    """Whether the work must stop: cancelled, lost to another worker, or the worker is shutting down."""
