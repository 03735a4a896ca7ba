"""Values that are equal but for when something happened and how long it took."""

from __future__ import annotations

import re

from harnesslab.core.canonical import JSON
from harnesslab.core.comparing.evidence import same
from harnesslab.core.contracts import scrub

_OF_TIME = re.compile(
    r"(?i)(?:^|_|\b)(?:time|timestamp|date|at|ts|now|elapsed|duration|latency|seconds|secs|ms|started|ended|created|updated|clock)$"
)


def same_but_times(a: JSON, b: JSON) -> bool:
    """Say whether two unequal values are the same once times and durations are left out."""
    return not same(a, b) and same(_without_times(a), _without_times(b))


def _without_times(value: JSON) -> JSON:
    if isinstance(value, dict):
        return {
            key: None if _OF_TIME.search(key) and _scalar(item) else _without_times(item) for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_without_times(item) for item in value]
    return scrub.scrub(value, scrub.newest()) if isinstance(value, str) else value


def _scalar(value: JSON) -> bool:
    return value is None or isinstance(value, str | int | float)
