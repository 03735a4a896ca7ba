"""An engine whose requests wait for their turn, so that all workers together stay at or below its ceiling."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Mapping

from harnesslab.actions.engines.slots import Slots, turn
from harnesslab.core.canonical import JSON
from harnesslab.core.conditions.manifest import Condition
from harnesslab.core.errors import TryLater
from harnesslab.core.running.ports import EnginePort, Exchange, Failure, FailureKind, Health, ModelRequest
from harnesslab.runtime.driver.queueing import QueueTime

LONGEST_TURN_S = 3600.0
"""Seconds that a request waits for its turn."""


class GuardedEngine:
    """Takes a ticket of the engine for every request; one that is not granted in time is a failure, never raised."""

    def __init__(
        self,
        engine: EnginePort,
        kept: Slots,
        engine_id: int,
        ceiling: int,
        model: str,
        stopped: Callable[[], bool],
        longest_turn: float = LONGEST_TURN_S,
    ) -> None:
        self._engine, self._slots, self._id = engine, kept, engine_id
        self._ceiling, self._model, self._stopped = ceiling, model, stopped
        self._longest_turn = longest_turn
        self.queue = QueueTime()
        """What a time budget takes off: how long its requests waited here."""

    def ask(self, request: ModelRequest, *, timeout: float, on_text: Callable[[str], bool] | None = None) -> Exchange:
        """Wait for its turn, then make one attempt; `timeout` is the attempt's own, and waiting takes nothing of it.

        Who stops the text stops the wait for it too.
        """

        def unwanted() -> bool:
            return self._stopped() or (on_text is not None and not on_text(""))

        began = time.monotonic()
        try:
            with contextlib.ExitStack() as held:
                with self.queue.waiting():
                    waited = held.enter_context(
                        turn(self._slots, self._id, self._ceiling, self._longest_turn, unwanted)
                    )
                with self.queue.answered():
                    exchange = self._engine.ask(request, timeout=timeout, on_text=on_text)
                return dataclasses.replace(exchange, waited=waited)
        except TryLater as error:
            kind = FailureKind.STOPPED if unwanted() else FailureKind.OVERLOADED
            waited = time.monotonic() - began
            failure = Failure(kind, error.sentence)
            return Exchange(self._model, dict(request.settings), b"", b"", 0.0, failure=failure, waited=waited)

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
