"""Requests that infrastructure failed and that were tried again."""

from __future__ import annotations

from collections.abc import Sequence

from harnesslab.core.trace.events import AnyEvent, ModelCall


def tried_again(events: Sequence[AnyEvent], at: int) -> bool:
    """Say whether an event is a request that failed, and that its agent's next request tries again."""
    failed = events[at]
    if not isinstance(failed, ModelCall) or failed.error is None:
        return False
    later = (event for event in events[at + 1 :] if isinstance(event, ModelCall) and event.agent == failed.agent)
    following = next(later, None)
    return following is not None and (following.step, following.attempt) == (failed.step, failed.attempt + 1)
