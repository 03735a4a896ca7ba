"""Seals: a chain of digests over whole events, so that a change of any of them shows.

``seal[i] = SHA-256(seal[i-1] + SHA-256(event i))``, where the event is taken with the digests of its payloads
in place of their positions, so that the chain doesn't depend on how a trace is stored. The closing event
carries the count, so a trace cut at its end shows too. A chain is evidence only against a head kept elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence

from harnesslab.core.canonical import JSON, canonical_bytes, sha256
from harnesslab.core.errors import InvalidValue, SealBroken
from harnesslab.core.trace.events import AnyEvent, ModelCall, RolloutEnded, to_json
from harnesslab.core.trace.trace import Trace

GENESIS = bytes(32)
"""The seal before the first event."""


class ListDigests:
    """Digests of growing lists in time linear in what is added: one running digest per kept prefix length."""

    def __init__(self) -> None:
        self._chains: dict[str, list[bytes]] = {}

    def change(self, agent: str, keep: int, added: Sequence[bytes]) -> bytes:
        """Keep the first `keep` items of the agent's list, append digests, return the digest of the list."""
        chain = self._chains.setdefault(agent, [GENESIS])
        if not 0 <= keep < len(chain):
            raise InvalidValue(f"a model call keeps {keep} messages of {len(chain) - 1}")
        del chain[keep + 1 :]
        for item in added:
            chain.append(sha256(chain[-1] + item))
        return chain[-1]


class Sealer:
    """Computes the seals of a trace as its events come."""

    def __init__(self) -> None:
        # A sealer can't be taken up from a head: it also needs the running digests of each agent's list.
        self.head = GENESIS
        self._inputs = ListDigests()

    def seal(self, event: AnyEvent, payload_digests: Sequence[bytes]) -> bytes:
        """Return the seal of the next event; `payload_digests[i]` is that of payload i of the trace."""
        body: dict[str, JSON] = to_json(event)
        if isinstance(event, ModelCall):
            named = event.input.add if event.tools is None else (*event.input.add, event.tools)
            if any(not 0 <= position < len(payload_digests) for position in named):
                raise InvalidValue("a model call names a payload that is not in the table")
            added = [payload_digests[position] for position in event.input.add]
            body["input"] = self._inputs.change(event.agent, event.input.keep, added).hex()
            if event.tools is not None:
                body["tools"] = payload_digests[event.tools].hex()
        self.head = sha256(self.head + sha256(canonical_bytes(body)))
        return self.head


def seals(trace: Trace) -> list[bytes]:
    """Return the seal of every event of a trace, 32 bytes each."""
    sealer = Sealer()
    return [sealer.seal(event, trace.digests) for event in trace.events]


def verify(trace: Trace, recorded: Sequence[bytes]) -> None:
    """Check a trace against its recorded seals; raises `SealBroken` naming the first event that differs."""
    # seals are over the payloads' digests, so that these must be right before seals say anything of payloads
    for index, (payload, known) in enumerate(zip(trace.payloads, trace.digests, strict=True)):
        if sha256(canonical_bytes(payload)) != known:
            raise SealBroken("the content is not what its digest says", where=f"payload {index}")
    sealer = Sealer()
    for index, (expected, event) in enumerate(zip(recorded, trace.events, strict=False)):
        try:
            actual = sealer.seal(event, trace.digests)
        except InvalidValue as error:
            raise SealBroken(error.what, where=f"event {index}") from error
        if expected != actual:
            raise SealBroken("the event is not the one that was sealed", where=f"event {index}")
    if len(recorded) != len(trace.events):
        raise SealBroken(
            f"{len(recorded)} seals for {len(trace.events)} events",
            where=f"event {min(len(recorded), len(trace.events))}",
        )
    last = trace.events[-1] if trace.events else None
    if not isinstance(last, RolloutEnded):
        raise SealBroken("no closing event: the end of the trace is missing", where=f"event {len(trace.events)}")
    if last.count != len(trace.events):
        raise SealBroken(
            f"the closing event counts {last.count} events, there are {len(trace.events)}", where="closing event"
        )
