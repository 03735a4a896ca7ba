"""What is kept of a decision beside its verdict, as it is written to the store and read by `decision_reasons`."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from harnesslab.core.canonical import JSON
from harnesslab.core.deciding.promotion import Decision
from harnesslab.core.measuring.attribution import Attribution


class Grounds(msgspec.Struct, frozen=True, kw_only=True):
    """How much a verdict rests on: exclusions, attribution, faults, and what was not shown equal."""

    excluded: Mapping[str, str]
    """Cases whose environment does not repeat, with the certificate's verdict."""
    attribution: tuple[Attribution, ...]
    """Of each case and trial that flipped, or went another way."""
    measurement_faults: tuple[str, ...]
    """Cases whose verdict differs though nothing that was changed explains it, on a certified engine."""
    identity_not_shown: tuple[str, ...]
    """Conditions of the measurement identity that are unknown on a side."""
    gate: bool
    """Whether the engine is certified to repeat its answers."""
    provisional: bool
    trials: int
    candidates: int | None = None
    """How many candidates were tried so far, this one included: the best of many looks better than it is."""

    def beside(self, decision: Decision) -> dict[str, JSON]:
        """Return one document of both, under the names that imported decisions have."""
        grounds: dict[str, JSON] = msgspec.to_builtins(self)
        return {**decision.to_json(), **grounds, "attribution": [each.to_json() for each in self.attribution]}


class Refusal(msgspec.Struct, frozen=True):
    """Why a candidate and its baseline are no comparison."""

    refused: str
    fields: tuple[str, ...] = ()
    """The conditions that differ."""

    def to_json(self) -> dict[str, JSON]:
        """Return it as the document that is kept in place of a decision."""
        document: dict[str, JSON] = msgspec.to_builtins(self)
        return document
