"""Where a model call's answer came from, and which tokens it cost: the one rule that every count goes by."""

from __future__ import annotations

import msgspec

from harnesslab.core.trace.events import ModelCall, TraceEvent, Usage

SERVED = "served"
"""Key in an event's `extra` that says where its answer came from, where it was not asked for live."""
COPIED = "is_copied_context"
"""Key in `extra` of a call that an importer found copied from another rollout, where it was paid."""
REQUESTOR, USER = "requestor", "user"
"""Key in `extra` of a tool call that says who asked for it, and its value where a simulated user did; the agent path
of such a call is `user`."""
_LIVE = "live"


def served(event: ModelCall) -> bool:
    """Say whether an answer came from a cache, a record or another rollout; one that went live after a miss did not."""
    return event.served_from_cache is True or is_served(event) or event.extra.get(COPIED) is True


def served_from(event: TraceEvent) -> str:
    """Say where what a boundary gave was served from; empty where it was given live."""
    if isinstance(event, ModelCall) and event.served_from_cache is True:
        return "a cache"
    if event.extra.get(COPIED) is True:
        return "another rollout, from which it was copied"
    source = event.extra.get(SERVED)
    if not isinstance(source, str) or source.startswith(_LIVE):
        return ""
    return source.removeprefix("from ") if source.startswith("from ") else f"the record, {source}"


def is_served(event: TraceEvent) -> bool:
    """Say whether what a boundary gave came from a record: an answer, a result, what a user said, a verdict."""
    source = event.extra.get(SERVED)
    return isinstance(source, str) and not source.startswith(_LIVE)


def stated_usage(event: ModelCall) -> Usage:
    """Return the tokens that a call states, whoever pays for them; a negative count is no count."""
    usage = event.usage or Usage()
    wrong = [name for name in usage.__struct_fields__ if (value := getattr(usage, name)) is not None and value < 0]
    return msgspec.structs.replace(usage, **dict.fromkeys(wrong)) if wrong else usage


def spent(event: ModelCall) -> Usage:
    """Return the tokens that a call cost: all unknown where it states none, none where its answer was served.

    A request that failed cost what its engine says it did.
    """
    return Usage() if served(event) else stated_usage(event)
