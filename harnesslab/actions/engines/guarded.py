"""An engine whose requests wait for their turn, so that all workers together stay at or below its ceiling."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

from harnesslab.actions.engines.slots import Slots, turn
from harnesslab.core.canonical import JSON
from harnesslab.core.conditions.manifest import Condition
from harnesslab.core.errors import TryLater
from harnesslab.core.running.ports import EnginePort, Exchange, Failure, FailureKind, Health, ModelRequest


class GuardedEngine:
    """Takes a ticket of the engine for every request; one that is not granted in time is a failure, never raised."""

    def __init__(
        self, engine: EnginePort, kept: Slots, engine_id: int, ceiling: int, model: str, stopped: Callable[[], bool]
    ) -> None:
        self._engine, self._slots, self._id = engine, kept, engine_id
        self._ceiling, self._model, self._stopped = ceiling, model, stopped

    def ask(self, request: ModelRequest, *, timeout: float, on_text: Callable[[str], bool] | None = None) -> Exchange:
        """Wait for its turn, then make one attempt."""
        try:
            with turn(self._slots, self._id, self._ceiling, timeout, self._stopped) as waited:
                # waiting counts against the request's own time; what is left is never 0, which would be no attempt
                exchange = self._engine.ask(request, timeout=max(0.1, timeout - waited), on_text=on_text)
                return dataclasses.replace(exchange, waited=waited)
        except TryLater as error:
            kind = FailureKind.STOPPED if self._stopped() else FailureKind.OVERLOADED
            failure = Failure(kind, error.sentence)
            return Exchange(self._model, dict(request.settings), b"", b"", 0.0, failure=failure)

    def conditions(self) -> Mapping[str, Condition]:
        """Ask the server for its facts."""
        return self._engine.conditions()

    def startup(self) -> Mapping[str, JSON]:
        """Return what differs between two starts of one configuration."""
        return self._engine.startup()

    def health(self) -> Health:
        """Say whether it answers."""
        return self._engine.health()

    def close(self) -> None:
        """Close the connections to the server."""
        self._engine.close()
