"""The versions of our own JSON lines: which keys a line may have under each, for good.

A field that events or openings gain belongs to a further version. Under an older one a key of that name is what it
always was: kept beside the event, and ignored in an opening.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harnesslab.core.versions import Versions


@dataclass(frozen=True, slots=True)
class TraceSchema:
    """The keys of one version: of the opening line, of every event, and of each kind of event."""

    opening: frozenset[str]
    every: frozenset[str]
    kinds: Mapping[str, frozenset[str]]

    def keys_of(self, kind: str) -> frozenset[str]:
        """Return the keys of an event's kind; empty for a kind that this version doesn't know."""
        return self.every | self.kinds[kind] if kind in self.kinds else frozenset()


def _keys(text: str) -> frozenset[str]:
    return frozenset(text.split())


_TRACE_1 = TraceSchema(
    opening=_keys(
        "schema case outcome project panel experiment harness revision model engine trial tags reward origin grade "
        "missing started_at ended_at budgets facts conditions manifest"
    ),
    every=_keys("kind step agent at latency origin extra"),
    kinds={
        "rollout_started": _keys("manifest state"),
        "model_call": _keys(
            "model input fidelity tools settings text reasoning refusal tool_calls finish_reason usage attempt "
            "rejected error seed_honoured served_from_cache response_id fingerprint prompt prompt_token_ids token_ids "
            "logprobs alternatives raw_request raw_response"
        ),
        "tool_call": _keys(
            "name arguments raw id result has_result seen exit_code error timed_out retries emitted completed"
        ),
        "user_turn": _keys("content simulated"),
        "subagent_call": _keys("name child input output error"),
        "retrieval": _keys("source query documents snapshot"),
        "memory_access": _keys("operation key value"),
        "clock_read": _keys("value"),
        "network_exchange": _keys("target request response error"),
        "harness_action": _keys("name detail mechanism"),
        "verification": _keys("passed reward scores tests output error"),
        "rollout_ended": _keys("outcome count state diff error"),
    },
)
TRACES: Versions[TraceSchema] = Versions("harnesslab.trace", {1: _TRACE_1})
