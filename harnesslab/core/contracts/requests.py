"""The digest of a model call's canonical request, and of its answer: equal requests with unequal answers are
evidence of nondeterminism without any rerun."""

from __future__ import annotations

from collections.abc import Sequence

from harnesslab.core.canonical import JSON, canonical_bytes, sha256
from harnesslab.core.contracts.comparators import ContentReader
from harnesslab.core.contracts.contract import RAW
from harnesslab.core.trace.events import Fidelity, ModelCall
from harnesslab.core.trace.seals import ListDigests

REQUEST_WIDTH = 16
ANSWER_WIDTH = 8
_UNASKED = frozenset({"seed", "user", "metadata", "request_id"})
"""Settings that don't change what is asked of the model: the seed, and names for the provider's own bookkeeping."""


class RequestDigests:
    """Digests the requests of one trace in order; ids in messages are renamed, seeds left out."""

    def __init__(self, payloads: Sequence[JSON]) -> None:
        self._payloads = payloads
        self._reader = ContentReader(RAW, payloads)
        self._inputs = ListDigests()

    def of(self, event: ModelCall) -> tuple[bytes | None, bytes | None]:
        """Return (request digest, answer digest) of the next call.

        A request that an importer rebuilt has none: what the harness sent may have differed, so that two of them
        being equal shows nothing.
        """
        # also for a rebuilt call, which has no digest: the running list of its agent must take every call
        request = self._request(event)
        if event.fidelity is Fidelity.REBUILT:
            return None, None
        return request, self._answer(event)

    def _request(self, event: ModelCall) -> bytes:
        added = [self._reader.payload_digest(position) for position in event.input.add]
        given = self._inputs.change(event.agent, event.input.keep, added)
        settings = {key: value for key, value in event.settings.items() if key not in _UNASKED}
        tools = "" if event.tools is None else self._reader.payload_digest(event.tools).hex()
        return sha256(canonical_bytes([event.model, given.hex(), tools, settings]))[:REQUEST_WIDTH]

    def _answer(self, event: ModelCall) -> bytes | None:
        if event.error is not None:
            return None
        return self._reader.answer_digest(event)[:ANSWER_WIDTH]
